//! Painting. A part is a silhouette with marks on it. It is lit as if it were softly inflated.

use tiny_skia::{
    Color, FillRule, GradientStop, LinearGradient, Mask, Paint, Path, Pixmap, Point, Rect, Shader,
    SpreadMode, Transform,
};

use crate::{
    palette::{Rgb, mix},
    shape::{V, smoothstep},
};

/// One piece of a creature, painted as a whole. Lengths are in the creature's units.
#[derive(Clone)]
pub(crate) struct Part {
    silhouette: Vec<Path>,
    base: Rgb,
    fade: Option<(V, V, Rgb)>,
    marks: Vec<Mark>,
    relief: f32,
    gloss: f32,
    opacity: f32,
    ink: f32,
    shadow: f32,
}

/// A flat patch of colour, clipped to its part.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(crate) path: Path,
    pub(crate) colour: Rgb,
    pub(crate) opacity: f32,
}

impl Part {
    /// A part of one colour. Empty paths are left out.
    pub(crate) fn new(silhouette: impl IntoIterator<Item = Option<Path>>, base: Rgb) -> Self {
        Self {
            silhouette: silhouette.into_iter().flatten().collect(),
            base,
            fade: None,
            marks: vec![],
            relief: 0.08,
            gloss: 0.25,
            opacity: 1.0,
            ink: 0.55,
            shadow: 0.35,
        }
    }

    /// Fades into another colour from `from` to `to`.
    pub(crate) fn fade(mut self, from: V, to: V, colour: Rgb) -> Self {
        self.fade = Some((from, to, colour));
        self
    }

    /// Adds a mark.
    pub(crate) fn mark(mut self, path: Option<Path>, colour: Rgb, opacity: f32) -> Self {
        self.marks.extend(path.map(|path| Mark { path, colour, opacity }));
        self
    }

    /// Adds marks.
    pub(crate) fn marks(mut self, marks: impl IntoIterator<Item = Mark>) -> Self {
        self.marks.extend(marks);
        self
    }

    /// Sets how far from its edge the part is rounded; 0 leaves it flat.
    pub(crate) fn relief(mut self, relief: f32) -> Self {
        self.relief = relief;
        self
    }

    /// Sets how much the part shines.
    pub(crate) fn gloss(mut self, gloss: f32) -> Self {
        self.gloss = gloss;
        self
    }

    /// Sets how much the part hides what is below it.
    pub(crate) fn opacity(mut self, opacity: f32) -> Self {
        self.opacity = opacity;
        self
    }

    /// Sets how dark the outline is.
    pub(crate) fn ink(mut self, ink: f32) -> Self {
        self.ink = ink;
        self
    }

    /// Sets how dark a shadow the part casts.
    pub(crate) fn shadow(mut self, shadow: f32) -> Self {
        self.shadow = shadow;
        self
    }

    /// The part mirrored at the x axis, for the other side of the body.
    pub(crate) fn mirrored(&self) -> Self {
        let flip = |path: &Path| path.clone().transform(Transform::from_scale(1.0, -1.0));
        let flip_mark = |mark: &Mark| flip(&mark.path).map(|path| Mark { path, ..*mark });
        Self {
            silhouette: self.silhouette.iter().filter_map(flip).collect(),
            marks: self.marks.iter().filter_map(flip_mark).collect(),
            fade: self.fade.map(|(from, to, colour)| (from.side(-1.0), to.side(-1.0), colour)),
            ..*self
        }
    }

    /// The bounding box of the part after `frame`, as [left, top, right, bottom].
    pub(crate) fn bounds(&self, frame: Transform) -> Option<[f32; 4]> {
        let mut bounds: Option<[f32; 4]> = None;
        for path in &self.silhouette {
            for &point in path.points() {
                let mut p = point;
                frame.map_point(&mut p);
                let [l, t, r, b] = bounds.unwrap_or([p.x, p.y, p.x, p.y]);
                bounds = Some([l.min(p.x), t.min(p.y), r.max(p.x), b.max(p.y)]);
            }
        }
        bounds
    }
}

/// The direction and strength of the light.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Light {
    /// The unit vector towards the light; z points at the viewer.
    pub(crate) towards: [f32; 3],
    /// 1 is a normal light.
    pub(crate) strength: f32,
}

