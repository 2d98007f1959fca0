//! Medusae: a bell, a frill, and trailing tentacles.

use std::f32::consts::{FRAC_PI_2, TAU};

use super::View;
use crate::{
    body::Build,
    canvas::Part,
    genome::Gene,
    palette::{lighten, mix},
    shape::{Tube, V, disc, ellipse, lerp},
};

pub(super) fn grow(build: &mut Build) -> View {
    let wide = build.span(Gene::Girth, 0.42, 0.72);
    let high = build.span(Gene::Head, 0.38, 0.80);
    let power = build.span(Gene::Taper, 0.28, 0.62);
    let pulse = 1.0 + 0.08 * (build.pose.phase * TAU).sin();
    let count = build.count(Gene::LimbCount, 4, 9);
    let length = build.span(Gene::LimbLength, 0.35, 1.15);
    let width = build.span(Gene::LimbWidth, 0.022, 0.060);
    let curl = build.span(Gene::Curl, 0.03, 0.16);
    let rim = 0.0;

    // Tentacles, thin ones behind.
    for i in 0..count {
        let t = if count > 1 { i as f32 / (count - 1) as f32 * 2.0 - 1.0 } else { 0.0 };
        let root = V(t * wide * 0.82, rim);
        let reach = length * (0.82 + 0.18 * (i as f32 * 2.4).sin());
        let points: Vec<V> = (0..7)
            .map(|k| {
                let s = k as f32 / 6.0;
                let wave = (s * TAU * 1.1 + build.pose.phase * TAU + i as f32 * 0.9).sin() * curl * s.sqrt();
                root + V(t * 0.18 * s + wave + build.pose.bend * 0.3 * s * s, reach * s)
            })
            .collect();
        let mut paths = vec![Tube::limb(&points, width, width * 0.45).outline()];
        if build.get(Gene::AntennaShape) < 0.33 {
            paths.push(disc(points[6], width * 1.3));
        }
        let colour = if i % 2 == 0 {
            build.palette.accent
        } else {
            mix(build.palette.accent, build.palette.belly, 0.45)
        };
        build.add(Part::new(paths, colour).relief(width * 1.2).shadow(0.15).opacity(0.95));
    }
    // Mouth arms, frilly.
    let arms = build.count(Gene::TailShape, 0, 3);
    for i in 0..arms {
        let t = if arms > 1 { i as f32 / (arms - 1) as f32 * 2.0 - 1.0 } else { 0.0 };
        let reach = build.span(Gene::TailLength, 0.3, 0.75);
        let points = [
            V(t * wide * 0.3, rim),
            V(t * wide * 0.36 + build.swing(i) * 0.05, reach * 0.5),
            V(t * wide * 0.25 + build.swing(i + 1) * 0.07 + build.pose.bend * 0.15, reach),
        ];
        let frill = Tube::new(&points, |u| {
            (0.10 - 0.07 * u) * (0.75 + 0.25 * (u * 26.0).sin()) * (1.0 - u.powi(8)).max(0.0).sqrt()
        });
        build.add(Part::new([frill.outline()], build.palette.belly).relief(0.06).shadow(0.15));
    }

    // The inside of the bell, then the bell as a tube from the crown down to its rim.
    let inside = ellipse(V(0.0, rim), wide * 0.94 * pulse, 0.13, 0.0);
    build.add(Part::new([inside], lighten(build.palette.body, -0.45)).relief(0.05));
    let bell = Tube::along(
        |u| V(build.pose.bend * 0.06 * (1.0 - u), lerp(-high, rim, u)),
        |u| wide * lerp(1.0, pulse, u) * (u * (2.0 - u)).powf(power),
        26,
    );
    let scallops = build.count(Gene::Segments, 4, 11);
    let skirt = build.span(Gene::FinSize, 0.03, 0.11);
    let mut paths = vec![bell.outline()];
    for i in 0..scallops {
        let t = (i as f32 + 0.5) / scallops as f32 * 2.0 - 1.0;
        let r = wide * pulse / scallops as f32;
        paths.push(ellipse(V(t * (wide * pulse - r * 0.2), rim), r * 1.02, skirt + r * 0.3, 0.0));
    }
    build.add(
        Part::new(paths, build.palette.body)
            .fade(V(0.0, -high), V(0.0, rim + 0.05), mix(build.palette.body, build.palette.belly, 0.6))
            .marks(build.pattern(&bell, 0.08, 0.82))
            .relief(wide * 0.55)
            .gloss(0.7),
    );
    if build.get(Gene::Ornament) > 0.6 {
        // A crown of knobs.
        for i in 0..5 {
            let angle = -FRAC_PI_2 + (i as f32 - 2.0) * 0.35;
            let at = V(angle.cos() * wide * 0.62, -high + (1.0 + angle.sin()) * high * 0.6);
            build.add(Part::new([disc(at, 0.05)], build.palette.accent).relief(0.04).gloss(0.6));
        }
    }
    // The face.
    let eyes = build.count(Gene::EyeCount, 1, 3);
    let apart = wide * 0.55;
    for i in 0..eyes {
        let t = if eyes > 1 { i as f32 / (eyes - 1) as f32 - 0.5 } else { 0.0 };
        build.eye(V(t * apart, -high * 0.30), [0.15, 0.11, 0.09][eyes - 1]);
    }
    let mouth = V(0.0, -high * 0.30 + if eyes == 2 { 0.09 } else { 0.17 });
    let smile =
        Tube::limb(&[mouth + V(-0.055, -0.01), mouth + V(0.0, 0.022), mouth + V(0.055, -0.01)], 0.012, 0.012);
    build.add(
        Part::new([smile.outline()], lighten(build.palette.body, -0.75)).relief(0.01).shadow(0.0).ink(0.0),
    );
    View::Side
}
