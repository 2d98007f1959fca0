//! Image files → pixels.

use std::io::Cursor;

use image::codecs::{
    bmp::BmpDecoder, gif::GifDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder,
};
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, Limits, RgbImage};
use libjpeg_turbo_rs::{DecodeLimits, Decoder, JpegError, PixelFormat, ScalingFactor};

use super::Pixels;
use crate::{Error, Kind, Result};

/// The most pixels that are decoded: 128 million, enough for 12,000 × 9,000 and the largest cameras. A JPEG that has more is
/// decoded at a half, a quarter or an eighth of its size, and other images that have more are refused.
///
/// It is checked before anything is decoded, and bounds the memory that [`decode`] needs besides the file. Measured at
/// 12,000 × 9,000, a PNG takes 3 bytes per pixel (330 MB), 6 when it must be rotated and 7 with alpha, a JPEG 5 and a
/// progressive one 9. The rarest kinds stay below 16 (2 GB at the limit).
pub const MAX_PIXELS: u64 = 128_000_000;

/// The most memory that a JPEG takes in bytes. A progressive one needs it for its whole size, even if it is reduced.
const MAX_MEMORY: u64 = 16 * MAX_PIXELS;

/// Decodes a JPEG, PNG, WebP, GIF, BMP or TIFF file, and with the feature `avif` an AVIF file, to 8-bit RGB, as a viewer
/// shows it.
///
/// The EXIF orientation is applied. CMYK and YCCK (inverted if Adobe's marker says so), grey and palettes become RGB,
/// 16 bits are rounded to 8, and transparent pixels are blended with white. Of an animation and of a TIFF with several
/// pages, the first picture is decoded. A camera's raw file, which is a TIFF with a small preview, is refused.
///
/// A file that ends before its picture does is always refused. JPEG, GIF, BMP and TIFF have no checksums, so that damage
/// which leaves a readable stream is not detected; Pillow and browsers do not detect it either.
///
/// # Errors
///
/// [`Kind::Image`] when the bytes are empty, of another format (the message names it), cut short or damaged, or when
/// the image has more than [`MAX_PIXELS`] and cannot be reduced.
pub fn decode(bytes: &[u8]) -> Result<Pixels> {
    let (size, data, orientation) = match format(bytes)? {
        Format::Jpeg => jpeg(bytes)?,
        Format::Png => {
            require_end("PNG", png_is_complete(bytes))?;
            let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits());
            with_decoder("PNG", decoder.map_err(|error| unreadable("PNG", error))?, true)?
        }
        Format::WebP => {
            require_end("WebP", webp_is_complete(bytes))?;
            let decoder = WebPDecoder::new(Cursor::new(bytes));
            // The decoder allocates what a chunk of tags claims to hold, up to 4 GB, before it reads the chunk.
            let read_tags = webp_chunks_fit(bytes);
            with_decoder("WebP", decoder.map_err(|error| unreadable("WebP", error))?, read_tags)?
        }
        Format::Gif => {
            require_end("GIF", gif_has_a_picture(bytes))?;
            let decoder = GifDecoder::new(Cursor::new(bytes));
            with_decoder("GIF", decoder.map_err(|error| unreadable("GIF", error))?, false)?
        }
        Format::Bmp => {
            let decoder = BmpDecoder::new(Cursor::new(bytes));
            with_decoder("BMP", decoder.map_err(|error| unreadable("BMP", error))?, false)?
        }
        #[cfg(feature = "avif")]
        Format::Avif => super::avif::avif(bytes)?,
        Format::Tiff => {
            let decoder = TiffDecoder::new(Cursor::new(bytes));
            with_decoder("TIFF", decoder.map_err(|error| unreadable("TIFF", error))?, true)?
        }
    };
    upright(size, data, orientation)
}

/// Size, RGB bytes as stored, and the EXIF orientation.
pub(super) type Decoded = ((u32, u32), Vec<u8>, Orientation);

enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
    Bmp,
    Tiff,
    #[cfg(feature = "avif")]
    Avif,
}

/// The format, from the first bytes. File names can be wrong.
fn format(bytes: &[u8]) -> Result<Format> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if bytes.is_empty() {
        return Err(Error::new(Kind::Image, "the image file is empty", "copy or download it again"));
    }
    if starts(b"\xFF\xD8") {
        return Ok(Format::Jpeg);
    }
    if starts(b"\x89PNG") {
        return Ok(Format::Png);
    }
    if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Ok(Format::WebP);
    }
    if starts(b"GIF8") {
        return Ok(Format::Gif);
    }
    if starts(b"BM") {
        return Ok(Format::Bmp);
    }
    if (starts(b"II*\0") || starts(b"MM\0*")) && !is_camera_raw(bytes) {
        return Ok(Format::Tiff);
    }
    #[cfg(feature = "avif")]
    if has_brand(bytes, AVIF) {
        return Ok(Format::Avif);
    }
    let name = foreign_format(bytes);
    let message = match name {
        Some(name) => format!("this is {name}, which is not supported"),
        None => "this is not an image in a supported format".into(),
    };
    let hint = match name {
        Some("a web page") => {
            "the download went wrong: open the address in a browser and save the image itself"
        }
        Some("an AVIF image" | "a HEIC image") => {
            "convert it to JPEG or PNG, for example with ImageMagick: `magick mogrify -format jpg FILE`"
        }
        Some(_) => "export it as JPEG or PNG",
        None => "choose a JPEG, PNG, WebP, GIF, BMP or TIFF file",
    };
    Err(Error::new(Kind::Image, message, hint))
}

