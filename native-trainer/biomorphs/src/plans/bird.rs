//! Birds: a plump body on two thin legs, and beaks of many shapes.

use std::f32::consts::PI;

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, blob, disc, egg, lerp},
};

pub(super) fn grow(build: &mut Build) -> View {
    let girth = build.span(Gene::Girth, 0.28, 0.46);
    let head = build.span(Gene::Head, 0.17, 0.29);
    let neck = build.span(Gene::AntennaLength, 0.0, 0.42);
    let leg = build.span(Gene::LimbLength, 0.14, 0.60);
    let tail = build.span(Gene::TailLength, 0.22, 0.68);
    let tilt = build.span(Gene::Curl, -0.05, 0.30);
    let nod = 0.05 * build.pose.bend;
    let colours = build.palette;

    let chest = V(0.36, -tilt * 0.6);
    let rump = V(-0.46, tilt * 0.8);
    let face = chest + V(0.12 + 0.05 * nod, -girth * 0.62 - neck - head * 0.45 + nod);

    // Tail feathers, fanned.
    let fan = build.span(Gene::TailShape, 0.05, 0.42) * lerp(0.8, 1.2, build.pose.spread);
    let feathers = build.count(Gene::Segments, 2, 5);
    for i in 0..feathers {
        let t = i as f32 / (feathers - 1) as f32 * 2.0 - 1.0;
        let angle = PI - 0.25 - t * fan + tilt * -0.4;
        let way = V::polar(angle, 1.0).side(-1.0);
        let from = rump + V(0.12, 0.0);
        let quill =
            Tube::new(&[from, from + V(way.0, -way.1) * (tail + 0.12)], |u| 0.085 * egg(u, 0.7, 0.42));
        let colour = mix(colours.accent, colours.body, 0.25 * i as f32 / feathers as f32);
        build.add(
            Part::new([quill.outline()], colour)
                .mark(quill.patch(0.72, 0.84, -1.0, 1.0), colours.mark, 0.7)
                .relief(0.05),
        );
    }
    // Legs.
    let width = build.span(Gene::LimbWidth, 0.018, 0.036);
    let horn = mix([0.93, 0.62, 0.24], colours.accent, 0.35);
    for (i, x) in [0.12, -0.06].into_iter().enumerate() {
        let hip = V(x, girth * 0.72);
        let step = 0.09 * build.swing(i * 2);
        let ankle = hip + V(step, girth * 0.25 + leg);
        let mut paths = vec![
            Tube::limb(
                &[hip, hip + V(step * 0.5 - 0.04, (girth * 0.25 + leg) * 0.5), ankle],
                width,
                width * 0.8,
            )
            .outline(),
        ];
        for toe in [0.14, 0.07, -0.08] {
            paths.push(Tube::limb(&[ankle, ankle + V(toe, 0.035)], width * 0.9, width * 0.5).outline());
        }
        let colour = lighten(horn, if i == 0 { -0.3 } else { 0.0 });
        build.add(Part::new(paths, colour).relief(width).shadow(0.2));
    }
    // A crest behind the head.
    let crest = build.get(Gene::Ornament);
    if crest > 0.5 {
        let length = lerp(-0.05, 0.34, crest);
        let plumes = 2 + (build.get(Gene::AntennaShape) * 2.99) as usize;
        for i in 0..plumes {
            let angle = -PI * 0.5 - 0.35 * i as f32 - 0.1;
            let root = face + V::polar(angle, head * 0.7);
            let tip = root + V::polar(angle - 0.25 + 0.05 * build.swing(i), length);
            let plume = Tube::limb(&[root, tip], 0.035, 0.02);
            build.add(Part::new([plume.outline(), disc(tip, 0.034)], colours.accent).relief(0.03));
        }
    }
    // Beak: upper and lower, long or short, straight or hooked.
    let beak = build.span(Gene::FinShape, 0.13, 0.46);
    let deep = build.span(Gene::LimbCount, 0.05, 0.13);
    let hook = build.span(Gene::AntennaShape, -0.05, 0.14);
    let gape = 0.06 * build.pose.spread;
    let mouth = face + V(head * 0.72, head * 0.12);
    let upper = [
        mouth + V(-0.06, -deep),
        mouth + V(beak * 0.5, -deep * 0.8 - gape * 0.3),
        mouth + V(beak, hook),
        mouth + V(beak * 0.5, deep * 0.12 - gape * 0.2),
        mouth + V(-0.06, deep * 0.1),
    ];
    let lower = [
        mouth + V(-0.06, 0.0),
        mouth + V(beak * 0.45, deep * 0.1 + gape * 0.3),
        mouth + V(beak * 0.8, hook * 0.7 + gape),
        mouth + V(beak * 0.4, deep * 0.7 + gape),
        mouth + V(-0.06, deep * 0.8),
    ];
    build.add(Part::new([blob(&lower)], lighten(horn, -0.2)).relief(deep * 0.6));
    build.add(Part::new([blob(&upper)], horn).relief(deep * 0.6).gloss(0.5));

    // Body and neck in one, then the head, so that the chin stays crisp.
    let power = build.span(Gene::Taper, 0.38, 0.60);
    let trunk = Tube::new(&[chest + V(0.12, 0.0), V(0.0, 0.02), rump + V(-0.06, 0.0)], |u| {
        girth * egg(u, 0.42, power)
    });
    let neck_tube = Tube::limb(
        &[face, (face + chest) * 0.5 + V(0.05, 0.0), chest + V(-0.08, 0.1)],
        head * 0.72,
        girth * 0.62,
    );
    let hood = mix(colours.body, colours.accent, if build.get(Gene::EyeCount) > 0.5 { 0.55 } else { 0.0 });
    build.add(
        Part::new([trunk.outline(), neck_tube.outline()], colours.body)
            .fade(V(0.0, -girth * 0.1), V(0.0, girth * 0.8), colours.belly)
            .marks(build.pattern(&trunk, 0.04, 0.96))
            .relief(girth * 0.7)
            .gloss(0.15),
    );
    build.add(
        Part::new([disc(face, head)], hood)
            .fade(face, face + V(0.0, head * 1.1), mix(hood, colours.belly, 0.6))
            .relief(head * 0.8)
            .ink(0.3)
            .gloss(0.15)
            .shadow(0.2),
    );

    // The wing: long feathers below, coverts above. Its tip lifts with the stride.
    let wing = build.span(Gene::FinSize, 0.55, 0.90);
    let lift = 0.22 * build.pose.spread * build.swing(1);
    let shoulder = chest + V(0.02, -girth * 0.10);
    let colour = mix(colours.body, colours.accent, 0.7);
    for i in 0..4 {
        let t = i as f32 / 3.0;
        let end =
            shoulder + V(-wing * lerp(1.0, 0.72, t), girth * lerp(0.10, 0.52, t) - lift * (1.0 - t * 0.5));
        let feather = Tube::new(&[shoulder + V(-0.1, 0.03), end], |u| girth * 0.15 * egg(u, 0.66, 0.5));
        let part = Part::new([feather.outline()], lighten(colour, -0.12 * t)).mark(
            feather.patch(0.80, 1.0, -1.2, 1.2),
            colours.mark,
            0.75,
        );
        build.add(part.relief(0.04).gloss(0.1).shadow(0.3));
    }
    let covert =
        Tube::new(&[shoulder + V(0.07, -0.02), shoulder + V(-wing * 0.62, girth * 0.24 - lift * 0.5)], |u| {
            girth * 0.40 * egg(u, 0.36, 0.52)
        });
    build.add(
        Part::new([covert.outline()], mix(colour, colours.body, 0.35)).relief(0.10).gloss(0.15).ink(0.4),
    );
    build.eye(face + V(head * 0.25, -head * 0.18), head * 0.36);
    View::Side
}
