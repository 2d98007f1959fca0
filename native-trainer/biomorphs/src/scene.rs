//! A picture: a creature in a pose, lit, in front of a background, as a camera records it.

use std::f32::consts::{FRAC_PI_2, PI, TAU};

use image::{Rgb as Pixel, RgbImage};
use rand::{Rng, RngExt};
use tiny_skia::Transform;

use crate::{
    body::{Build, Pose},
    canvas::{Canvas, Light, Part},
    genome::Genome,
    palette::{Palette, Rgb, hex, lighten, mix},
    plans::{self, View},
    shape::{Tube, V, blob, disc, egg, lerp},
};

/// Colours of far, near and things: water, moss, sand, dusk, paper, stone, leaf litter, snow.
const PLACES: [[u32; 3]; 8] = [
    [0xCFE3E6, 0x8FB9BF, 0x6E9CA3],
    [0xDDE3C4, 0xA9B787, 0x7F9463],
    [0xF1E5CC, 0xD9C39A, 0xBFA57A],
    [0xD9CFE0, 0xA99BB8, 0x857796],
    [0xF6F1E4, 0xE9DFC9, 0xD6C8AC],
    [0xDCDCDA, 0xB4B5B3, 0x93969A],
    [0xE3D2BC, 0xB9977A, 0x94745A],
    [0xEEF3F5, 0xCBD9E0, 0xA9BDC9],
];

/// Draws one individual. Pose, view, light, background and noise come from `rng`, so the same genome, side and
/// state of `rng` give the same picture. Below a side of 16 little can be recognised.
pub(crate) fn draw(genome: &Genome, side: u32, rng: &mut impl Rng) -> RgbImage {
    let side = side.max(1);
    let (parts, view, light) = individual(genome, rng);
    let mut canvas = Canvas { side: side as usize, pixels: vec![[0.0; 3]; (side * side) as usize], light };
    background(&mut canvas, rng);
    paint(&mut canvas, &parts, view, rng);
    develop(&canvas, rng)
}

/// Draws one individual alone, on paper of this colour, without the noise of a camera.
pub(crate) fn draw_alone(genome: &Genome, side: u32, paper: Rgb, rng: &mut impl Rng) -> RgbImage {
    let side = side.max(1);
    let (parts, view, light) = individual(genome, rng);
    let mut canvas = Canvas { side: side as usize, pixels: vec![paper; (side * side) as usize], light };
    paint(&mut canvas, &parts, view, rng);
    RgbImage::from_fn(side, side, |x, y| {
        Pixel(canvas.pixels[(y * side + x) as usize].map(|c| (c * 255.0).round().clamp(0.0, 255.0) as u8))
    })
}

/// The parts of one individual in its pose, how it is seen, and the light on it.
fn individual(genome: &Genome, rng: &mut impl Rng) -> (Vec<Part>, View, Light) {
    let pose = Pose {
        bend: between(rng, -1.0, 1.0),
        phase: rng.random(),
        spread: rng.random(),
        gaze: V::polar(between(rng, 0.0, TAU), between(rng, 0.2, 1.0)),
        lids: if rng.random::<f32>() < 0.3 { between(rng, 0.2, 0.75) } else { 0.0 },
        individual: between(rng, -1.0, 1.0),
    };
    let [hue, lightness, contrast] = genome.colour_shifts();
    let palette = Palette::new(
        genome.palette,
        hue + between(rng, -0.012, 0.012),
        lightness + between(rng, -0.05, 0.05),
        contrast,
    );
    let mut build = Build { genome, palette, pose, parts: vec![] };
    let view = plans::grow(&mut build);
    let parts = build.parts;

    let azimuth = between(rng, -PI * 0.85, -PI * 0.15);
    let elevation = between(rng, 0.55, 0.85);
    let light = Light {
        towards: [
            azimuth.cos() * (1.0 - elevation * elevation).sqrt(),
            azimuth.sin() * (1.0 - elevation * elevation).sqrt(),
            elevation,
        ],
        strength: between(rng, 0.85, 1.35),
    };
    (parts, view, light)
}