/// The brands of AVIF files: pictures, and films.
const AVIF: &[&[u8]] = &[b"avif", b"avis"];

/// Whether a file of the family of MP4 has one of these brands. It may list several, four bytes each.
fn has_brand(bytes: &[u8], names: &[&[u8]]) -> bool {
    let head = &bytes[..bytes.len().min(64)];
    bytes.get(4..8) == Some(b"ftyp") && head[8..].chunks(4).any(|brand| names.contains(&brand))
}

/// The name of a format that is not supported, for the error message.
fn foreign_format(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(4..8) == Some(b"ftyp") {
        let has = |names: &[&[u8]]| has_brand(bytes, names);
        return Some(if has(AVIF) {
            "an AVIF image"
        } else if has(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) {
            "a HEIC image"
        } else if has(&[b"crx "]) {
            "a camera raw image"
        } else {
            "a video"
        });
    }
    const MAGIC: &[(&[u8], &str)] = &[
        (b"II*\0", "a camera raw image"),
        (b"MM\0*", "a camera raw image"),
        (b"%PDF", "a PDF document"),
        (b"8BPS", "a Photoshop document"),
        (b"\xFF\x0A", "a JPEG XL image"),
        (b"\0\0\0\x0CJXL ", "a JPEG XL image"),
        (b"\0\0\0\x0CjP  ", "a JPEG 2000 image"),
        (b"\0\0\x01\0", "an icon (ICO)"),
        (b"PK\x03\x04", "a ZIP archive"),
    ];
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(name);
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    if text.contains("<svg") {
        Some("an SVG drawing")
    } else if text.contains("<html") || text.contains("<!doctype html") {
        Some("a web page")
    } else {
        None
    }
}

fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(8 * MAX_PIXELS + (64 << 20));
    limits
}

pub(super) fn require_size(width: u32, height: u32) -> Result<()> {
    if u64::from(width) * u64::from(height) > MAX_PIXELS { Err(too_large(width, height)) } else { Ok(()) }
}

fn too_large(width: u32, height: u32) -> Error {
    Error::new(
        Kind::Image,
        format!("the image has {width}×{height} pixels, more than {} million", MAX_PIXELS / 1_000_000),
        "use a smaller copy of the image",
    )
}

fn require_end(name: &str, whole: bool) -> Result<()> {
    if whole { Ok(()) } else { Err(cut_short(name)) }
}

pub(super) fn cut_short(name: &str) -> Error {
    Error::new(
        Kind::Image,
        format!("the {name} image is cut short: the file ends before the image does"),
        "copy or download it again",
    )
}

pub(super) fn unreadable(name: &str, error: impl std::fmt::Display) -> Error {
    Error::new(
        Kind::Image,
        format!("the {name} image is damaged or of an unsupported kind: {error}"),
        "copy or download it again, or open it elsewhere and export it as JPEG or PNG",
    )
}

/// All formats but JPEG, through the `image` crate.
fn with_decoder(name: &str, mut decoder: impl ImageDecoder, read_tags: bool) -> Result<Decoded> {
    let (width, height) = decoder.dimensions();
    require_size(width, height)?;
    decoder.set_limits(limits()).map_err(|error| unreadable(name, error))?;
    // An image with a damaged tag is still readable.
    let orientation = if read_tags { decoder.orientation().ok() } else { None };
    let color = decoder.color_type();
    if matches!(color, ColorType::Rgb32F | ColorType::Rgba32F) {
        return Err(unreadable(name, "its colours are floating-point numbers"));
    }
    let mut raw = vec![0; decoder.total_bytes() as usize];
    decoder.read_image(&mut raw).map_err(|error: ImageError| unreadable(name, error))?;
    Ok(((width, height), to_rgb(color, raw)?, orientation.unwrap_or(Orientation::NoTransforms)))
}

