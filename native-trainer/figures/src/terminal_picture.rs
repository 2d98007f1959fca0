//! Pictures in a terminal: with its own protocol for pictures where it has one, else as coloured characters.
//!
//! A terminal says what it is in its environment. It is not asked with a code, because one that does not answer would
//! let the program wait.

use std::env;

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::ValueEnum;
use image::imageops::{ColorMap, FilterType, dither, resize};
use image::{ImageFormat, Rgb, RgbImage};

/// How pictures are written to a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PictureFormat {
    /// The protocol of the terminal if it says in its environment which one it has, else `blocks`.
    #[default]
    Auto,
    /// The protocol of kitty, which Ghostty has too.
    Kitty,
    /// The protocol of iTerm2, which WezTerm, mintty and others have too.
    Iterm,
    /// Sixel, which foot, mlterm, xterm and others have.
    Sixel,
    /// Half blocks in the colours of the picture, for any terminal with 24-bit colours.
    Blocks,
}

/// The columns of a character cell that Sixel counts in pixels, about.
const CELL: u32 = 8;
/// The steps of each part of a colour in Sixel: with 6, there are 216 colours, and terminals have 256.
const STEPS: u32 = 6;
/// The most bytes in one code of kitty's protocol.
const CHUNK: usize = 4096;

/// A picture as text for the terminal on stdout, this many columns wide.
///
/// # Errors
///
/// A picture that cannot be encoded.
pub fn draw(picture: &RgbImage, format: PictureFormat, columns: u32) -> Result<String> {
    Ok(match format {
        PictureFormat::Auto => {
            let variable = |name: &str| env::var(name).ok();
            return draw(picture, format_for(variable), columns);
        }
        PictureFormat::Kitty => kitty(&png(picture)?, columns),
        PictureFormat::Iterm => {
            let bytes = png(picture)?;
            let size = bytes.len();
            format!(
                "\x1b]1337;File=inline=1;size={size};width={columns};preserveAspectRatio=1:{}\x07",
                BASE64_STANDARD.encode(&bytes)
            )
        }
        PictureFormat::Sixel => sixel(picture, columns * CELL),
        PictureFormat::Blocks => blocks(picture, columns),
    })
}

/// The format of the terminal with these environment variables.
fn format_for(variable: impl Fn(&str) -> Option<String>) -> PictureFormat {
    let [term, program, other] =
        ["TERM", "TERM_PROGRAM", "LC_TERMINAL"].map(|name| variable(name).unwrap_or_default());
    // These pass no pictures on to the terminal that they are in.
    if variable("TMUX").is_some() || term.starts_with("tmux") || term.starts_with("screen") {
        return PictureFormat::Blocks;
    }
    let is = |name: &str, known: &[&str]| known.iter().any(|known| name.contains(known));
    if variable("KITTY_WINDOW_ID").is_some() || is(&term, &["kitty", "ghostty"]) || program == "ghostty" {
        PictureFormat::Kitty
    } else if is(&program, &["iTerm", "WezTerm", "mintty", "rio", "WarpTerminal"]) || is(&other, &["iTerm"]) {
        PictureFormat::Iterm
    } else if is(&term, &["sixel", "foot", "mlterm", "yaft"]) {
        PictureFormat::Sixel
    } else {
        PictureFormat::Blocks
    }
}

fn png(picture: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png)?;
    Ok(bytes.into_inner())
}

/// A PNG file in the codes of kitty's protocol: <https://sw.kovidgoyal.net/kitty/graphics-protocol/>.
fn kitty(png: &[u8], columns: u32) -> String {
    let text = BASE64_STANDARD.encode(png);
    let mut codes = String::new();
    let mut rest = text.as_str();
    let mut keys = format!("a=T,f=100,q=2,c={columns},");
    while !rest.is_empty() {
        let (chunk, others) = rest.split_at(CHUNK.min(rest.len()));
        rest = others;
        codes += &format!("\x1b_G{keys}m={};{chunk}\x1b\\", u8::from(!rest.is_empty()));
        keys.clear();
    }
    codes
}

/// A cube of colours, in steps that are equal in each part.
struct Cube;

impl Cube {
    fn step(part: u8) -> u32 {
        (u32::from(part) * (STEPS - 1) + 127) / 255
    }

    fn number(&Rgb([r, g, b]): &Rgb<u8>) -> u32 {
        (Self::step(r) * STEPS + Self::step(g)) * STEPS + Self::step(b)
    }

    /// The parts of a colour in percent, as Sixel has them.
    fn percent(number: u32) -> [u32; 3] {
        [number / STEPS / STEPS, number / STEPS % STEPS, number % STEPS].map(|step| step * 100 / (STEPS - 1))
    }
}

impl ColorMap for Cube {
    type Color = Rgb<u8>;

    fn index_of(&self, colour: &Rgb<u8>) -> usize {
        Self::number(colour) as usize
    }

    fn map_color(&self, colour: &mut Rgb<u8>) {
        colour.0 = colour.0.map(|part| (Self::step(part) * 255 / (STEPS - 1)) as u8);
    }
}

