//! A drawing: a list of shapes, which is written as SVG or painted as pixels.

use std::convert::Infallible;
use std::fmt::Write as _;

use akin_base::markup::escape;
use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};

use super::{Colour, hex, without_middle};

/// The fonts of all figures.
pub(crate) const FONT: &str = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif";
/// The colour of text and of the most important lines.
pub(crate) const INK: Colour = [34, 34, 34];
/// The colour of notes and labels of axes.
pub(crate) const FAINT_INK: Colour = [96, 96, 96];
/// The colour of thin lines.
pub(crate) const HAIRLINE: Colour = [226, 226, 226];

/// A part of a drawing, in units of which a line of text has about 12.
pub enum Shape {
    /// A filled rectangle: x, y, width, height.
    Rectangle([f64; 4], Colour),
    /// A filled rectangle with a title.
    Titled([f64; 4], Colour, String),
    /// Lines from point to point.
    Path { points: Vec<[f64; 2]>, stroke: Colour, thickness: f64, opacity: f64 },
    /// A filled area.
    Polygon(Vec<[f64; 2]>, Colour),
    /// A filled circle with a title.
    Dot { middle: [f64; 2], radius: f64, fill: Colour, title: String },
    /// The rim of a circle.
    Circle { middle: [f64; 2], radius: f64, stroke: Colour },
    /// A line of text that is turned by some degrees around its place.
    Text { place: [f64; 2], degrees: f64, style: Style, text: String },
    /// A picture in a rectangle. A table of colours stays one of sharp cells.
    Picture { place: [f64; 4], picture: RgbImage, sharp: bool, title: String },
}

/// Where the given place is in a line of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor {
    /// At its start.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Style {
    /// The height of its line, in the units of a drawing.
    pub size: f64,
    /// Its colour.
    pub colour: Colour,
    /// Where its place is in the line.
    pub anchor: Anchor,
    /// Whether it has a white rim, so that it can be read on points.
    pub rim: bool,
}

impl Style {
    /// Plain text of this size.
    pub fn plain(size: f64) -> Self {
        Self { size, colour: INK, anchor: Anchor::Start, rim: false }
    }
}

/// A picture that is being drawn.
pub struct Drawing {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// What was drawn, from the back to the front.
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// A white picture.
    pub fn new(width: f64, height: f64) -> Self {
        let mut drawing = Self { width, height, shapes: Vec::new() };
        drawing.rectangle([0.0, 0.0, width, height], [255, 255, 255]);
        drawing
    }

    /// Fills `[x, y, width, height]`.
    pub fn rectangle(&mut self, place: [f64; 4], fill: Colour) {
        self.shapes.push(Shape::Rectangle(place, fill));
    }

    /// Draws the border of `[x, y, width, height]`.
    pub fn frame(&mut self, [x, y, width, height]: [f64; 4], stroke: Colour, thickness: f64) {
        let half = thickness / 2.0;
        self.rectangle([x - half, y - half, width + thickness, thickness], stroke);
        self.rectangle([x - half, y + height - half, width + thickness, thickness], stroke);
        self.rectangle([x - half, y + half, thickness, height - thickness], stroke);
        self.rectangle([x + width - half, y + half, thickness, height - thickness], stroke);
    }

