//! Moths and butterflies: two pairs of patterned wings and a slender body.

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, curve, disc, egg, lerp},
};

pub(super) fn grow(build: &mut Build) -> View {
    let body = build.span(Gene::Girth, 0.055, 0.13);
    let fore = build.span(Gene::FinSize, 0.72, 1.05);
    let hind = fore * build.span(Gene::TailLength, 0.5, 0.92);
    let chord = build.span(Gene::LimbWidth, 0.20, 0.40);
    let point = build.span(Gene::FinShape, 0.45, 0.78);
    let scallop = build.span(Gene::Curl, -0.06, 0.10).max(0.0);
    let sweep = build.span(Gene::LimbLength, -0.15, 0.65);
    let tails = build.get(Gene::TailShape);
    // Beating wings look narrower from above.
    let fold = lerp(0.62, 1.0, build.pose.spread);

    let tip = V(-0.18 - hind * 0.42, hind * 0.80 * fold);
    let root = V(-0.02, body * 0.3);
    let wing = Tube::along(
        |u| curve(&[root, (root + tip) * 0.5 + V(-0.05, 0.01), tip], u),
        |u| chord * 1.1 * fold.sqrt() * egg(u, 0.60, 0.58) * (1.0 + scallop * (u * 34.0).sin()),
        48,
    );
    let mut paths = vec![wing.outline()];
    if tails > 0.6 {
        // Swallow tails.
        let from = wing.at(0.90, 0.0);
        let to = from + V(-0.38 * tails, 0.06);
        paths.push(Tube::limb(&[from, (from + to) * 0.5 + V(0.0, 0.03), to], 0.085, 0.018).outline());
    }
    let edge = mix(build.palette.belly, build.palette.accent, 0.35);
    build.add_pair(
        Part::new(paths, build.palette.belly)
            .fade(root, tip, edge)
            .marks(build.pattern(&wing, 0.25, 0.95))
            .relief(0.06)
            .gloss(0.1),
    );

    let tip = V(0.12 + sweep * fore, fore * fold);
    let root = V(0.16, body * 0.3);
    let wing = Tube::along(
        |u| curve(&[root, (root + tip) * 0.5 + V(0.06, 0.0), tip], u),
        |u| chord * fold.sqrt() * egg(u, point, 0.58) * (1.0 + scallop * (u * 34.0).sin()),
        48,
    );
    let rim = lighten(build.palette.accent, -0.1);
    let mut part = Part::new([wing.outline()], build.palette.body)
        .marks(build.pattern(&wing, 0.2, 0.84))
        .mark(wing.patch(0.84, 1.0, -1.2, 1.2), rim, 0.9)
        .relief(0.07)
        .gloss(0.15);
    for v in [-0.6, -0.2, 0.2, 0.6] {
        let vein =
            Tube::limb(&[wing.at(0.05, v * 0.3), wing.at(0.5, v), wing.at(0.94, v * 1.2)], 0.009, 0.005);
        part = part.mark(vein.outline(), rim, 0.45);
    }
    // Pale dots along the rim.
    for v in [-0.6, -0.2, 0.2, 0.6] {
        part = part.mark(disc(wing.at(0.90, v), chord * 0.06), build.palette.belly, 0.9);
    }
    if build.get(Gene::EyeCount) > 0.5 {
        // False eyes that scare birds.
        let at = wing.at(0.60, 0.0);
        let r = chord * 0.38 * fold;
        part = part
            .mark(disc(at, r), rim, 1.0)
            .mark(disc(at, r * 0.74), build.palette.mark, 1.0)
            .mark(disc(at, r * 0.42), [0.08, 0.06, 0.10], 1.0)
            .mark(disc(at + V(r * 0.14, -r * 0.14), r * 0.13), [1.0; 3], 0.9);
    }
    build.add_pair(part);

    let head = body * build.span(Gene::Head, 1.0, 1.5);
    let face = V(0.34 + head * 0.5, 0.0);
    for side in [-1.0, 1.0] {
        build.antenna(face + V(head * 0.5, head * 0.3).side(side), V(0.8, 0.6 * side), -0.6 * side, 0.42);
    }
    let segments = build.count(Gene::Segments, 4, 9);
    let length = build.span(Gene::Taper, 0.42, 0.78);
    let bend = build.pose.bend * 0.06;
    let abdomen = Tube::along(
        |u| V(lerp(0.05, -length, u), bend * u * u),
        |u| {
            let bump = (u * segments as f32 * std::f32::consts::PI).sin().abs();
            body * egg(u, 0.35, 0.40) * (0.86 + 0.14 * bump)
        },
        40,
    );
    let mut part = Part::new([abdomen.outline()], build.palette.accent).relief(body);
    for i in 1..segments {
        let u = i as f32 / segments as f32;
        part = part.mark(abdomen.patch(u - 0.012, u + 0.02, -1.0, 1.0), build.palette.mark, 0.55);
    }
    build.add(part);
    let chest = Tube::new(&[V(-0.06, 0.0), V(0.34, 0.0)], |u| body * 1.35 * egg(u, 0.55, 0.40));
    build.add(Part::new([chest.outline()], mix(build.palette.accent, build.palette.body, 0.3)).relief(body));
    build.add(Part::new([disc(face, head)], build.palette.accent).relief(head * 0.8));
    for side in [-1.0, 1.0] {
        build.eye(face + V(head * 0.25, head * 0.62).side(side), head * 0.50);
    }
    View::Above
}
