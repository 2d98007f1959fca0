//! Crabs: a wide shell, eyes on stalks, walking legs, and two claws.

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, blob, disc, egg, lerp},
};

pub(super) fn grow(build: &mut Build) -> View {
    let wide = build.span(Gene::Head, 0.42, 0.66);
    let high = build.span(Gene::Girth, 0.24, 0.48);
    let square = build.span(Gene::Taper, 0.26, 0.60);
    let leg = build.span(Gene::LimbLength, 0.22, 0.52);
    let width = build.span(Gene::LimbWidth, 0.030, 0.070);
    let pairs = build.count(Gene::LimbCount, 2, 4);
    let claw = build.span(Gene::FinSize, 0.14, 0.36);

    for side in [-1.0, 1.0] {
        // `V::side` mirrors y, but a crab is symmetric in x.
        let place = |x: f32, y: f32| V(x * side, y);
        for i in 0..pairs {
            let t = if pairs > 1 { i as f32 / (pairs - 1) as f32 } else { 0.5 };
            let root = place(wide * lerp(0.75, 0.40, t), high * lerp(0.15, 0.7, t));
            let step = 0.07 * build.swing(i + if side > 0.0 { 2 } else { 0 });
            let knee = root + place(leg * lerp(0.85, 0.55, t), -leg * lerp(0.35, 0.1, t) + step);
            let foot = knee + place(leg * lerp(0.45, 0.2, t) + step, leg * 0.95);
            let colour = lighten(build.palette.accent, -0.25 * t);
            let upper = Tube::limb(&[root, knee], width * 1.2, width);
            let lower =
                Tube::limb(&[knee, (knee + foot) * 0.5 + place(0.03, 0.0), foot], width * 0.95, width * 0.3);
            build.add(Part::new([upper.outline(), lower.outline()], colour).relief(width * 1.2).shadow(0.2));
        }
        // The claw arm, and the claw: a palm, a fixed finger, a moving one.
        let raise = build.span(Gene::Curl, 0.05, 0.45) + 0.08 * build.swing(if side > 0.0 { 5 } else { 7 });
        let root = place(wide * 0.75, -high * 0.25);
        let elbow = root + place(0.20, 0.02);
        let wrist = elbow + place(0.08, -raise - 0.05);
        let arm = Tube::limb(&[root, elbow, wrist], width * 1.3, width * 1.1);
        build.add(Part::new([arm.outline()], build.palette.accent).relief(width * 1.3));
        // One claw may be larger, as in fiddler crabs.
        let uneven = build.span(Gene::TailShape, 0.5, 1.0);
        let size = if side > 0.0 { claw } else { claw * uneven };
        let slim = build.span(Gene::FinShape, 0.42, 0.75);
        let open = 0.15 + 0.35 * build.pose.spread;
        let way = V::polar(-1.35, 1.0);
        let way = place(way.0 * -0.6, way.1);
        let across = V(-way.1, way.0) * -side;
        let palm = wrist + way * (size * 0.45);
        let hand = Tube::new(&[wrist - way * (size * 0.1), wrist + way * size], |u| {
            size * slim * egg(u, 0.55, 0.42)
        });
        let finger = |lean: f32, thick: f32| {
            let start = palm + way * (size * 0.15) + across * (size * lean * 0.7);
            let points = [
                start,
                start + way * (size * 0.5) + across * (size * lean * (0.9 + open)),
                start + way * (size * 0.95) + across * (size * lean * (open - 0.45)),
            ];
            Tube::limb(&points, size * thick, size * 0.05).outline()
        };
        let colour = mix(build.palette.body, build.palette.accent, 0.35);
        let tips = lighten(build.palette.accent, -0.35);
        build.add(Part::new([finger(0.40, 0.30), finger(-0.40, 0.24)], tips).relief(size * 0.25).gloss(0.5));
        build.add(Part::new([hand.outline()], colour).relief(size * 0.45).gloss(0.5));
    }

    // Eye stalks behind the shell's edge.
    let stalk = build.span(Gene::AntennaLength, 0.06, 0.34);
    let apart = wide * build.span(Gene::AntennaShape, 0.18, 0.5);
    let top = -high * 0.8;
    let mut eyes = vec![];
    for side in [-1.0, 1.0] {
        let lean = 0.25 * stalk * side + 0.03 * build.swing(3);
        let end = V(apart * side + lean, top - stalk);
        let limb = Tube::limb(&[V(apart * side, top + 0.1), end], 0.045, 0.032);
        build.add(Part::new([limb.outline()], build.palette.accent).relief(0.04));
        eyes.push(end);
    }
    let shell = Tube::new(&[V(-wide, 0.0), V(0.0, -0.04 - 0.05 * build.pose.bend), V(wide, 0.0)], |u| {
        high * egg(u, 0.5, square)
    });
    let mut paths = vec![shell.outline()];
    if build.get(Gene::Ornament) > 0.5 {
        // Teeth along the front edge.
        let length = build.span(Gene::Ornament, -0.06, 0.16);
        let count = build.count(Gene::Segments, 5, 9);
        for i in 0..count {
            let u = lerp(0.10, 0.90, i as f32 / (count - 1) as f32);
            let edge = shell.at(u, 1.0).min_y(shell.at(u, -1.0));
            let tip = edge + V((u - 0.5) * 1.2, -1.0) * length;
            paths.push(blob(&[
                edge + V(-0.06, 0.05),
                edge + V(-0.05, -0.01),
                tip,
                edge + V(0.05, -0.01),
                edge + V(0.06, 0.05),
            ]));
        }
    }
    let smile =
        Tube::limb(&[V(-0.10, high * 0.42), V(0.0, high * 0.42 + 0.045), V(0.10, high * 0.42)], 0.014, 0.014);
    let part = Part::new(paths, build.palette.body)
        .fade(V(0.0, high * 0.1), V(0.0, high * 0.95), build.palette.belly)
        .marks(build.pattern(&shell, 0.04, 0.96))
        .mark(smile.outline(), lighten(build.palette.body, -0.8), 0.9)
        .relief(high * 0.7)
        .gloss(0.55);
    build.add(part);
    if build.get(Gene::EyeCount) > 0.7 {
        build.eye(V(0.0, -high * 0.2), 0.085);
    }
    for side in [-1.0, 1.0] {
        let blush = disc(V(side * 0.21, high * 0.36), 0.05);
        build.add(
            Part::new([blush], [0.94, 0.47, 0.42]).opacity(0.4).relief(0.05).gloss(0.0).ink(0.0).shadow(0.0),
        );
    }
    for at in eyes {
        build.eye(at, 0.085);
    }
    View::Side
}