    /// Draws a line.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], stroke: Colour, thickness: f64) {
        self.shapes.push(Shape::Path { points: vec![from, to], stroke, thickness, opacity: 1.0 });
    }

    /// Draws a dot with a title.
    pub fn dot(&mut self, middle: [f64; 2], radius: f64, fill: Colour, title: &str) {
        self.shapes.push(Shape::Dot { middle, radius, fill, title: title.to_owned() });
    }

    /// Draws a circle.
    pub fn circle(&mut self, middle: [f64; 2], radius: f64, stroke: Colour) {
        self.shapes.push(Shape::Circle { middle, radius, stroke });
    }

    /// Fills an area.
    pub fn polygon(&mut self, corners: Vec<[f64; 2]>, fill: Colour) {
        self.shapes.push(Shape::Polygon(corners, fill));
    }

    /// Draws a diamond, the mark of a proxy.
    pub fn diamond(&mut self, [x, y]: [f64; 2], radius: f64) {
        let corners = |radius: f64| vec![[x, y - radius], [x + radius, y], [x, y + radius], [x - radius, y]];
        self.shapes.push(Shape::Polygon(corners(radius + 1.6), INK));
        self.shapes.push(Shape::Polygon(corners(radius), [255, 255, 255]));
    }

    /// Writes a text with its baseline at a place.
    pub fn text(&mut self, place: [f64; 2], style: Style, text: &str) {
        self.turned_text(place, 0.0, style, text);
    }

    /// Writes a text that is turned by some degrees.
    pub fn turned_text(&mut self, place: [f64; 2], degrees: f64, style: Style, text: &str) {
        self.shapes.push(Shape::Text { place, degrees, style, text: text.to_owned() });
    }

    /// Draws a rectangle with a title.
    pub fn titled_rectangle(&mut self, place: [f64; 4], fill: Colour, title: &str) {
        self.shapes.push(Shape::Titled(place, fill, title.to_owned()));
    }

    /// Draws a picture.
    pub fn picture(&mut self, place: [f64; 4], picture: RgbImage, sharp: bool, title: &str) {
        self.shapes.push(Shape::Picture { place, picture, sharp, title: title.to_owned() });
    }

    /// The drawing as SVG, which a screen reader calls `title`.
    ///
    /// # Errors
    ///
    /// A picture that cannot be encoded.
    pub fn svg(&self, title: &str) -> Result<String> {
        let Self { width, height, .. } = self;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{}\" font-family=\"{FONT}\">\n",
            escape(title)
        );
        for shape in &self.shapes {
            add(&mut svg, shape)?;
        }
        Ok(svg + "</svg>\n")
    }
}

/// Adds a shape to an SVG.
fn add(svg: &mut String, shape: &Shape) -> Result<()> {
    let titled = |title: &str| match title {
        "" => String::new(),
        title => format!("<title>{}</title>", escape(title)),
    };
    let corners = |points: &[[f64; 2]]| -> String {
        points.iter().map(|[x, y]| format!("{},{}", Short(*x), Short(*y))).collect::<Vec<_>>().join(" ")
    };
    match shape {
        Shape::Rectangle([x, y, width, height], fill) => writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            Short(*x),
            Short(*y),
            Short(*width),
            Short(*height),
            hex(*fill)
        )?,
        Shape::Titled([x, y, width, height], fill, title) => writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\">{}</rect>",
            Short(*x),
            Short(*y),
            Short(*width),
            Short(*height),
            hex(*fill),
            titled(title)
        )?,
        Shape::Path { points, stroke, thickness, opacity } => writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{thickness}\" stroke-opacity=\"{opacity}\" \
             stroke-linejoin=\"round\"/>",
            corners(points),
            hex(*stroke)
        )?,
        Shape::Polygon(points, fill) => {
            writeln!(svg, "<polygon points=\"{}\" fill=\"{}\"/>", corners(points), hex(*fill))?;
        }
        Shape::Dot { middle: [x, y], radius, fill, title } => writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" fill=\"{}\" fill-opacity=\"0.85\">{}</circle>",
            Short(*x),
            Short(*y),
            hex(*fill),
            titled(title)
        )?,
        Shape::Circle { middle: [x, y], radius, stroke } => writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" fill=\"none\" stroke=\"{}\"/>",
            Short(*x),
            Short(*y),
            hex(*stroke)
        )?,
        Shape::Text { place: [x, y], degrees, style, text } => {
            let (x, y) = (Short(*x), Short(*y));
            let anchor = match style.anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let rim = match style.rim {
                true => {
                    " stroke=\"#fff\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\""
                }
                false => "",
            };
            let turn = if *degrees == 0.0 {
                String::new()
            } else {
                format!(" transform=\"rotate({degrees} {x} {y})\"")
            };
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{rim}{turn}>{}</text>",
                Short(style.size),
                hex(style.colour),
                escape(text)
            )?;
        }
        Shape::Picture { place: [x, y, width, height], picture, sharp, title } => {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let (kind, rendering) = match sharp {
                true => {
                    picture.write_to(&mut bytes, image::ImageFormat::Png)?;
                    ("image/png", " style=\"image-rendering:pixelated\"")
                }
                false => {
                    JpegEncoder::new_with_quality(&mut bytes, 82).encode_image(picture)?;
                    ("image/jpeg", "")
                }
            };
            writeln!(
                svg,
                "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\"{rendering} \
                 href=\"data:{kind};base64,{}\">{}</image>",
                Short(*x),
                Short(*y),
                Short(*width),
                Short(*height),
                BASE64_STANDARD.encode(bytes.get_ref()),
                titled(title)
            )?;
        }
    }
    Ok(())
}

