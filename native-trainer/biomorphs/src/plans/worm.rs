//! Worms and caterpillars: a chain of segments on short legs.

use std::f32::consts::PI;

use super::View;
use crate::{
    body::{Build, Pose},
    canvas::{Mark, Part},
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, disc, lerp, round_end, smoothstep},
};

pub(super) fn grow(build: &mut Build) -> View {
    let girth = build.span(Gene::Girth, 0.14, 0.27);
    let segments = build.count(Gene::Segments, 5, 12);
    let taper = build.span(Gene::Taper, 0.35, 1.0);
    let notch = build.span(Gene::FinShape, 0.05, 0.28);
    let head = girth * build.span(Gene::Head, 0.95, 1.5);
    let arch = build.span(Gene::Curl, 0.02, 0.42);
    let Pose { bend, phase, .. } = build.pose;
    let spine = |u: f32| {
        // From tail to head, arched like a looper or wavy like a crawler.
        let wave = (u * PI * 2.0 + phase * PI * 2.0).sin() * 0.05;
        let lift = smoothstep(0.6, 1.0, u) * (0.22 + 0.14 * bend);
        V(lerp(-0.72, 0.46, u), -arch * (u * PI).sin() * (1.0 + 0.4 * bend) - wave - lift)
    };
    let swell = |u: f32| {
        let bump = (u * segments as f32 * PI).sin().abs().sqrt();
        girth * lerp(taper, 1.0, u) * (1.0 - notch + notch * bump)
    };
    let body = Tube::along(spine, |u| swell(u) * round_end(u * 14.0), 64);

    // Tail horn.
    let tail = build.span(Gene::TailLength, 0.0, 0.5);
    if tail > 0.12 {
        let root = body.at(0.06, 0.3);
        let bow = build.span(Gene::TailShape, -0.5, 0.7);
        let points = [root, root + V(-0.5, -0.5) * tail, root + V(-0.6 - bow, -1.0) * tail];
        build.add(
            Part::new([Tube::limb(&points, girth * 0.4, 0.012).outline()], build.palette.accent).relief(0.05),
        );
    }
    // Stubby legs, far ones first.
    let leg = build.span(Gene::LimbLength, 0.03, 0.24);
    let width = build.span(Gene::LimbWidth, 0.03, 0.055);
    let count = build.count(Gene::LimbCount, 3, 8);
    for far in [true, false] {
        for i in 0..count {
            let u = lerp(0.10, 0.88, i as f32 / (count - 1) as f32) + if far { 0.025 } else { 0.0 };
            let root = body.at(u, -0.6).max_y(body.at(u, 0.6));
            let step = build.swing(i * 2 + usize::from(far)) * 0.05;
            let points = [root, root + V(step, girth * 0.4 + leg)];
            let colour = lighten(build.palette.accent, if far { -0.35 } else { 0.0 });
            build.add(
                Part::new([Tube::limb(&points, width, width * 0.8).outline()], colour)
                    .relief(width)
                    .shadow(0.15),
            );
        }
    }
    // Bristles on the back.
    if build.get(Gene::Ornament) > 0.55 {
        let length = build.span(Gene::Ornament, -0.08, 0.22);
        for i in 0..segments {
            let u = (i as f32 + 0.5) / segments as f32;
            let root = body.at(u, 0.85).min_y(body.at(u, -0.85));
            let mut tufts = vec![];
            for lean in [-0.5, 0.0, 0.5] {
                let tip = root + V(lean - 0.1, -1.0) * length;
                tufts.push(Tube::limb(&[root, tip], 0.022, 0.008).outline());
            }
            build.add(Part::new(tufts, build.palette.accent).relief(0.02).shadow(0.1));
        }
    }
    let furrows = (1..segments).filter_map(|i| {
        let u = i as f32 / segments as f32;
        body.patch(u - 0.006, u + 0.006, -1.0, 1.0)
    });
    let dark = lighten(build.palette.body, -0.5);
    let furrows: Vec<Mark> = furrows.map(|path| Mark { path, colour: dark, opacity: 0.45 }).collect();
    let part = build.skin(&body, girth * 0.85).marks(furrows).fade(
        V(0.0, -arch * 0.6),
        V(0.0, -arch * 0.6 + girth * 1.3),
        build.palette.belly,
    );
    build.add(part);

    // Head with a face.
    let face = spine(1.0) + V(head * 0.35, -head * 0.1);
    for side in [1.0, 0.0] {
        build.antenna(face + V(head * 0.3 * side, -head * 0.7), V(0.45 + 0.25 * side, -0.85), 1.0, 0.42);
    }
    let colour = mix(build.palette.body, build.palette.accent, 0.4);
    let cheek = mix(colour, [0.95, 0.45, 0.40], 0.45);
    let smile = Tube::limb(
        &[
            face + V(head * 0.22, head * 0.40),
            face + V(head * 0.5, head * 0.52),
            face + V(head * 0.76, head * 0.34),
        ],
        0.013,
        0.013,
    );
    build.add(
        Part::new([disc(face, head)], colour)
            .relief(head * 0.9)
            .mark(disc(face + V(head * 0.05, head * 0.38), head * 0.2), cheek, 0.7)
            .mark(smile.outline(), lighten(colour, -0.75), 0.9),
    );
    let eyes = build.count(Gene::EyeCount, 1, 3);
    for i in 0..eyes {
        let across = head * (0.62 - 0.55 * i as f32);
        let size = head * [0.40, 0.36, 0.26][eyes - 1];
        build.eye(face + V(across, -head * (0.18 + 0.1 * i as f32)), size);
    }
    View::Side
}