/// A square picture in sRGB, 0 … 1.
pub(crate) struct Canvas {
    pub(crate) side: usize,
    pub(crate) pixels: Vec<Rgb>,
    pub(crate) light: Light,
}

impl Canvas {
    /// Paints a part. `frame` maps its units to pixels; `scale` is the number of pixels per unit.
    pub(crate) fn paint(&mut self, part: &Part, frame: Transform, scale: f32) {
        let Some([left, top, right, bottom]) = part.bounds(frame) else { return };
        let relief = (part.relief * scale).max(1.0);
        let margin = relief + 3.0;
        let side = self.side as f32;
        let (x0, y0) = ((left - margin).floor().max(0.0), (top - margin).floor().max(0.0));
        let (x1, y1) = ((right + margin).ceil().min(side), (bottom + margin).ceil().min(side));
        if x1 <= x0 || y1 <= y0 {
            return;
        }
        let (width, height) = ((x1 - x0) as usize, (y1 - y0) as usize);
        let frame = frame.post_translate(-x0, -y0);
        let (Some(mut colours), Some(mut mask)) =
            (Pixmap::new(width as u32, height as u32), Mask::new(width as u32, height as u32))
        else {
            return;
        };
        for path in &part.silhouette {
            mask.fill_path(path, FillRule::Winding, true, frame);
        }
        part.colour(&mut colours, frame);

        let coverage: Vec<f32> = mask.data().iter().map(|&a| f32::from(a) / 255.0).collect();
        let soft = blur(&coverage, width, height, relief);
        let edge = blur(&coverage, width, height, (0.012 * scale).max(0.8));
        // The inflated height: 0 at the edge, 1 from `relief` inwards.
        let heights: Vec<f32> = soft.iter().map(|&s| smoothstep(0.35, 1.05, s)).collect();
        let at = |x: usize, y: usize| heights[y.min(height - 1) * width + x.min(width - 1)];
        let [lx, ly, lz] = self.light.towards;
        // The shadow falls away from the light.
        let drop = ((-lx * relief * 0.5) as isize, (-ly * relief * 0.5) as isize);
        for y in 0..height {
            for x in 0..width {
                let i = y * width + x;
                let cover = coverage[i] * part.opacity;
                let target = &mut self.pixels[(y + y0 as usize) * self.side + x + x0 as usize];
                if part.shadow > 0.0 && cover < 1.0 {
                    let (sx, sy) = (x as isize - drop.0, y as isize - drop.1);
                    if (0..width as isize).contains(&sx) && (0..height as isize).contains(&sy) {
                        let shade = soft[sy as usize * width + sx as usize] * part.shadow;
                        *target = mix(*target, [0.10, 0.07, 0.14], shade * shade.min(0.6) * 1.6);
                    }
                }
                if cover <= 0.0 {
                    continue;
                }
                let pixel = &colours.data()[i * 4..i * 4 + 3];
                let colour = [0, 1, 2].map(|c| f32::from(pixel[c]) / 255.0);
                let slope = if part.relief > 0.0 { relief * 0.8 } else { 0.0 };
                let nx = (at(x.saturating_sub(1), y) - at(x + 1, y)) * slope;
                let ny = (at(x, y.saturating_sub(1)) - at(x, y + 1)) * slope;
                let length = (nx * nx + ny * ny + 1.0).sqrt();
                let lambert = (nx * lx + ny * ly + lz) / length;
                let tone = (lambert - lz) * self.light.strength;
                let mut lit = if tone > 0.0 {
                    mix(colour, [1.0, 0.97, 0.88], (tone * 0.75).min(0.6))
                } else {
                    // A shadow keeps its hue and becomes a little cooler.
                    let dark = [colour[0] * 0.34, colour[1] * 0.30, colour[2] * 0.42 + 0.03];
                    mix(colour, dark, (-tone * 0.9).min(0.72))
                };
                // Blinn: the vector half way between the light and the viewer.
                let half = (lx * lx + ly * ly + (lz + 1.0) * (lz + 1.0)).sqrt();
                let shine = ((nx * lx + ny * ly + lz + 1.0) / (half * length)).max(0.0).powi(48);
                lit = mix(lit, [1.0; 3], shine * part.gloss * heights[i]);
                let line = (1.0 - smoothstep(0.55, 0.98, edge[i])) * part.ink;
                lit = mix(lit, [colour[0] * 0.22, colour[1] * 0.18, colour[2] * 0.22], line);
                *target = mix(*target, lit, cover);
            }
        }
    }

