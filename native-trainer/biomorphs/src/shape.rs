//! Shapes: points, smooth curves, and the tubes that creatures are made of.

use std::f32::consts::{PI, TAU};
use std::ops::{Add, Mul, Neg, Sub};

use tiny_skia::{Path, PathBuilder};

/// A point or a direction in the plane; y points down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct V(pub(crate) f32, pub(crate) f32);

impl V {
    /// The vector of length `r` at `angle`.
    pub(crate) fn polar(angle: f32, r: f32) -> Self {
        Self(angle.cos() * r, angle.sin() * r)
    }

    /// The vector mirrored at the x axis if `side` is −1, unchanged if it is 1.
    pub(crate) fn side(self, side: f32) -> Self {
        Self(self.0, self.1 * side)
    }

    pub(crate) fn length(self) -> f32 {
        self.0.hypot(self.1)
    }

    /// The higher of two points in the picture.
    pub(crate) fn min_y(self, other: Self) -> Self {
        if self.1 <= other.1 { self } else { other }
    }

    /// The lower of two points in the picture.
    pub(crate) fn max_y(self, other: Self) -> Self {
        if self.1 >= other.1 { self } else { other }
    }

    /// The unit vector at a right angle.
    fn normal(self) -> Self {
        let length = self.length().max(1e-6);
        Self(-self.1 / length, self.0 / length)
    }
}

impl Add for V {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1)
    }
}

impl Sub for V {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1)
    }
}

impl Mul<f32> for V {
    type Output = Self;
    fn mul(self, by: f32) -> Self {
        Self(self.0 * by, self.1 * by)
    }
}

