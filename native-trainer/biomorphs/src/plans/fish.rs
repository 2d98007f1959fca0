//! Fish: a body that tapers into a tail, and fins of several shapes.

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, blob, egg, lerp, smoothstep},
};

pub(super) fn grow(build: &mut Build) -> View {
    let girth = build.span(Gene::Girth, 0.25, 0.54);
    let peak = build.span(Gene::Head, 0.28, 0.50);
    let power = build.span(Gene::Taper, 0.42, 0.75);
    let wave = build.pose.bend * 0.14;
    let spine = [V(0.85, 0.0), V(0.4, -wave * 0.4), V(-0.1, 0.0), V(-0.6, wave), V(-0.82, wave * 1.4)];
    let body = Tube::new(&spine, |u| girth * egg(u, peak, power).max(0.16 * smoothstep(0.5, 0.95, u)));
    let end = spine[4];
    let fin_colour = build.palette.accent;
    let fin_tip = mix(build.palette.accent, build.palette.belly, 0.55);
    let fin = |points: &[V]| {
        Part::new([blob(points)], fin_colour)
            .fade(points[0], points[points.len() / 2], fin_tip)
            .relief(0.05)
            .opacity(0.92)
    };

    // Tail: forked, straight or round.
    let tail = build.span(Gene::TailLength, 0.22, 0.62);
    let fork = build.span(Gene::TailShape, -0.25, 0.75);
    let high = tail * build.span(Gene::FinSize, 0.6, 1.0);
    let sway = wave * 1.2;
    let tail_points = [
        end + V(0.10, 0.0),
        end + V(-tail * 0.35, -high * 0.55 + sway * 0.4),
        end + V(-tail * 1.05, -high + sway),
        end + V(-tail * 1.0, -high * 0.8 + sway),
        end + V(-tail * (1.0 - fork), -high * 0.2 + sway),
        end + V(-tail * (1.0 - fork), high * 0.2 + sway),
        end + V(-tail * 1.0, high * 0.8 + sway),
        end + V(-tail * 1.05, high + sway),
        end + V(-tail * 0.35, high * 0.55 + sway * 0.4),
    ];
    let ray = lighten(build.palette.accent, -0.3);
    let rays = [-0.75, -0.4, 0.0, 0.4, 0.75].map(|t: f32| {
        let to = end + V(-tail * (1.0 - fork * (1.0 - t.abs())), high * t + sway);
        Tube::limb(&[end, to], 0.012, 0.006).outline()
    });
    build.add(rays.into_iter().fold(fin(&tail_points), |part, path| part.mark(path, ray, 0.5)));

    // Back fin: a sail, or spines.
    let height = girth * 0.4 + build.span(Gene::FinSize, 0.05, 0.45);
    let (from, to) = (0.25, build.span(Gene::LimbLength, 0.5, 0.82));
    let back = |u: f32| body.at(u, 0.75);
    let lean = build.span(Gene::FinShape, -0.05, 0.35);
    if build.get(Gene::Ornament) > 0.6 {
        let spines = build.count(Gene::Segments, 3, 8);
        for i in 0..spines {
            let u = lerp(from, to, i as f32 / (spines - 1) as f32);
            let size = height * (1.0 - 0.5 * i as f32 / spines as f32);
            let points = [back(u), back(u) + V(-lean * size - 0.05, -size)];
            build.add(Part::new([Tube::limb(&points, 0.035, 0.008).outline()], fin_colour).relief(0.03));
        }
    }
    let mut sail = vec![back(from), back((from + to) / 2.0) + V(0.0, 0.1), back(to)];
    let crest = build.get(Gene::FinShape);
    for i in 0..5 {
        let t = 1.0 - i as f32 / 4.0;
        let rise = height * lerp(egg(t * 0.96 + 0.02, 0.4, 0.5), 1.0 - t * 0.75, crest);
        let sway = build.swing(i) * 0.02;
        sail.push(back(lerp(from, to, t)) + V(-lean * rise + sway, -rise));
    }
    let rays = (1..6).map(|i| {
        let u = lerp(from, to, i as f32 / 6.0);
        Tube::limb(&[body.at(u, 0.5), back(u) + V(-lean * height, -height)], 0.010, 0.006).outline()
    });
    build.add(rays.fold(fin(&sail), |part, path| part.mark(path, ray, 0.5)));
    // Belly fin.
    let keel = body.at(0.62, -0.75);
    let length = build.span(Gene::LimbLength, 0.10, 0.36);
    build.add(fin(&[
        keel,
        keel + V(0.10, length * 0.1),
        keel + V(-length * 0.6, length),
        keel + V(-length * 0.9, length * 0.85),
        keel + V(-0.16, -0.02),
    ]));

    let bodied = build.skin(&body, girth * 0.75).gloss(0.45).fade(
        V(0.0, girth * 0.1),
        V(0.0, girth * 0.95),
        build.palette.belly,
    );
    // A face without marks, a gill behind it, a mouth.
    let face = mix(build.palette.body, build.palette.belly, 0.3);
    let gill = build.span(Gene::Head, 0.20, 0.32);
    let bodied = bodied.mark(body.patch(0.0, gill, -1.2, 1.2), face, 1.0).mark(
        body.patch(gill, gill + 0.022, -0.72, 0.6),
        lighten(build.palette.body, -0.35),
        0.7,
    );
    let lip = body.at(0.02, -0.5);
    let mouth = Tube::limb(&[lip + V(0.04, 0.0), lip + V(-0.08, 0.03), lip + V(-0.14, -0.005)], 0.012, 0.012);
    build.add(bodied.mark(mouth.outline(), lighten(build.palette.body, -0.7), 0.85));

    // Chest fin, paddling.
    let chest = body.at(gill + 0.12, -0.28);
    let paddle = build.span(Gene::LimbWidth, 0.14, 0.34);
    let angle = 2.55 + build.swing(1) * 0.25 + 0.3 * build.pose.spread;
    let out = V::polar(std::f32::consts::TAU - angle, 1.0).side(-1.0);
    let across = V(-out.1, out.0);
    let points = [
        chest,
        chest + out * (paddle * 0.6) + across * (paddle * 0.34),
        chest + out * (paddle * 1.1) + across * (paddle * 0.22),
        chest + out * (paddle * 1.05) - across * (paddle * 0.24),
        chest + out * (paddle * 0.4) - across * (paddle * 0.2),
    ];
    build.add(fin(&points).opacity(0.96));
    if build.get(Gene::AntennaLength) > 0.6 {
        // Barbels, as in a catfish.
        build.antenna(lip + V(-0.02, 0.02), V(0.3, 0.95), 1.0, 0.26);
    }
    let eye = body.at(0.13, 0.22);
    build.eye(eye, lerp(0.095, 0.15, build.get(Gene::EyeCount)));
    View::Side
}
