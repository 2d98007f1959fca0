//! Newts: a winding body seen from above, four legs with toes, a long tail.

use std::f32::consts::TAU;

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, disc, egg, lerp, round_end, smoothstep},
};

pub(super) fn grow(build: &mut Build) -> View {
    let girth = build.span(Gene::Girth, 0.13, 0.27);
    let head = build.span(Gene::Head, 0.17, 0.30);
    let tail = build.span(Gene::TailLength, 0.45, 1.0);
    let wind = build.span(Gene::Curl, 0.06, 0.20);
    let leg = build.span(Gene::LimbLength, 0.20, 0.42);
    let width = build.span(Gene::LimbWidth, 0.035, 0.075);
    let colours = build.palette;
    let (phase, bend) = (build.pose.phase, build.pose.bend);

    let nose = 0.62;
    let end = -0.42 - tail;
    let spine = |u: f32| {
        let x = lerp(nose - head, end, u);
        // The wave grows towards the tail, and the bend curls it to one side.
        let y = wind * (0.25 + 1.3 * u) * ((u * 1.1 + phase) * TAU).sin() + 0.35 * bend * u * u;
        V(x, y)
    };
    let hips = (0.9 + head * -0.5) / (nose - head - end);
    let paddle = build.span(Gene::TailShape, 0.0, 0.9);
    let half = |u: f32| {
        let trunk = girth * (0.72 + 0.28 * egg((u / hips).clamp(0.01, 0.99), 0.5, 0.5));
        let after = ((u - hips) / (1.0 - hips)).clamp(0.0, 1.0);
        let thin = girth * lerp(0.62, 0.18, after) + girth * paddle * 0.5 * egg(after, 0.6, 0.8);
        let round = round_end((1.0 - u) * 12.0);
        lerp(trunk, thin, smoothstep(0.75 * hips, 1.15 * hips, u)) * round
    };
    let body = Tube::along(spine, half, 48);

    for (i, u) in [(0, 0.10_f32), (1, hips * 0.92)] {
        for side in [-1.0, 1.0] {
            let swing = build.swing(i * 2 + if side > 0.0 { 1 } else { 0 });
            let root = body.at(u, 0.4 * side);
            let out = (body.at(u, side) - body.at(u, 0.0)) * (1.0 / body.half(u).max(1e-3));
            let ahead = V(out.1, -out.0) * side;
            let forward = if i == 0 { 0.45 } else { -0.35 } + 0.35 * swing;
            let knee = root + out * (leg * 0.75) + ahead * (leg * forward * 0.4);
            let foot = knee + out * (leg * 0.35) + ahead * (leg * (forward + 0.25));
            let mut paths = vec![Tube::limb(&[root, knee, foot], width * 1.3, width * 0.6).outline()];
            let toes = build.count(Gene::LimbCount, 3, 5);
            for k in 0..toes {
                let t = k as f32 / (toes - 1) as f32 * 2.0 - 1.0;
                let tip = foot + (out * (0.5 - 0.3 * t) + ahead * (0.6 + 0.35 * t)) * (leg * 0.50);
                let tip = tip + out * (t * leg * 0.12);
                paths.push(Tube::limb(&[foot, tip], width * 0.42, width * 0.30).outline());
            }
            build.add(Part::new(paths, colours.accent).relief(width).shadow(0.25));
        }
    }
    let face = V(nose, spine(0.0).1 - 0.05 * bend);
    let neck = spine(0.03);
    if build.get(Gene::AntennaShape) > 0.55 {
        // External gills, as axolotls have.
        let length = build.span(Gene::AntennaLength, 0.14, 0.34);
        for side in [-1.0, 1.0] {
            let mut plumes = vec![];
            for i in 0..3 {
                let root = neck + V(0.06 - 0.05 * i as f32, head * 0.45 * side);
                let way = V::polar((1.15 + 0.4 * i as f32 + 0.08 * build.swing(i)) * side, length);
                let tip = root + way;
                plumes.push(
                    Tube::limb(&[root, root + way * 0.5 + V(-0.02, 0.02 * side), tip], 0.038, 0.016)
                        .outline(),
                );
                for k in 0..3 {
                    let from = root + way * (0.45 + 0.2 * k as f32);
                    plumes.push(Tube::limb(&[from, from + V(-0.07, 0.01 * side)], 0.014, 0.008).outline());
                }
            }
            build.add(Part::new(plumes, mix(colours.accent, colours.mark, 0.4)).relief(0.03).shadow(0.2));
        }
    }
    let fin = build.span(Gene::FinSize, -0.10, 0.13);
    if fin > 0.0 {
        // A fringe of skin around the tail.
        let fringe = Tube::along(
            spine,
            |u| half(u) + fin * smoothstep(hips, lerp(hips, 1.0, 0.4), u) * (1.0 - u).powf(0.4),
            48,
        );
        let path = fringe.patch(hips, 0.995, -1.0, 1.0);
        build.add(Part::new([path], mix(colours.accent, colours.belly, 0.4)).relief(0.04).opacity(0.9));
    }
    build.add(
        Part::new([body.outline()], colours.body)
            .marks(build.pattern(&body, 0.02, 0.96))
            .relief(girth * 0.8)
            .gloss(0.4),
    );
    if build.get(Gene::Ornament) > 0.5 {
        // A row of beads down the back.
        let count = build.count(Gene::Segments, 6, 12);
        for i in 0..count {
            let u = lerp(0.06, 0.9, i as f32 / (count - 1) as f32);
            let r = body.half(u) * build.span(Gene::Ornament, 0.05, 0.36);
            let bead = disc(body.at(u, 0.0), r);
            build.add(Part::new([bead], colours.accent).relief(r).shadow(0.3).gloss(0.5));
        }
    }
    let blunt = build.span(Gene::Taper, 0.30, 0.62);
    let skull = Tube::new(&[neck + V(-head * 0.35, 0.0), face + V(head * 0.55, 0.0)], |u| {
        head * build.span(Gene::FinShape, 0.62, 0.92) * egg(u, 0.52, blunt)
    });
    let smile = |side: f32| {
        Tube::limb(
            &[skull.at(0.97, 0.1 * side), skull.at(0.82, 0.72 * side), skull.at(0.62, 0.84 * side)],
            0.010,
            0.010,
        )
    };
    let dark = lighten(colours.body, -0.7);
    build.add(
        Part::new([skull.outline()], colours.body)
            .fade(face, face + V(head * 0.7, 0.0), mix(colours.body, colours.belly, 0.55))
            .relief(head * 0.6)
            .gloss(0.4)
            .mark(smile(-1.0).outline(), dark, 0.6)
            .mark(smile(1.0).outline(), dark, 0.6)
            .ink(0.5)
            .shadow(0.15),
    );
    let eye = head * lerp(0.26, 0.40, build.get(Gene::EyeCount));
    for side in [-1.0, 1.0] {
        build.eye(skull.at(0.58, 0.62 * side), eye);
    }
    View::Above
}
