//! Sea stars: arms around a disc with a face.

use std::f32::consts::{FRAC_PI_2, TAU};

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, curve, disc, lerp, round_end},
};

pub(super) fn grow(build: &mut Build) -> View {
    let arms = build.count(Gene::LimbCount, 5, 9);
    let core = build.span(Gene::Girth, 0.26, 0.50);
    let reach = build.span(Gene::LimbLength, 0.72, 1.15);
    // The more arms, the slimmer.
    let root = core * (TAU / arms as f32 * 0.5).sin() * build.span(Gene::LimbWidth, 0.75, 1.15);
    let tip = root * build.span(Gene::Taper, 0.18, 0.75);
    let curl = build.span(Gene::Curl, -0.35, 0.35);
    let bumps = build.span(Gene::FinSize, 0.0, 0.14);
    let segments = build.count(Gene::Segments, 3, 7) as f32;

    let arm_tubes: Vec<Tube> = (0..arms)
        .map(|i| {
            let turn = i as f32 / arms as f32 * TAU - FRAC_PI_2 + build.pose.bend * 0.15;
            let sway = curl + 0.20 * build.swing(i);
            let length = reach * (1.0 + 0.06 * build.swing(i + 4));
            let points = [
                V(0.0, 0.0),
                V::polar(turn, core * 0.8),
                V::polar(turn + sway * 0.35, lerp(core, length, 0.55)),
                V::polar(turn + sway, length),
            ];
            Tube::along(
                |u| curve(&points, u),
                |u| {
                    let bump = 1.0 + bumps * (u * segments * TAU).cos();
                    let round = round_end((1.0 - u) * 7.0);
                    lerp(root, tip, u) * bump * round
                },
                36,
            )
        })
        .collect();
    if build.get(Gene::Ornament) > 0.55 {
        // Spines along the arms.
        let length = build.span(Gene::Ornament, 0.03, 0.14);
        let mut spines = vec![];
        for tube in &arm_tubes {
            for i in 0..6 {
                for side in [-1.0, 1.0] {
                    let u = 0.42 + 0.1 * i as f32;
                    let (from, edge) = (tube.at(u, 0.0), tube.at(u, side));
                    let out = edge - from;
                    let to = edge + out * (length / out.length().max(1e-3));
                    spines.push(Tube::limb(&[from, to], 0.022, 0.012).outline());
                }
            }
        }
        build.add(Part::new(spines, build.palette.accent).relief(0.02).shadow(0.2));
    }
    let tips = build.get(Gene::TailShape) > 0.5;
    let mut star =
        Part::new(arm_tubes.iter().map(Tube::outline).chain([disc(V(0.0, 0.0), core)]), build.palette.body);
    for tube in &arm_tubes {
        if tips {
            star = star.mark(tube.patch(0.84, 1.0, -1.3, 1.3), build.palette.accent, 0.85);
        }
        star = star.marks(build.pattern(tube, 0.30, 0.98));
    }
    build.add(star.relief(root * 1.3).gloss(0.2));

    // The disc, raised a little, with a ring of knobs and a face.
    let face = core * build.span(Gene::Head, 0.72, 1.0);
    let colour = mix(build.palette.body, build.palette.belly, 0.35);
    let smile_at = V(0.0, face * 0.38);
    let smile = Tube::limb(
        &[smile_at + V(-face * 0.28, -0.03), smile_at + V(0.0, face * 0.1), smile_at + V(face * 0.28, -0.03)],
        0.014,
        0.014,
    );
    let mut middle = Part::new([disc(V(0.0, 0.0), face)], colour).relief(face * 0.8).ink(0.35).mark(
        smile.outline(),
        lighten(colour, -0.75),
        0.9,
    );
    for side in [-1.0, 1.0] {
        middle = middle.mark(disc(V(side * face * 0.62, face * 0.25), face * 0.16), [0.93, 0.45, 0.42], 0.45);
    }
    build.add(middle);
    let eyes = build.count(Gene::EyeCount, 1, 3);
    for i in 0..eyes {
        let t = if eyes > 1 { i as f32 / (eyes - 1) as f32 * 2.0 - 1.0 } else { 0.0 };
        let lift = if eyes == 3 { 0.18 * (1.0 - t.abs()) } else { 0.0 };
        build.eye(V(t * face * 0.44, -face * (0.16 + lift)), face * [0.42, 0.32, 0.25][eyes - 1]);
    }
    View::Side
}