/// A picture in Sixel: bands of six rows, each with a line for every colour in it. A character is a column of six pixels;
/// its bits say which of them have the colour.
fn sixel(picture: &RgbImage, width: u32) -> String {
    let height = (picture.height() * width / picture.width().max(1)).max(1);
    let mut picture = resize(picture, width, height, FilterType::Triangle);
    dither(&mut picture, &Cube);
    let mut text = format!("\x1bP0;1q\"1;1;{width};{height}");
    for number in 0..STEPS.pow(3) {
        let [r, g, b] = Cube::percent(number);
        text += &format!("#{number};2;{r};{g};{b}");
    }
    for top in (0..height).step_by(6) {
        let rows = top..height.min(top + 6);
        let numbers: Vec<Vec<u32>> = rows
            .map(|row| (0..width).map(|column| Cube::number(picture.get_pixel(column, row))).collect())
            .collect();
        let mut colours: Vec<u32> = numbers.iter().flatten().copied().collect();
        colours.sort_unstable();
        colours.dedup();
        for colour in colours {
            let bits = |column: usize| {
                (0..)
                    .zip(&numbers)
                    .map(|(row, numbers)| u8::from(numbers[column] == colour) << row)
                    .sum::<u8>()
            };
            let columns: Vec<u8> = (0..width as usize).map(bits).collect();
            text += &format!("#{colour}");
            for run in columns.chunk_by(|a, b| a == b) {
                let character = char::from(b'?' + run[0]);
                match run.len() {
                    1..4 => text.extend(std::iter::repeat_n(character, run.len())),
                    length => text += &format!("!{length}{character}"),
                }
            }
            text.push('$');
        }
        text.push('-');
    }
    text + "\x1b\\"
}

/// A picture as text: each character is an upper half block in the colour of one pixel, on the colour of the pixel
/// below it.
fn blocks(picture: &RgbImage, columns: u32) -> String {
    let rows = (picture.height() * columns / picture.width().max(1)).next_multiple_of(2).max(2);
    let small = resize(picture, columns, rows, FilterType::Triangle);
    let mut text = String::new();
    for row in (0..rows).step_by(2) {
        for column in 0..columns {
            let [above, below] = [row, row + 1].map(|row| small.get_pixel(column, row).0);
            text += &format!(
                "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m\u{2580}",
                above[0], above[1], above[2], below[0], below[1], below[2]
            );
        }
        text += "\x1b[0m\n";
    }
    text.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_says_which_protocol_it_has() {
        use PictureFormat::{Blocks, Iterm, Kitty, Sixel};
        for (variables, format) in [
            (&[("TERM", "xterm-256color")][..], Blocks),
            (&[("TERM", "xterm-kitty")], Kitty),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], Kitty),
            (&[("TERM", "xterm-ghostty")], Kitty),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], Iterm),
            (&[("TERM", "xterm-256color"), ("LC_TERMINAL", "iTerm2")], Iterm),
            (&[("TERM", "foot")], Sixel),
            (&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "tmux"), ("KITTY_WINDOW_ID", "1")], Blocks),
            (&[], Blocks),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(format_for(variable), format, "{variables:?}");
        }
    }

    #[test]
    fn kitty_gets_the_file_in_chunks_of_which_the_last_says_so() {
        let codes = kitty(&vec![7; 5000], 24);
        let chunks: Vec<&str> = codes.split("\x1b_G").skip(1).collect();
        assert!(chunks[0].starts_with("a=T,f=100,q=2,c=24,m=1;") && chunks[1].starts_with("m=0;"));
        let content = |chunk: &str| chunk.split_once(';').unwrap().1.trim_end_matches("\x1b\\").to_owned();
        assert!(chunks.iter().all(|chunk| content(chunk).len() <= CHUNK));
        assert_eq!(
            chunks.iter().map(|chunk| content(chunk)).collect::<String>(),
            BASE64_STANDARD.encode(vec![7; 5000])
        );
    }

    /// The numbers of the colours that the codes of Sixel draw, by row and column.
    fn drawn(codes: &str, [width, height]: [usize; 2]) -> Vec<Vec<Option<u32>>> {
        let mut pixels = vec![vec![None; width]; height];
        let body = codes.rsplit_once(";2;100;100;100").unwrap().1.trim_end_matches("\x1b\\");
        for (band, text) in body.split('-').enumerate() {
            for line in text.split('$').filter(|line| !line.is_empty()) {
                let digits = line[1..].find(|c: char| !c.is_ascii_digit()).unwrap() + 1;
                let colour: u32 = line[1..digits].parse().unwrap();
                let (mut column, mut repeat, mut number) = (0, 1, String::new());
                for c in line[digits..].chars() {
                    match c {
                        '!' => number.clear(),
                        c if c.is_ascii_digit() => {
                            number.push(c);
                            repeat = number.parse().unwrap();
                        }
                        c => {
                            for _ in 0..repeat {
                                let bits = c as u8 - b'?';
                                for row in (0..6).filter(|row| bits >> row & 1 == 1) {
                                    pixels[6 * band + row][column] = Some(colour);
                                }
                                column += 1;
                            }
                            repeat = 1;
                        }
                    }
                }
                assert_eq!(column, width);
            }
        }
        pixels
    }

    #[test]
    fn sixel_draws_every_pixel_once_in_its_colour() {
        let [red, blue] = [[255, 0, 0], [0, 0, 255]].map(Rgb);
        let picture = RgbImage::from_fn(10, 8, |x, _| if x < 5 { red } else { blue });
        let pixels = drawn(&sixel(&picture, 10), [10, 8]);
        for row in pixels {
            let numbers: Vec<u32> = row.into_iter().map(|number| number.expect("a colour")).collect();
            assert_eq!((numbers[0], numbers[9]), (Cube::number(&red), Cube::number(&blue)));
        }
        assert_eq!([Cube::number(&red), Cube::number(&blue)].map(Cube::percent), [[100, 0, 0], [0, 0, 100]]);
    }

    #[test]
    fn pictures_of_any_shape_are_drawn_in_every_format() {
        for (width, height) in [(1, 1), (1, 90), (90, 1), (17, 13)] {
            let picture = RgbImage::from_pixel(width, height, Rgb([200, 10, 90]));
            for format in PictureFormat::value_variants() {
                assert!(!draw(&picture, *format, 8).unwrap().is_empty(), "{width} × {height}, {format:?}");
            }
        }
    }
}
