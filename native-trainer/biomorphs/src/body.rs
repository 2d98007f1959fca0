//! Parts that all body plans share: skin, patterns, eyes, antennae.

use std::f32::consts::TAU;

use crate::{
    canvas::{Mark, Part},
    genome::{Gene, Genome, Pattern},
    palette::{Palette, Rgb, lighten, luma, mix},
    shape::{Tube, V, blob, disc, ellipse, lerp, polygon, smoothstep},
};

/// What differs between the pictures of one species.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pose {
    /// How the body bends, −1 … 1.
    pub(crate) bend: f32,
    /// The phase of the stride, 0 … 1.
    pub(crate) phase: f32,
    /// How far limbs, wings and fins are spread, 0 … 1.
    pub(crate) spread: f32,
    /// The direction of the eyes; its length is at most 1.
    pub(crate) gaze: V,
    /// How far the eyelids are closed, 0 … 1.
    pub(crate) lids: f32,
    /// Shifts the marks a little, so that individuals differ, −1 … 1.
    pub(crate) individual: f32,
}

/// A creature under construction. Its parts lie from back to front; its head points to +x.
pub(crate) struct Build<'a> {
    pub(crate) genome: &'a Genome,
    pub(crate) palette: Palette,
    pub(crate) pose: Pose,
    pub(crate) parts: Vec<Part>,
}