    /// Blurs the whole picture.
    pub(crate) fn blur(&mut self, radius: f32) {
        for channel in 0..3 {
            let plane: Vec<f32> = self.pixels.iter().map(|p| p[channel]).collect();
            for (pixel, value) in self.pixels.iter_mut().zip(blur_clamped(&plane, self.side, radius)) {
                pixel[channel] = value;
            }
        }
    }
}

impl Part {
    /// Fills the layer with the base colour and the marks. The silhouette clips them later.
    fn colour(&self, layer: &mut Pixmap, frame: Transform) {
        match self.fade {
            Some((from, to, colour)) => {
                let stops =
                    vec![GradientStop::new(0.0, opaque(self.base)), GradientStop::new(1.0, opaque(colour))];
                let (from, to) = (Point::from_xy(from.0, from.1), Point::from_xy(to.0, to.1));
                let shader = LinearGradient::new(from, to, stops, SpreadMode::Pad, frame)
                    .unwrap_or(Shader::SolidColor(opaque(self.base)));
                let paint = Paint { shader, anti_alias: false, ..Paint::default() };
                if let Some(all) = Rect::from_xywh(0.0, 0.0, layer.width() as f32, layer.height() as f32) {
                    layer.fill_rect(all, &paint, Transform::identity(), None);
                }
            }
            None => layer.fill(opaque(self.base)),
        }
        for mark in &self.marks {
            let mut paint = Paint::default();
            let [r, g, b] = mark.colour.map(|c| c.clamp(0.0, 1.0));
            paint.set_color(Color::from_rgba(r, g, b, mark.opacity.clamp(0.0, 1.0)).unwrap_or(Color::BLACK));
            layer.fill_path(&mark.path, &paint, FillRule::Winding, frame, None);
        }
    }
}

fn opaque(colour: Rgb) -> Color {
    let [r, g, b] = colour.map(|c| c.clamp(0.0, 1.0));
    Color::from_rgba(r, g, b, 1.0).unwrap_or(Color::BLACK)
}

/// Two box blurs in each direction, which come close to a Gaussian. Values outside are 0.
fn blur(values: &[f32], width: usize, height: usize, radius: f32) -> Vec<f32> {
    let mut out = values.to_vec();
    let mut line = vec![0.0; width.max(height)];
    for _ in 0..2 {
        for row in out.chunks_mut(width) {
            line[..width].copy_from_slice(row);
            slide(&line[..width], radius * 0.5, |i, value| row[i] = value);
        }
        for x in 0..width {
            for y in 0..height {
                line[y] = out[y * width + x];
            }
            slide(&line[..height], radius * 0.5, |y, value| out[y * width + x] = value);
        }
    }
    out
}

/// A running mean over `radius` values on both sides, with fractional ends. Values outside are 0.
fn slide(line: &[f32], radius: f32, mut put: impl FnMut(usize, f32)) {
    let whole = radius.floor() as isize;
    let part = radius - whole as f32;
    let at = |i: isize| if i >= 0 && (i as usize) < line.len() { line[i as usize] } else { 0.0 };
    let mut sum: f32 = (-whole..=whole).map(at).sum();
    let norm = 1.0 / (2.0 * radius + 1.0);
    for i in 0..line.len() as isize {
        put(i as usize, (sum + part * (at(i - whole - 1) + at(i + whole + 1))) * norm);
        sum += at(i + whole + 1) - at(i - whole);
    }
}

/// The same blur; outside, the values at the edge continue.
fn blur_clamped(values: &[f32], side: usize, radius: f32) -> Vec<f32> {
    let pad = radius.ceil() as usize + 1;
    let wide = side + 2 * pad;
    let mut padded = vec![0.0; wide * wide];
    for (i, value) in padded.iter_mut().enumerate() {
        let clamp = |k: usize| k.saturating_sub(pad).min(side - 1);
        *value = values[clamp(i / wide) * side + clamp(i % wide)];
    }
    let blurred = blur(&padded, wide, wide, radius);
    (0..side * side).map(|i| blurred[(i / side + pad) * wide + i % side + pad]).collect()
}