fn paint(canvas: &mut Canvas, parts: &[Part], view: View, rng: &mut impl Rng) {
    let (frame, scale) = place(parts, view, canvas.side as f32, rng);
    for part in parts {
        canvas.paint(part, frame, scale);
    }
}

/// Rotates, scales and moves the creature so that it fills most of the picture and stays inside it.
fn place(parts: &[Part], view: View, side: f32, rng: &mut impl Rng) -> (Transform, f32) {
    let (turn, mirror) = match view {
        View::Side => (between(rng, -0.22, 0.22), if rng.random() { -1.0 } else { 1.0 }),
        View::Above => (-FRAC_PI_2 + between(rng, -0.7, 0.7), 1.0),
    };
    let turned = Transform::from_rotate(turn.to_degrees()).pre_scale(mirror, 1.0);
    let mut bounds: Option<[f32; 4]> = None;
    for [l, t, r, b] in parts.iter().filter_map(|part| part.bounds(turned)) {
        let [left, top, right, bottom] = bounds.unwrap_or([l, t, r, b]);
        bounds = Some([left.min(l), top.min(t), right.max(r), bottom.max(b)]);
    }
    let [left, top, right, bottom] = bounds.unwrap_or([-1.0, -1.0, 1.0, 1.0]);
    let (width, height) = ((right - left).max(1e-3), (bottom - top).max(1e-3));
    // The larger side of the creature fills this share of the picture.
    let fill = between(rng, 0.76, 0.98);
    let scale = side * fill / width.max(height);
    let free = [(side - width * scale).max(0.0), (side - height * scale).max(0.0)];
    let [x, y] = free.map(|room| room * 0.5 * (1.0 + between(rng, -0.8, 0.8)));
    (turned.post_translate(-left, -top).post_scale(scale, scale).post_translate(x, y), scale)
}

/// Paints a soft background: two colours that blend, a bright spot, and blurred things in two planes.
fn background(canvas: &mut Canvas, rng: &mut impl Rng) {
    let [far, near, thing] = PLACES[rng.random_range(0..PLACES.len())].map(hex);
    let dim = between(rng, -0.18, 0.08);
    let [far, near, thing] = [far, near, thing].map(|colour| lighten(colour, dim));
    let side = canvas.side;
    let angle = FRAC_PI_2 + between(rng, -0.9, 0.9);
    let way = V::polar(angle, 1.0 / side as f32);
    let bright = V(between(rng, 0.2, 0.8), between(rng, 0.0, 0.6)) * side as f32;
    for y in 0..side {
        for x in 0..side {
            let at = V(x as f32, y as f32) - V(0.5, 0.5) * side as f32;
            let t = (0.5 + at.0 * way.0 + at.1 * way.1).clamp(0.0, 1.0);
            let glow = 1.0 - ((V(x as f32, y as f32) - bright).length() / side as f32).min(1.0);
            canvas.pixels[y * side + x] = lighten(mix(far, near, t), 0.22 * glow * glow);
        }
    }
    let kind = rng.random_range(0..5);
    // Far things are blurred more than near ones.
    for (count, blur, strength) in
        [(rng.random_range(4..10), 0.05, 0.7), (rng.random_range(0..6), 0.012, 0.65)]
    {
        for _ in 0..count {
            let centre = V(between(rng, -0.1, 1.1), between(rng, -0.1, 1.1));
            let size = between(rng, 0.06, 0.24);
            let colour = mix(thing, if rng.random() { far } else { near }, between(rng, 0.0, 0.7));
            let colour = lighten(colour, between(rng, -0.16, 0.16));
            let part = background_thing(kind, centre, size, colour, strength, rng);
            canvas.paint(&part, Transform::from_scale(side as f32, side as f32), side as f32);
        }
        canvas.blur(blur * side as f32);
    }
}