impl Neg for V {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

/// `a` at 0, `b` at 1.
pub(crate) fn lerp(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

/// 0 below `low`, 1 above `high`, smooth between.
pub(crate) fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// A quarter circle from 0 at 0 to 1 at 1, and 1 beyond. Rounds the end of a profile.
pub(crate) fn round_end(x: f32) -> f32 {
    let rest = 1.0 - x.clamp(0.0, 1.0);
    (1.0 - rest * rest).sqrt()
}

/// The profile of an egg over u = 0 … 1: 0 at both ends and 1 at `peak`. With `power` ½ the ends are round, with
/// 1 pointed.
pub(crate) fn egg(u: f32, peak: f32, power: f32) -> f32 {
    let (a, b) = (2.0 * power * peak, 2.0 * power * (1.0 - peak));
    let top = peak.powf(a) * (1.0 - peak).powf(b);
    u.clamp(0.0, 1.0).powf(a) * (1.0 - u.clamp(0.0, 1.0)).powf(b) / top
}

/// A smooth closed outline close to the points.
pub(crate) fn blob(points: &[V]) -> Option<Path> {
    let middle = |a: V, b: V| (a + b) * 0.5;
    let mut builder = PathBuilder::new();
    let start = middle(*points.last()?, points[0]);
    builder.move_to(start.0, start.1);
    for (i, &p) in points.iter().enumerate() {
        let to = middle(p, points[(i + 1) % points.len()]);
        builder.quad_to(p.0, p.1, to.0, to.1);
    }
    builder.close();
    builder.finish()
}

/// An ellipse with half axes `a` (along `angle`) and `b`.
pub(crate) fn ellipse(centre: V, a: f32, b: f32, angle: f32) -> Option<Path> {
    // A blob passes just inside its corners, so make it 2 % larger.
    let points: Vec<V> = (0..16)
        .map(|i| {
            let t = TAU * i as f32 / 16.0;
            let (x, y) = (a * t.cos() * 1.02, b * t.sin() * 1.02);
            centre + V(x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos())
        })
        .collect();
    blob(&points)
}

/// A disc.
pub(crate) fn disc(centre: V, radius: f32) -> Option<Path> {
    PathBuilder::from_circle(centre.0, centre.1, radius)
}

/// The point at t = 0 … 1 of the smooth curve (Catmull-Rom) through the points.
pub(crate) fn curve(points: &[V], t: f32) -> V {
    let last = points.len() - 1;
    let x = t.clamp(0.0, 1.0) * last as f32;
    let i = (x as usize).min(last.saturating_sub(1));
    let t = x - i as f32;
    let at = |k: isize| points[(i as isize + k).clamp(0, last as isize) as usize];
    let (a, b, c, d) = (at(-1), at(0), at(1), at(2));
    b + (c - a) * (0.5 * t)
        + (a * 2.0 - b * 5.0 + c * 4.0 - d) * (0.5 * t * t)
        + (b * 3.0 - a - c * 3.0 + d) * (0.5 * t * t * t)
}

/// A curved, tapering body: a spine, and a half-width at each point of it.
///
/// Its coordinates are u, from 0 at the start of the spine to 1 at its end, and v, from −1 to 1 across it.
pub(crate) struct Tube {
    rings: Vec<Ring>,
}

struct Ring {
    u: f32,
    centre: V,
    normal: V,
    half: f32,
}

impl Tube {
    /// A tube around the smooth curve through `spine`, with the half-width `half(u)`.
    pub(crate) fn new(spine: &[V], half: impl Fn(f32) -> f32) -> Self {
        Self::along(|u| curve(spine, u), half, 22)
    }

    /// A tube around any curve, made of `count` + 1 rings. They are closer together at the ends, which look round.
    pub(crate) fn along(spine: impl Fn(f32) -> V, half: impl Fn(f32) -> f32, count: usize) -> Self {
        let rings = (0..=count)
            .map(|i| {
                let u = 0.5 - 0.5 * (PI * i as f32 / count as f32).cos();
                let ahead = spine((u + 0.01).min(1.0));
                let behind = spine((u - 0.01).max(0.0));
                Ring { u, centre: spine(u), normal: (ahead - behind).normal(), half: half(u).max(0.0) }
            })
            .collect();
        Self { rings }
    }

    /// A limb whose half-width goes from `start` to `end`, with round ends.
    pub(crate) fn limb(points: &[V], start: f32, end: f32) -> Self {
        let length: f32 = points.windows(2).map(|p| (p[1] - p[0]).length()).sum::<f32>().max(1e-3);
        Self::along(
            |u| curve(points, u),
            |u| {
                let half = lerp(start, end, u);
                // Both ends are quarter circles.
                let to_end = (u.min(1.0 - u) * length / half.max(1e-4)).min(1.0);
                half * round_end(to_end)
            },
            18,
        )
    }

    /// The point at (u, v).
    pub(crate) fn at(&self, u: f32, v: f32) -> V {
        let next = self.rings.iter().position(|ring| ring.u >= u).unwrap_or(self.rings.len() - 1).max(1);
        let (a, b) = (&self.rings[next - 1], &self.rings[next]);
        let t = ((u - a.u) / (b.u - a.u)).clamp(0.0, 1.0);
        a.centre * (1.0 - t)
            + b.centre * t
            + (a.normal * (1.0 - t) + b.normal * t) * (lerp(a.half, b.half, t) * v)
    }

    /// Half the width at u.
    pub(crate) fn half(&self, u: f32) -> f32 {
        (self.at(u, 1.0) - self.at(u, 0.0)).length()
    }

    /// The outline.
    pub(crate) fn outline(&self) -> Option<Path> {
        self.patch(0.0, 1.0, -1.0, 1.0)
    }

    /// The outline of the part from u0 to u1 and v0 to v1. A v beyond ±1 lies outside the tube.
    pub(crate) fn patch(&self, u0: f32, u1: f32, v0: f32, v1: f32) -> Option<Path> {
        let us: Vec<f32> = if u0 == 0.0 && u1 == 1.0 {
            self.rings.iter().map(|ring| ring.u).collect()
        } else {
            (0..=12).map(|i| lerp(u0, u1, i as f32 / 12.0)).collect()
        };
        let mut points: Vec<V> = us.iter().map(|&u| self.at(u, v0)).collect();
        points.extend(us.iter().rev().map(|&u| self.at(u, v1)));
        polygon(&points)
    }
}

/// A polygon with sharp corners.
pub(crate) fn polygon(points: &[V]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    builder.move_to(points[0].0, points[0].1);
    for p in &points[1..] {
        builder.line_to(p.0, p.1);
    }
    builder.close();
    builder.finish()
}
