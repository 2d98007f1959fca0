//! Drawing → PNG, with a font inside this program.

use std::borrow::Cow;
use std::env;
use std::path::PathBuf;

use akin_base::problem::{Advise, problem};
use anyhow::Result;
use image::RgbaImage;
use image::imageops::FilterType;
use tiny_skia::{
    Color, FillRule, FilterQuality, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, PixmapPaint,
    PixmapRef, Rect, Stroke, Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::Colour;
use super::drawing::{Anchor, Drawing, Shape, Style};

/// Pixels per unit: enough for print.
const SCALE: f32 = 2.0;

/// DejaVu Sans Condensed 2.37, whose letters are as wide as those of Helvetica: the Latin, Greek and Cyrillic ones, and
/// the signs of figures. `pyftsubset` left out the others, and the hints, which only small letters need.
static FONT: &[u8] = include_bytes!("font/DejaVuSansCondensed.ttf");

/// Paints drawings.
pub struct Painter {
    /// The bytes of a font file.
    font: Cow<'static, [u8]>,
}

impl Painter {
    /// Takes the font of this program, or the file that `AKIN_FONT` names.
    ///
    /// # Errors
    ///
    /// A file that is no font, with which every text would be missing.
    pub fn new() -> Result<Self> {
        const HINT: &str = "let AKIN_FONT name a .ttf file, or nothing";
        let Some(file) = env::var_os("AKIN_FONT").filter(|file| !file.is_empty()).map(PathBuf::from) else {
            return Ok(Self { font: FONT.into() });
        };
        let font = akin_base::files::read_regular_file(&file)
            .advise(|| format!("the font {} cannot be read", file.display()), HINT)?;
        Face::parse(&font, 0).advise(|| format!("{} is no font", file.display()), HINT)?;
        Ok(Self { font: font.into() })
    }

    /// The bytes of a PNG file with a drawing.
    ///
    /// # Errors
    ///
    /// A drawing that is too large for memory.
    pub fn png(&self, drawing: &Drawing) -> Result<Vec<u8>> {
        const HINT: &str = "use `--svg` instead of `--png`, and please report this";
        let side = |units: f64| (units as f32 * SCALE).ceil() as u32;
        let pixmap = Pixmap::new(side(drawing.width), side(drawing.height));
        let mut pixmap = pixmap.ok_or_else(|| problem("a figure has no size", HINT))?;
        // A drawing whose size is no whole number of pixels does not cover the last of them.
        pixmap.fill(Color::WHITE);
        let face = Face::parse(&self.font, 0).advise(|| "the font cannot be read".into(), HINT)?;
        for shape in &drawing.shapes {
            paint(&mut pixmap, &face, shape);
        }
        let (width, height) = (pixmap.width(), pixmap.height());
        let pixels: Vec<u8> = pixmap.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
        let picture = image::RgbImage::from_raw(width, height, pixels);
        let picture = picture.ok_or_else(|| problem("a figure has no size", HINT))?;
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture
            .write_to(&mut bytes, image::ImageFormat::Png)
            .advise(|| "a figure cannot be encoded".into(), HINT)?;
        Ok(bytes.into_inner())
    }
}

fn paint(pixmap: &mut Pixmap, face: &Face<'_>, shape: &Shape) {
    let whole = Transform::from_scale(SCALE, SCALE);
    match shape {
        Shape::Rectangle([x, y, width, height], fill) | Shape::Titled([x, y, width, height], fill, _) => {
            let rectangle = Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32);
            if let Some(rectangle) = rectangle {
                pixmap.fill_rect(rectangle, &solid(*fill, 1.0), whole, None);
            }
        }
        Shape::Path { points, stroke, thickness, opacity } => {
            if let Some(path) = path(points, false) {
                let style = Stroke {
                    width: *thickness as f32,
                    line_join: LineJoin::Round,
                    line_cap: LineCap::Butt,
                    ..Stroke::default()
                };
                pixmap.stroke_path(&path, &solid(*stroke, *opacity), &style, whole, None);
            }
        }
        Shape::Polygon(points, fill) => {
            if let Some(path) = path(points, true) {
                pixmap.fill_path(&path, &solid(*fill, 1.0), FillRule::Winding, whole, None);
            }
        }
        Shape::Dot { middle: [x, y], radius, fill, .. } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                pixmap.fill_path(&path, &solid(*fill, 0.85), FillRule::Winding, whole, None);
            }
        }
        Shape::Circle { middle: [x, y], radius, stroke } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                pixmap.stroke_path(&path, &solid(*stroke, 1.0), &Stroke::default(), whole, None);
            }
        }
        Shape::Text { place, degrees, style, text } => {
            paint_text(pixmap, face, *place, *degrees, *style, text)
        }
        Shape::Picture { place: [x, y, width, height], picture, sharp, .. } => {
            let side = |units: f64| ((units as f32 * SCALE).round() as u32).max(1);
            let filter = if *sharp { FilterType::Nearest } else { FilterType::Triangle };
            let picture = image::imageops::resize(picture, side(*width), side(*height), filter);
            let picture: RgbaImage = image::DynamicImage::ImageRgb8(picture).to_rgba8();
            if let Some(view) = PixmapRef::from_bytes(picture.as_raw(), picture.width(), picture.height()) {
                let style = PixmapPaint { quality: FilterQuality::Nearest, ..PixmapPaint::default() };
                let corner = [x, y].map(|place| (*place as f32 * SCALE).round() as i32);
                pixmap.draw_pixmap(corner[0], corner[1], view, &style, Transform::identity(), None::<&Mask>);
            }
        }
    }
}