/// JPEG, through libjpeg-turbo-rs. Its pixels are exactly those of libjpeg-turbo, which Pillow, torchvision and Chromium
/// use.
fn jpeg(bytes: &[u8]) -> Result<Decoded> {
    let markers = jpeg_markers(bytes);
    require_end("JPEG", markers.is_some())?;
    let failed = |error| unreadable("JPEG", error);
    let mut decoder = Decoder::new(bytes).map_err(failed)?;
    let orientation = decoder.exif_data().and_then(Orientation::from_exif_chunk);
    // Sides are 16 bits wide in a JPEG.
    let (width, height) = (decoder.header().width() as u32, decoder.header().height() as u32);
    let fits =
        |parts: &u32| u64::from(width.div_ceil(*parts)) * u64::from(height.div_ceil(*parts)) <= MAX_PIXELS;
    let Some(parts) = [1, 2, 4, 8].into_iter().find(fits) else { return Err(too_large(width, height)) };
    decoder.set_scale(ScalingFactor::try_new(1, parts).map_err(failed)?);
    decoder.set_stop_on_warning(true);
    decoder.set_limits(DecodeLimits { max_memory: Some(MAX_MEMORY), ..DecodeLimits::default() });

    let cmyk = decoder.header().components.len() == 4;
    decoder.set_output_format(if cmyk { PixelFormat::Cmyk } else { PixelFormat::Rgb });
    let image = decoder.decode_image().map_err(|error| match error {
        JpegError::LimitExceeded { .. } => too_large(width, height),
        error => failed(error),
    })?;
    let (size, mut data) = ((image.width as u32, image.height as u32), image.data);
    if cmyk {
        // Adobe's programs store inverted inks (255 is no ink) and mark the file as theirs.
        let inverted = markers.is_some_and(|markers| markers.adobe);
        data = each(&data, |inks: [u8; 4]| {
            let [c, m, y, k] = inks.map(|ink| u32::from(if inverted { ink } else { 255 - ink }));
            [c, m, y].map(|light| ((light * k + 127) / 255) as u8)
        });
    }
    Ok((size, data, orientation.unwrap_or(Orientation::NoTransforms)))
}

struct JpegMarkers {
    adobe: bool,
}

/// The markers of a JPEG up to the end of the image, or `None` when the file ends first.
fn jpeg_markers(bytes: &[u8]) -> Option<JpegMarkers> {
    let mut adobe = false;
    let mut at = 2;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xFF)? + 1;
        match *bytes.get(at)? {
            0xD9 => return Some(JpegMarkers { adobe }),
            // An escaped 0xFF of the data, a restart, or a fill byte: no segment follows.
            0x00 | 0x01 | 0xD0..=0xD8 | 0xFF => {}
            marker => {
                let segment = bytes.get(at + 1..)?;
                adobe |= marker == 0xEE && segment.get(2..7) == Some(b"Adobe");
                at += usize::from(u16::from_be_bytes([*segment.first()?, *segment.get(1)?]));
            }
        }
    }
}