/// A leaf, a pebble, a blade of grass, a disc of light, or a twig.
fn background_thing(
    kind: usize,
    centre: V,
    size: f32,
    colour: Rgb,
    strength: f32,
    rng: &mut impl Rng,
) -> Part {
    let angle = between(rng, 0.0, TAU);
    let way = V::polar(angle, size);
    let part = match kind {
        0 => {
            let bow = V(-way.1, way.0) * between(rng, -0.4, 0.4);
            let leaf =
                Tube::new(&[centre - way, centre + bow, centre + way], |u| size * 0.42 * egg(u, 0.4, 0.62));
            let pale = lighten(colour, 0.3);
            let veins = (0..8).map(|i| {
                let (u, v) = (0.18 + 0.16 * (i / 2) as f32, if i % 2 == 0 { 0.85 } else { -0.85 });
                Tube::limb(&[leaf.at(u, 0.0), leaf.at(u + 0.14, v)], size * 0.02, size * 0.01).outline()
            });
            let part = Part::new([leaf.outline()], colour).mark(leaf.patch(0.0, 1.0, -0.05, 0.05), pale, 0.7);
            veins.fold(part, |part, vein| part.mark(vein, pale, 0.5)).relief(size * 0.2).shadow(0.2)
        }
        1 => {
            let flat = between(rng, 0.55, 0.85);
            let points: Vec<V> = (0..9)
                .map(|i| V::polar(angle + TAU * i as f32 / 9.0, size * between(rng, 0.65, 0.9)))
                .map(|p| centre + V(p.0, p.1 * flat))
                .collect();
            Part::new([blob(&points)], colour).relief(size * 0.5).shadow(0.3)
        }
        2 => {
            let root = V(centre.0, 1.05);
            let lean = between(rng, -0.3, 0.3);
            let high = between(rng, 0.25, 0.9);
            let blade = Tube::new(&[root, root + V(lean * 0.3, -high * 0.6), root + V(lean, -high)], |u| {
                size * 0.24 * (1.0 - u).sqrt()
            });
            Part::new([blade.outline()], colour).relief(size * 0.15).shadow(0.1)
        }
        3 => {
            let light = lighten(colour, 0.35);
            return Part::new([disc(centre, size * 0.6)], light)
                .opacity(strength * 0.5)
                .relief(0.0)
                .ink(0.0)
                .gloss(0.0)
                .shadow(0.0);
        }
        _ => {
            let way = way * between(rng, 1.0, 2.5);
            let bow = V(way.1, -way.0) * between(rng, -0.3, 0.3);
            let twig = Tube::limb(&[centre - way, centre + bow, centre + way], size * 0.14, size * 0.06);
            let bud = Tube::limb(
                &[twig.at(0.6, 0.0), twig.at(0.75, 0.0) + V(-way.1, way.0) * 0.3],
                size * 0.07,
                size * 0.04,
            );
            Part::new([twig.outline(), bud.outline()], lighten(colour, -0.1)).relief(size * 0.1).shadow(0.2)
        }
    };
    part.opacity(strength).ink(0.08).gloss(0.1)
}

/// Applies exposure, white balance, a slight vignette and grain.
fn develop(canvas: &Canvas, rng: &mut impl Rng) -> RgbImage {
    let exposure = between(rng, 0.92, 1.08);
    let warmth = between(rng, -0.03, 0.03);
    let gain = [exposure * (1.0 + warmth), exposure, exposure * (1.0 - warmth)];
    let grain = between(rng, 0.004, 0.018);
    let side = canvas.side;
    let mut picture = RgbImage::new(side as u32, side as u32);
    for (i, pixel) in picture.pixels_mut().enumerate() {
        let at = V((i % side) as f32, (i / side) as f32) * (2.0 / side as f32) - V(1.0, 1.0);
        let corner = 1.0 - 0.05 * (at.0 * at.0 + at.1 * at.1);
        // The sum of four random bytes is close to normal (mean 510, deviation 148).
        let bell =
            |bits: u32| (bits.to_le_bytes().iter().map(|&b| f32::from(b)).sum::<f32>() - 510.0) / 148.0;
        let common = bell(rng.next_u32()) * grain;
        let bits = rng.next_u32();
        *pixel = Pixel([0, 1, 2].map(|c| {
            let own = (f32::from(bits.to_le_bytes()[c]) / 127.5 - 1.0) * grain * 0.5;
            ((canvas.pixels[i][c] * gain[c] * corner + common + own) * 255.0).round().clamp(0.0, 255.0) as u8
        }));
    }
    picture
}

fn between(rng: &mut impl Rng, low: f32, high: f32) -> f32 {
    lerp(low, high, rng.random())
}