fn solid([r, g, b]: Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(Color::from_rgba8(r, g, b, (255.0 * opacity).round() as u8));
    paint
}

fn path(points: &[[f64; 2]], closed: bool) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    builder.move_to(first[0] as f32, first[1] as f32);
    rest.iter().for_each(|[x, y]| builder.line_to(*x as f32, *y as f32));
    if closed {
        builder.close();
    }
    builder.finish()
}

/// The outlines of letters, in units of the font, moved to the right by those before them.
struct Outlines {
    builder: PathBuilder,
    left: f32,
}

impl OutlineBuilder for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        self.builder.move_to(self.left + x, -y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.builder.line_to(self.left + x, -y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.builder.quad_to(self.left + x1, -y1, self.left + x, -y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.builder.cubic_to(self.left + x1, -y1, self.left + x2, -y2, self.left + x, -y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

fn paint_text(
    pixmap: &mut Pixmap,
    face: &Face<'_>,
    [x, y]: [f64; 2],
    degrees: f64,
    style: Style,
    text: &str,
) {
    let mut outlines = Outlines { builder: PathBuilder::new(), left: 0.0 };
    for c in text.chars() {
        // A letter that the font does not have is a box.
        let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
        face.outline_glyph(glyph, &mut outlines);
        outlines.left += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
    }
    let size = style.size as f32 / f32::from(face.units_per_em());
    let start = match style.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -outlines.left / 2.0,
        Anchor::End => -outlines.left,
    };
    let Some(path) = outlines.builder.finish() else { return };
    let turn = Transform::from_rotate(degrees as f32)
        .pre_concat(Transform::from_scale(size, size))
        .pre_concat(Transform::from_translate(start, 0.0));
    let place = Transform::from_scale(SCALE, SCALE)
        .pre_concat(Transform::from_translate(x as f32, y as f32))
        .pre_concat(turn);
    if style.rim {
        let rim = Stroke { width: 3.0 / size, line_join: LineJoin::Round, ..Stroke::default() };
        pixmap.stroke_path(&path, &solid([255; 3], 1.0), &rim, place, None);
    }
    pixmap.fill_path(&path, &solid(style.colour, 1.0), FillRule::Winding, place, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_width;

    #[test]
    fn the_last_row_of_a_drawing_of_any_height_is_white() {
        let painter = Painter::new().unwrap();
        let picture =
            image::load_from_memory(&painter.png(&Drawing::new(10.3, 10.2)).unwrap()).unwrap().to_rgb8();
        assert!(picture.pixels().all(|pixel| pixel.0 == [255; 3]));
    }

    #[test]
    fn a_drawing_is_painted_at_twice_its_size() {
        let painter = Painter::new().unwrap();
        let mut drawing = Drawing::new(30.0, 20.0);
        drawing.rectangle([0.0, 0.0, 15.0, 20.0], [255, 0, 0]);
        drawing.picture(
            [20.0, 10.0, 5.0, 5.0],
            image::RgbImage::from_pixel(1, 1, image::Rgb([0, 0, 255])),
            true,
            "",
        );
        drawing.text([16.0, 10.0], Style::plain(12.0), "M");
        let picture = image::load_from_memory(&painter.png(&drawing).unwrap()).unwrap().to_rgb8();
        assert_eq!(picture.dimensions(), (60, 40));
        let at = |x, y| picture.get_pixel(x, y).0;
        assert_eq!((at(10, 10), at(58, 2), at(45, 25)), ([255, 0, 0], [255; 3], [0, 0, 255]));
        assert!((32..52).any(|x| at(x, 12)[0] < 120), "the letter has ink");
    }

    #[test]
    fn the_font_has_the_letters_of_names_which_fit_the_room_that_figures_leave() {
        let face = Face::parse(FONT, 0).unwrap();
        for letter in "ÄŽßéαλЖёđườ×−→√…–".chars() {
            assert!(face.glyph_index(letter).is_some(), "{letter}");
        }
        for name in
            ["Chovosirmidae", "WWW 0123456789", "learning rate (logarithmic scale)", "Äpfel & Birnen, 12 %"]
        {
            let advance = |letter| face.glyph_hor_advance(face.glyph_index(letter)?);
            let widths: Vec<u16> = name.chars().map(|letter| advance(letter).unwrap()).collect();
            let width = widths.into_iter().map(f64::from).sum::<f64>() / f64::from(face.units_per_em());
            assert!(width <= text_width(name, 1.0), "{name}");
        }
    }
}
