//! Snails: a creeping foot, eyes on stalks, and a spiral shell that carries the pattern.

use std::f32::consts::{PI, TAU};

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, disc, lerp, round_end, smoothstep},
};

pub(super) fn grow(build: &mut Build) -> View {
    let size = build.span(Gene::FinSize, 0.34, 0.62);
    let foot = build.span(Gene::Girth, 0.10, 0.19);
    let turns = build.span(Gene::Segments, 1.6, 3.4);
    let tall = build.span(Gene::TailShape, 0.0, 0.75);
    let neck = build.span(Gene::LimbLength, 0.12, 0.46);
    let head = foot * build.span(Gene::Head, 0.9, 1.4);
    let tail = build.span(Gene::TailLength, 0.62, 1.0);
    let stretch = 1.0 + 0.06 * build.pose.bend;

    let face = V(0.62 * stretch, -neck - 0.02 * build.pose.bend);
    let spine = [
        V(-tail * stretch, 0.05),
        V(-0.4, 0.0),
        V(0.15, 0.0),
        V(0.5 * stretch, -neck * 0.25),
        face + V(0.02, 0.0),
    ];
    let creeper = Tube::new(&spine, |u| {
        let round = round_end((1.0 - u) * 9.0);
        foot * smoothstep(-0.25, 0.45, u)
            * lerp(1.0, head / foot, smoothstep(0.8, 1.0, u))
            * round
            * round_end(u * 10.0)
    });
    let flesh = mix(build.palette.belly, build.palette.accent, 0.25);

    // The far stalk, the body, the near stalk.
    let stalk = build.span(Gene::AntennaLength, 0.10, 0.42);
    let width = build.span(Gene::LimbWidth, 0.022, 0.045);
    let mut eyes = vec![];
    let count = build.count(Gene::EyeCount, 2, 3);
    for i in 0..count {
        let lean = 0.45 - 0.5 * i as f32 + 0.12 * build.swing(i);
        let root = face + V(head * (0.3 - 0.35 * i as f32), -head * 0.3);
        let top = root + V(lean * stalk, -stalk - head * 0.3);
        let limb = Tube::limb(&[root, root + V(lean * stalk * 0.2, -stalk * 0.6), top], width * 1.3, width);
        build.add(Part::new([limb.outline()], flesh).relief(width * 1.4).shadow(0.2));
        eyes.push(top);
    }
    if build.get(Gene::AntennaShape) > 0.5 {
        // Feelers below the eyes.
        let root = face + V(head * 0.7, head * 0.2);
        let feeler = Tube::limb(&[root, root + V(0.10, 0.05), root + V(0.17, 0.03)], width, width * 0.7);
        build.add(Part::new([feeler.outline()], flesh).relief(width));
    }
    let smile = Tube::limb(
        &[
            face + V(head * 0.2, head * 0.42),
            face + V(head * 0.5, head * 0.55),
            face + V(head * 0.75, head * 0.38),
        ],
        0.012,
        0.012,
    );
    build.add(
        Part::new([creeper.outline(), disc(face, head)], flesh)
            .relief(foot * 0.9)
            .fade(V(0.0, -foot * 0.5), V(0.0, foot * 1.2), lighten(flesh, -0.3))
            .mark(disc(face + V(head * 0.1, head * 0.25), head * 0.2), [0.93, 0.50, 0.45], 0.5)
            .mark(smile.outline(), lighten(flesh, -0.75), 0.9),
    );
    for top in eyes {
        build.eye(top, 0.07);
    }

    // The shell: each whorl is a piece of a growing spiral, drawn from the outside in. A tall shell rises along
    // its axis as it winds.
    let centre = V(-0.16, -foot * 0.4 - size * 0.86);
    let shrink = build.span(Gene::Curl, 0.42, 0.62);
    let tilt = 0.25 + 0.08 * build.pose.bend;
    let spire = V(-0.75, -0.55) * (tall * size);
    let ridge = build.get(Gene::Ornament) > 0.6;
    let mut turn = 0.0;
    while turn < turns {
        let span = (turns - turn).min(1.0);
        let place = |u: f32| {
            let at = turn + u * span;
            let radius = size * shrink.powf(at);
            let middle = radius * (1.0 + shrink) * 0.5;
            (centre + spire * (1.0 - shrink.powf(at)) + V::polar(PI * 0.5 - at * TAU + tilt, middle), radius)
        };
        let whorl = Tube::along(
            |u| place(u).0,
            |u| {
                let (_, radius) = place(u);
                let last = turn + span >= turns - 1e-3;
                let inner = if last { (1.0 - u * u * u).max(0.05) } else { 1.0 };
                let mouth = if turn == 0.0 { round_end(u * 16.0) } else { 1.0 };
                radius * (1.0 - shrink) * 0.56 * inner * mouth
            },
            40,
        );
        let mut paths = vec![whorl.outline()];
        if ridge && turn < 1.5 {
            // Thorns on the outer edge.
            for i in 0..7 {
                let u = (i as f32 + 0.5) / 7.0;
                let (at, radius) = place(u);
                let out = whorl.at(u, 1.0) - at;
                let out = if (at + out - centre).length() > (at - centre).length() { out } else { -out };
                paths.push(
                    Tube::limb(&[at + out * 0.8, at + out * 1.5], radius * 0.12, radius * 0.02).outline(),
                );
            }
        }
        let thickness = size * shrink.powf(turn) * (1.0 - shrink);
        // Fill the middle below the whorl, so that no background shows through.
        if turn == 0.0 {
            build.add(Part::new(
                [disc(centre, size * (1.0 + shrink) * 0.45)],
                lighten(build.palette.body, -0.35),
            ));
        }
        build.add(
            Part::new(paths, build.palette.body)
                .marks(build.pattern(&whorl, 0.0, 1.0))
                .relief(thickness * 0.6)
                .gloss(0.5),
        );
        turn += 1.0;
    }
    View::Side
}