impl Build<'_> {
    pub(crate) fn get(&self, gene: Gene) -> f32 {
        self.genome.get(gene)
    }

    pub(crate) fn span(&self, gene: Gene, low: f32, high: f32) -> f32 {
        self.genome.span(gene, low, high)
    }

    pub(crate) fn count(&self, gene: Gene, low: usize, high: usize) -> usize {
        self.genome.count(gene, low, high)
    }

    pub(crate) fn add(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Adds a part and its mirror image.
    pub(crate) fn add_pair(&mut self, part: Part) {
        self.parts.push(part.mirrored());
        self.parts.push(part);
    }

    /// The swing of limb number `i`, between −1 and 1.
    pub(crate) fn swing(&self, i: usize) -> f32 {
        ((self.pose.phase + i as f32 * 0.31) * TAU).sin()
    }

    /// The marks of the pattern on a tube between u0 and u1.
    pub(crate) fn pattern(&self, tube: &Tube, u0: f32, u1: f32) -> Vec<Mark> {
        let mut marks = vec![];
        let mut put = |path: Option<_>, colour: Rgb, opacity: f32| {
            marks.extend(path.map(|path| Mark { path, colour, opacity }));
        };
        let colour = self.palette.mark;
        let size = self.span(Gene::MarkSize, 0.55, 1.35);
        let density = self.get(Gene::MarkDensity);
        let phase = self.get(Gene::MarkPhase) + 0.04 * self.pose.individual;
        let wide = (0..9).map(|i| tube.half(lerp(u0, u1, i as f32 / 8.0))).fold(0.0, f32::max);
        let u = |t: f32| lerp(u0, u1, t);
        match self.genome.pattern {
            Pattern::Plain => {}
            Pattern::Spots | Pattern::Rings | Pattern::Freckles => {
                let (count, radius) = match self.genome.pattern {
                    Pattern::Spots => (lerp(7.0, 16.0, density), 0.23 * size),
                    Pattern::Rings => (lerp(4.0, 9.0, density), 0.31 * size),
                    _ => (lerp(22.0, 48.0, density), 0.075 * size),
                };
                for i in 0..count as usize {
                    // The additive recurrence of the plastic number fills the plane evenly.
                    let a = (phase + (i + 1) as f32 * 0.754_877_7).fract();
                    let b = (phase * 0.7 + (i + 1) as f32 * 0.569_840_3).fract();
                    let centre = tube.at(u(0.04 + 0.92 * a), 1.8 * b - 0.9);
                    let radius = wide * radius * (0.8 + 0.4 * (i as f32 * 0.618).fract());
                    put(disc(centre, radius), colour, 0.92);
                    if self.genome.pattern == Pattern::Rings {
                        put(disc(centre, radius * 0.62), self.palette.belly, 0.95);
                        put(disc(centre, radius * 0.28), mix(colour, [0.05; 3], 0.4), 0.95);
                    }
                }
            }
            Pattern::Bands => {
                let count = lerp(3.0, 7.99, density).floor();
                for i in 0..count as usize {
                    let middle = (i as f32 + 0.3 + 0.4 * phase) / count;
                    let half = 0.24 * size / count;
                    put(tube.patch(u(middle - half), u(middle + half), -1.2, 1.2), colour, 0.92);
                }
            }
            Pattern::Stripes => {
                let count = lerp(1.0, 4.99, density).floor();
                for i in 0..count as usize {
                    let v = (i as f32 + 0.3 + 0.4 * phase) / count * 2.0 - 1.0;
                    let half = 0.42 * size / (count + 0.6);
                    put(tube.patch(u(0.03), u(0.97), v - half, v + half), colour, 0.92);
                }
            }
            Pattern::Chevrons => {
                let count = lerp(4.0, 8.99, density).floor();
                for i in 0..count as usize {
                    let middle = (i as f32 + 0.5) / count;
                    let (half, lean) = (0.2 * size / count, (0.35 + 0.5 * phase) / count);
                    for side in [-1.0, 1.0] {
                        let corner = |t: f32, v: f32| tube.at(u(t.clamp(0.0, 1.0)), v * side);
                        let tip = middle - lean;
                        put(
                            polygon(&[
                                corner(middle + lean - half, 0.0),
                                corner(middle + lean + half, 0.0),
                                corner(tip + half, 1.15),
                                corner(tip - half, 1.15),
                            ]),
                            colour,
                            0.92,
                        );
                    }
                }
            }
            Pattern::Saddle => {
                let (middle, half) = (0.3 + 0.4 * phase, lerp(0.10, 0.24, density) * (0.6 + 0.5 * size));
                let points: Vec<V> = (0..14)
                    .map(|i| {
                        let (sin, cos) = (TAU * i as f32 / 14.0).sin_cos();
                        tube.at(u((middle + half * 1.25 * cos).clamp(0.0, 1.0)), -0.75 + 1.15 * sin)
                    })
                    .collect();
                put(blob(&points), colour, 0.95);
            }
        }
        marks
    }

    /// A tube in the body colour, with the pattern on it.
    pub(crate) fn skin(&self, tube: &Tube, relief: f32) -> Part {
        Part::new([tube.outline()], self.palette.body).marks(self.pattern(tube, 0.0, 1.0)).relief(relief)
    }

    /// Adds an eye that looks where the pose's gaze points.
    pub(crate) fn eye(&mut self, centre: V, radius: f32) {
        let radius = radius * self.span(Gene::EyeSize, 0.75, 1.3);
        let white = [0.98, 0.97, 0.93];
        let iris_colour = {
            let accent = self.palette.accent;
            // Keep the iris darker than the white and lighter than the pupil.
            lighten(accent, (0.42 - luma(accent)).clamp(-0.3, 0.3))
        };
        let look = centre + self.pose.gaze * (radius * 0.26);
        let (wide, high) = match self.get(Gene::Pupil) {
            p if p < 0.25 => (0.20, 0.50),
            p if p > 0.8 => (0.50, 0.22),
            _ => (0.46, 0.46),
        };
        let mut eye = Part::new([disc(centre, radius)], white)
            .mark(disc(look, radius * 0.74), iris_colour, 1.0)
            .mark(disc(look, radius * 0.74 * 0.8), lighten(iris_colour, 0.18), 1.0)
            .mark(ellipse(look, radius * wide, radius * high, 0.0), [0.06, 0.05, 0.08], 1.0)
            .mark(disc(look + V(-0.26, -0.28) * radius, radius * 0.2), [1.0; 3], 0.95)
            .mark(disc(look + V(0.22, 0.26) * radius, radius * 0.09), [1.0; 3], 0.6);
        if self.pose.lids > 0.05 {
            let lid = mix(self.palette.body, self.palette.accent, 0.25);
            let drop = lerp(-2.2, -0.15, smoothstep(0.0, 1.0, self.pose.lids));
            eye = eye.mark(disc(centre + V(0.0, drop - 0.9) * radius, radius * 1.6), lid, 1.0);
        }
        self.add(eye.relief(radius * 0.4).gloss(0.0).ink(0.8).shadow(0.3));
    }

    /// Adds an antenna that leaves `root` in direction `way` and bends to one side by `bow`.
    pub(crate) fn antenna(&mut self, root: V, way: V, bow: f32, length: f32) {
        let length = length * self.span(Gene::AntennaLength, 0.35, 1.35);
        let across = V(-way.1, way.0) * bow;
        let sway = 0.12 * self.swing(3);
        let points = [
            root,
            root + way * (length * 0.5) + across * (length * (0.05 + sway)),
            root + way * (length * 0.85) + across * (length * (0.3 + sway)),
            root + way * length + across * (length * (0.55 + sway)),
        ];
        let width = self.span(Gene::LimbWidth, 0.014, 0.024);
        let colour = self.palette.accent;
        let tip = points[3];
        let mut paths = vec![Tube::limb(&points, width * 1.2, width * 0.8).outline()];
        let shape = self.get(Gene::AntennaShape);
        if shape < 0.33 {
            paths.push(disc(tip, width * 3.0));
        } else if shape > 0.66 {
            // Feathered: side branches along the outer half.
            let stem = Tube::new(&points, |_| length * 0.16);
            for i in 0..5 {
                let u = 0.45 + 0.12 * i as f32;
                for side in [-1.0, 1.0] {
                    let from = stem.at(u, 0.0);
                    let to = stem.at((u + 0.13).min(1.0), side);
                    paths.push(Tube::limb(&[from, to], width * 0.9, width * 0.5).outline());
                }
            }
        }
        self.add(Part::new(paths, colour).relief(width * 1.5).ink(0.4).shadow(0.2));
    }
}