/// The width of a text of this size, rather too large than too small: the font is one of the reader's system.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ';' | ':' | '|' | '!' | '\'' | ' ' => 0.34,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '–' => 0.95,
        'A'..='Z' => 0.74,
        '\u{1100}'.. => 1.05,
        _ => 0.6,
    };
    size * text.chars().map(width).sum::<f64>()
}

/// The text. Where it is wider than this, only its start and its end.
pub fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let shortest_first = (1..text.chars().count()).map(|most| without_middle(text, most));
    let fits = |text: &String| text_width(text, size) <= width;
    shortest_first.take_while(fits).last().unwrap_or_default()
}

/// Marks with names, in as many lines as they need.
pub(crate) struct Legend {
    /// The place of each entry, from the corner of the legend.
    entries: Vec<([f64; 2], Colour, String)>,
    /// Its height.
    pub height: f64,
}

impl Legend {
    const SIZE: f64 = 12.0;
    const LINE: f64 = 22.0;

    /// A legend of this width.
    pub(crate) fn new(width: f64, entries: impl IntoIterator<Item = (Colour, String)>) -> Self {
        let mut places = Vec::new();
        let [mut x, mut y] = [0.0, 0.0];
        for (colour, name) in entries {
            let name = fitted(&name, Self::SIZE, (width - 18.0).min(240.0));
            let wide = 18.0 + text_width(&name, Self::SIZE) + 16.0;
            if x > 0.0 && x + wide - 16.0 > width {
                (x, y) = (0.0, y + Self::LINE);
            }
            places.push(([x, y], colour, name));
            x += wide;
        }
        let height = if places.is_empty() { 0.0 } else { y + Self::LINE };
        Self { entries: places, height }
    }

    /// Draws it; `round` marks are dots.
    pub(crate) fn draw(&self, drawing: &mut Drawing, [left, top]: [f64; 2], round: bool) {
        for ([x, y], colour, name) in &self.entries {
            let [x, y] = [left + x, top + y];
            match round {
                true => drawing.dot([x + 6.0, y + 6.0], 5.0, *colour, ""),
                false => drawing.rectangle([x, y, 12.0, 12.0], *colour),
            }
            drawing.text([x + 18.0, y + 10.5], Style::plain(Self::SIZE), name);
        }
    }
}

/// A number with at most two decimals.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

/// How many of plotters' pixels are one unit. It places everything on whole pixels.
pub(crate) const FINENESS: i32 = 10;