/// Whether a PNG has all its chunks up to the end chunk.
fn png_is_complete(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((&length, _)) = rest.split_first_chunk::<4>() {
        // Length, name, data, checksum.
        let Some(end) = (u32::from_be_bytes(length) as usize).checked_add(12) else { return false };
        if rest.len() < end {
            return false;
        }
        if &rest[4..8] == b"IEND" {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Whether a WebP file has the length that it states.
fn webp_is_complete(bytes: &[u8]) -> bool {
    let length = bytes[4..8].iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    bytes.len() as u64 >= length + 8
}

/// Whether every chunk of a WebP file ends before the file does.
fn webp_chunks_fit(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(12..).unwrap_or_default();
    while let Some((header, data)) = rest.split_first_chunk::<8>() {
        let length = header[4..].iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
        if length > data.len() {
            return false;
        }
        // A chunk of an odd length has a byte of padding.
        rest = &data[length.next_multiple_of(2).min(data.len())..];
    }
    true
}

/// Whether a GIF has all the bytes of its first picture.
fn gif_has_a_picture(bytes: &[u8]) -> bool {
    /// The bytes of the table of colours that a field of flags announces.
    fn table(flags: u8) -> usize {
        if flags & 0x80 == 0 { 0 } else { 6 << (flags & 7) }
    }
    /// What follows a sequence of blocks, each of which begins with its length and the last of which is empty.
    fn after_blocks(mut rest: &[u8]) -> Option<&[u8]> {
        loop {
            let (&length, data) = rest.split_first()?;
            rest = data.get(usize::from(length)..)?;
            if length == 0 {
                return Some(rest);
            }
        }
    }
    let find = || {
        let mut rest = bytes.get(13 + table(*bytes.get(10)?)..)?;
        loop {
            rest = match rest {
                [0x21, _, blocks @ ..] => after_blocks(blocks)?,
                // Place and size, flags, and after the colours the width of a code.
                [0x2C, _, _, _, _, _, _, _, _, flags, data @ ..] => {
                    return after_blocks(data.get(table(*flags) + 1..)?);
                }
                _ => return None,
            }
        }
    };
    find().is_some()
}

/// Whether a TIFF file is a camera's raw file: a preview comes first, or a tag of a raw format.
fn is_camera_raw(bytes: &[u8]) -> bool {
    const PREVIEW: u16 = 254;
    const DNG_VERSION: u16 = 50706;
    let little = bytes.starts_with(b"II");
    let short = |at: usize| -> Option<u16> {
        let pair = bytes.get(at..)?.first_chunk::<2>()?;
        Some(if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) })
    };
    let long = |at: usize| -> Option<u32> {
        let four = bytes.get(at..)?.first_chunk::<4>()?;
        Some(if little { u32::from_le_bytes(*four) } else { u32::from_be_bytes(*four) })
    };
    let raw_tag = || {
        let first = long(4)? as usize;
        let count = usize::from(short(first)?);
        (0..count).map(|entry| first + 2 + 12 * entry).find(|&entry| match short(entry) {
            Some(PREVIEW) => long(entry + 8).is_some_and(|flags| flags & 1 == 1),
            tag => tag == Some(DNG_VERSION),
        })
    };
    // Canon's files say it after the header.
    bytes.get(8..10) == Some(b"CR") || raw_tag().is_some()
}

/// Rotates and mirrors the image as the EXIF tag says.
fn upright((width, height): (u32, u32), data: Vec<u8>, orientation: Orientation) -> Result<Pixels> {
    if orientation == Orientation::NoTransforms {
        return Pixels::new(width, height, data);
    }
    let image =
        RgbImage::from_raw(width, height, data).ok_or_else(|| unreadable("decoded", "wrong length"))?;
    let mut image = DynamicImage::ImageRgb8(image);
    image.apply_orientation(orientation);
    Pixels::new(image.width(), image.height(), image.into_rgb8().into_raw())
}

/// Any colour type of the decoders → 8-bit RGB, blended with white.
pub(super) fn to_rgb(color: ColorType, raw: Vec<u8>) -> Result<Vec<u8>> {
    let wide = u16::from_ne_bytes;
    let on_white = |value: u8, alpha: u8| blend::<255>(value.into(), alpha.into());
    let wide_on_white = |value: u16, alpha: u16| blend::<65_535>(value.into(), alpha.into());
    Ok(match color {
        ColorType::Rgb8 => raw,
        ColorType::L8 => each(&raw, |[v]| [v; 3]),
        ColorType::La8 => each(&raw, |[v, a]| [on_white(v, a); 3]),
        ColorType::Rgba8 => each(&raw, |[r, g, b, a]| [r, g, b].map(|v| on_white(v, a))),
        ColorType::L16 => each(&raw, |v| [narrow(wide(v)); 3]),
        ColorType::La16 => each(&raw, |[v, w, a, b]| [wide_on_white(wide([v, w]), wide([a, b])); 3]),
        ColorType::Rgb16 => {
            each(&raw, |[r, s, g, h, b, c]| [[r, s], [g, h], [b, c]].map(|v| narrow(wide(v))))
        }
        ColorType::Rgba16 => each(&raw, |[r, s, g, h, b, c, a, z]| {
            [[r, s], [g, h], [b, c]].map(|v| wide_on_white(wide(v), wide([a, z])))
        }),
        other => return Err(unreadable("decoded", format!("colour type {other:?}"))),
    })
}

/// 16 bits, rounded to 8.
pub(super) fn narrow(value: u16) -> u8 {
    blend::<65_535>(value.into(), 65_535)
}

/// Maps every pixel of N bytes to RGB.
fn each<const N: usize>(raw: &[u8], rgb: impl Fn([u8; N]) -> [u8; 3]) -> Vec<u8> {
    raw.as_chunks().0.iter().flat_map(|&pixel| rgb(pixel)).collect()
}

/// value · alpha + white · (1 − alpha), of 0 … MAX, rounded once to 0 … 255.
fn blend<const MAX: u64>(value: u64, alpha: u64) -> u8 {
    let light = value * alpha + MAX * (MAX - alpha);
    ((light * 255 + MAX * MAX / 2) / (MAX * MAX)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_claim_more_than_a_webp_file_holds_are_not_read() {
        let mut file = include_bytes!("../../tests/images/turned.webp").to_vec();
        assert!(webp_chunks_fit(&file));
        let turned = decode(&file).unwrap();
        let tags = file.windows(4).position(|name| name == b"EXIF").unwrap();
        file[tags + 4..tags + 8].copy_from_slice(&0xF600_0000_u32.to_le_bytes());
        assert!(!webp_chunks_fit(&file));
        let stored = decode(&file).unwrap();
        assert_eq!((stored.width(), stored.height()), (turned.height(), turned.width()));
    }
}
