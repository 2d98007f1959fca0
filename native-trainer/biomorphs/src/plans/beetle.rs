//! Beetles: three body parts under a split shell, six jointed legs.

use std::f32::consts::PI;

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, disc, egg},
};

pub(super) fn grow(build: &mut Build) -> View {
    let girth = build.span(Gene::Girth, 0.24, 0.50);
    let peak = build.span(Gene::Taper, 0.36, 0.62);
    let head = build.span(Gene::Head, 0.11, 0.22);
    let chest = girth * build.span(Gene::FinSize, 0.55, 0.95);
    let bend = build.pose.bend * 0.12;
    let leg = build.span(Gene::LimbLength, 0.28, 0.62);
    let width = build.span(Gene::LimbWidth, 0.022, 0.055);

    let neck = V(0.30, 0.0);
    let chest_end = V(0.62, bend * 0.5);
    let face = V(0.62 + head * 0.75, bend);

    // Legs: hip, knee, foot.
    for (i, hip) in [V(0.48, 0.0), V(0.12, 0.0), V(-0.2, 0.0)].into_iter().enumerate() {
        for side in [-1.0, 1.0] {
            let swing = build.swing(i + if side > 0.0 { 2 } else { 0 }) * 0.16;
            let forward = [0.75, -0.15, -0.85][i] + swing;
            let out = V(forward * 0.55, 1.0);
            let root = hip + V(0.0, chest * 0.5).side(side);
            let knee = root + V(out.0, out.1 * side) * (leg * 0.55 + chest * 0.5);
            let foot = knee + V(forward.signum() * 0.35 + forward * 0.3, 0.75 * side) * (leg * 0.6);
            let upper = Tube::limb(&[root, knee], width * 1.25, width);
            let lower = Tube::limb(&[knee, foot], width * 0.9, width * 0.5);
            let colour = build.palette.accent;
            build.add(Part::new([upper.outline(), lower.outline()], colour).relief(width).shadow(0.3));
        }
    }
    for side in [-1.0, 1.0] {
        build.antenna(face + V(head * 0.6, head * 0.35).side(side), V(0.8, 0.6 * side), -side, 0.5);
    }
    if build.get(Gene::Ornament) > 0.55 {
        // Jaws, or the horns of a stag beetle.
        let length = build.span(Gene::Ornament, 0.05, 0.42);
        for side in [-1.0, 1.0] {
            let root = face + V(head * 0.6, head * 0.4).side(side);
            let points = [
                root,
                root + V(length * 0.5, length * 0.38).side(side),
                root + V(length, length * 0.05).side(side),
            ];
            let jaw = Tube::limb(&points, 0.05, 0.015);
            let colour = lighten(build.palette.accent, -0.2);
            build.add(Part::new([jaw.outline()], colour).relief(0.03).gloss(0.6));
        }
    }
    let skull = Tube::new(&[face - V(head, 0.0), face + V(head, 0.0)], |u| head * egg(u, 0.5, 0.45));
    build.add(Part::new([skull.outline()], build.palette.accent).relief(head * 0.7).gloss(0.5));
    let eye = head * 0.42;
    for side in [-1.0, 1.0] {
        build.eye(face + V(head * 0.25, head * 0.72).side(side), eye);
    }
    let shield = Tube::new(&[neck - V(0.08, 0.0), chest_end + V(0.03, 0.0)], |u| chest * egg(u, 0.42, 0.36));
    let colour = mix(build.palette.body, build.palette.accent, 0.35);
    build.add(Part::new([shield.outline()], colour).relief(0.16).gloss(0.5));

    // Wing cases: two halves of an egg, open a little if the limbs are spread.
    let open = 0.02 + 0.13 * build.pose.spread * build.pose.spread;
    let length = build.span(Gene::TailLength, 0.92, 1.22);
    let belly = Tube::new(&[neck, neck - V(length * 0.96, 0.0)], |u| girth * 0.9 * egg(u, peak, 0.42));
    let rings = (1..7).map(|i| belly.patch(i as f32 / 7.0, i as f32 / 7.0 + 0.03, -1.0, 1.0));
    let part = rings.fold(Part::new([belly.outline()], build.palette.belly), |part, ring| {
        part.mark(ring, build.palette.accent, 0.5)
    });
    build.add(part);
    let way = V::polar(PI - open, length);
    let case = Tube::new(&[neck, neck + way], |u| girth * egg(u, peak, 0.40));
    let seam = lighten(build.palette.body, -0.5);
    let half = Part::new([case.patch(0.0, 1.0, -1.0, 0.0)], build.palette.body)
        .marks(build.pattern(&case, 0.0, 1.0))
        .mark(case.patch(0.0, 1.0, -0.05, 0.05), seam, 0.5)
        .relief(girth * 0.6)
        .gloss(0.6);
    build.add_pair(half);
    let scutellum = disc(neck - V(0.03, 0.0), 0.05);
    build.add(Part::new([scutellum], build.palette.accent).relief(0.04).shadow(0.2));
    View::Above
}