/// What plotters draws on.
impl DrawingBackend for &mut Drawing {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        let fine = |units: f64| units as u32 * FINENESS as u32;
        (fine(self.width), fine(self.height))
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn draw_pixel(
        &mut self,
        point: BackendCoord,
        colour: BackendColor,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let [x, y] = units(point);
        let side = 1.0 / f64::from(FINENESS);
        self.rectangle([x, y, side, side], rgb(colour));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let ([x, y], [right, bottom]) = (units(from), units(to));
        match fill {
            true => self.rectangle([x, y, right - x, bottom - y], rgb(style.color())),
            false => self.frame([x, y, right - x, bottom - y], rgb(style.color()), thickness(style)),
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let colour = style.color();
        let points: Vec<[f64; 2]> = path.into_iter().map(units).collect();
        if colour.alpha > 0.0 && points.len() > 1 {
            let (stroke, opacity) = (rgb(colour), colour.alpha);
            self.shapes.push(Shape::Path { points, stroke, thickness: thickness(style), opacity });
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        middle: BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.dot(units(middle), f64::from(radius) / f64::from(FINENESS), rgb(style.color()), "");
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.shapes.push(Shape::Polygon(corners.into_iter().map(units).collect(), rgb(style.color())));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        place: BackendCoord,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let size = style.size() / f64::from(FINENESS);
        let anchor = match style.anchor().h_pos {
            HPos::Left => Anchor::Start,
            HPos::Center => Anchor::Middle,
            HPos::Right => Anchor::End,
        };
        // From the place of the anchor down to the baseline.
        let down = match style.anchor().v_pos {
            VPos::Top => 0.8 * size,
            VPos::Center => 0.35 * size,
            VPos::Bottom => -0.1 * size,
        };
        let ([x, y], (degrees, [dx, dy])) = (
            units(place),
            match style.transform() {
                FontTransform::Rotate270 => (-90.0, [down, 0.0]),
                FontTransform::Rotate90 => (90.0, [-down, 0.0]),
                _ => (0.0, [0.0, down]),
            },
        );
        let style = Style { size, colour: rgb(style.color()), anchor, rim: false };
        self.turned_text([x + dx, y + dy], degrees, style, text);
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok(((0.55 * style.size() * text.chars().count() as f64) as u32, style.size() as u32))
    }
}

fn units((x, y): BackendCoord) -> [f64; 2] {
    [x, y].map(|place| f64::from(place) / f64::from(FINENESS))
}

fn rgb(colour: BackendColor) -> Colour {
    let (r, g, b) = colour.rgb;
    [r, g, b]
}

fn thickness(style: &impl BackendStyle) -> f64 {
    f64::from(style.stroke_width()) / f64::from(FINENESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_markup_are_text() {
        assert_eq!(escape("<b a=\"1\">&'\u{1b}"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39;\u{fffd}");
        let mut drawing = Drawing::new(10.0, 10.0);
        drawing.text([0.0, 0.0], Style::plain(10.0), "<script>");
        assert!(!drawing.svg("<script>").unwrap().contains("<script>"));
    }

    #[test]
    fn a_text_is_fitted_to_a_width() {
        assert_eq!(fitted("species", 12.0, 200.0), "species");
        let short = fitted("Protopapilionus fasciatus", 12.0, 90.0);
        assert!(short.starts_with("Pro") && short.ends_with("tus") && short.contains('…'), "{short}");
        assert!(text_width(&short, 12.0) <= 90.0);
        assert_eq!(fitted("species", 12.0, 0.0), "");
        let exactly = text_width("Chovosirmidae", 12.0);
        assert_eq!(
            fitted("Chovosirmidae", 12.0, exactly),
            "Chovosirmidae",
            "an ellipsis is wider than a letter"
        );
    }

    #[test]
    fn the_entries_of_a_legend_do_not_touch() {
        let names: Vec<String> = (0..9).map(|number| "W".repeat(4 * number + 1)).collect();
        let legend = Legend::new(300.0, names.into_iter().map(|name| ([0; 3], name)));
        for (([x, y], _, name), ([next_x, next_y], ..)) in legend.entries.iter().zip(&legend.entries[1..]) {
            assert!(x + 18.0 + text_width(name, 12.0) <= if y == next_y { *next_x } else { 300.0 });
        }
        assert_eq!(legend.height, legend.entries.last().unwrap().0[1] + 22.0);
    }
}
