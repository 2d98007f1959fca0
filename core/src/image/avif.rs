//! AVIF files → pixels.
//!
//! mp4parse, which is Firefox's reader, finds the pictures in the file. rav1d, which is the Rust port of dav1d, decodes them.
//! yuv turns their colours into RGB.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U16;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::ColorType;
use image::metadata::Orientation;
use mp4parse::{AvifContext, ImageRotation, ParseStrictness};
use re_rav1d::dav1d::pixel::{MatrixCoefficients, YUVRange};
use re_rav1d::dav1d::{Decoder, Picture, PixelLayout, PlanarImageComponent as Component, Settings};
use yuv::{YuvGrayImage, YuvPlanarImage, YuvRange, YuvStandardMatrix};

use super::decode::{Decoded, MAX_PIXELS, cut_short, narrow, require_size, to_rgb, unreadable};
use crate::{Error, Result};

/// Decodes the picture of an AVIF file to 8-bit RGB, blended with white.
pub(super) fn avif(bytes: &[u8]) -> Result<Decoded> {
    let mut reader = bytes;
    let file = match mp4parse::read_avif(&mut reader, ParseStrictness::Permissive) {
        Ok(file) => file,
        Err(mp4parse::Error::UnexpectedEOF) => return Err(cut_short("AVIF")),
        Err(mp4parse::Error::InvalidData(status)) => return Err(failed(<&str>::from(status))),
        Err(error) => return Err(failed(error)),
    };
    let coded = file.primary_item_coded_data();
    let picture = picture(coded.ok_or_else(|| failed("it is a grid of pictures or a film"))?)?;
    let size = (picture.width(), picture.height());
    let mut colours = rgb(&picture)?;
    if let Some(coded) = file.alpha_item_coded_data() {
        let alpha = self::picture(coded)?;
        if (alpha.width(), alpha.height()) != size {
            return Err(failed("its transparency has another size"));
        }
        let alpha = rgb_in(&alpha, Some(YuvStandardMatrix::Bt601))?;
        let pixels = colours.as_chunks::<3>().0.iter().zip(alpha.as_chunks::<3>().0);
        colours = if file.premultiplied_alpha {
            // What is there is already the colour times its alpha.
            pixels.flat_map(|(rgb, [alpha, ..])| rgb.map(|light| light.saturating_add(255 - alpha))).collect()
        } else {
            let rgba: Vec<u8> =
                pixels.flat_map(|([red, green, blue], [alpha, ..])| [*red, *green, *blue, *alpha]).collect();
            to_rgb(ColorType::Rgba8, rgba)?
        };
    }
    Ok((size, colours, orientation(bytes, &file)))
}

fn failed(reason: impl Display) -> Error {
    unreadable("AVIF", reason)
}

/// Decodes one picture of AV1.
fn picture(coded: &[u8]) -> Result<Picture> {
    let decode = || {
        let mut settings = Settings::new();
        settings.set_n_threads(1);
        settings.set_max_frame_delay(1);
        settings.set_frame_size_limit(MAX_PIXELS as u32);
        let mut decoder = Decoder::with_settings(&settings)?;
        decoder.send_data(coded.to_vec(), None, None, None)?;
        decoder.get_picture()
    };
    // The decoder checks itself by assertions in many places.
    let picture = match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(picture)) => picture,
        Ok(Err(error)) if !error.is_again() => return Err(failed(error)),
        _ => return Err(failed("it has no whole picture")),
    };
    require_size(picture.width(), picture.height())?;
    Ok(picture)
}

/// The colours in 8 bits.
fn rgb(picture: &Picture) -> Result<Vec<u8>> {
    use MatrixCoefficients as Matrix;
    let matrix = match picture.matrix_coefficients() {
        Matrix::Identity => None,
        Matrix::BT709 => Some(YuvStandardMatrix::Bt709),
        Matrix::BT470M => Some(YuvStandardMatrix::Fcc),
        Matrix::ST240M => Some(YuvStandardMatrix::Smpte240),
        Matrix::BT2020NonConstantLuminance => Some(YuvStandardMatrix::Bt2020),
        // libavif takes the last one like the others.
        Matrix::BT470BG | Matrix::ST170M | Matrix::Unspecified => Some(YuvStandardMatrix::Bt601),
        other => return Err(failed(format!("its colours are of the kind {other:?}"))),
    };
    rgb_in(picture, matrix)
}

/// The colours in 8 bits, from luminance and chroma by a matrix, or without one from green, blue and red.
fn rgb_in(picture: &Picture, matrix: Option<YuvStandardMatrix>) -> Result<Vec<u8>> {
    let (width, height) = (picture.width(), picture.height());
    let range = match picture.color_range() {
        YUVRange::Limited => YuvRange::Limited,
        YUVRange::Full => YuvRange::Full,
    };
    let stride = 3 * width;
    let mut wide = vec![0; stride as usize * height as usize];
    let luminance = plane(picture, Component::Y)?;
    let converted = if picture.pixel_layout() == PixelLayout::I400 {
        let image = YuvGrayImage { y_plane: &luminance, y_stride: width, width, height };
        yuv::y016_to_rgb16(&image, &mut wide, stride, range, YuvStandardMatrix::Bt601)
    } else {
        let chroma = [plane(picture, Component::U)?, plane(picture, Component::V)?];
        let image = YuvPlanarImage {
            y_plane: &luminance,
            y_stride: width,
            u_plane: &chroma[0],
            u_stride: width,
            v_plane: &chroma[1],
            v_stride: width,
            width,
            height,
        };
        match matrix {
            Some(matrix) => yuv::i416_to_rgb16(&image, &mut wide, stride, range, matrix),
            None => yuv::gb16_to_rgb16(&image, &mut wide, stride, range),
        }
    };
    converted.map_err(failed)?;
    Ok(wide.into_iter().map(narrow).collect())
}

/// A plane in 16 bits and in the size of the picture. Chroma of a lower resolution lies between the pixels, and is
/// interpolated.
fn plane(picture: &Picture, component: Component) -> Result<Vec<u16>> {
    let (width, height) = (picture.width(), picture.height());
    let layout = picture.pixel_layout();
    let chroma = component != Component::Y;
    let [halves_columns, halves_rows] =
        [chroma && layout != PixelLayout::I444, chroma && layout == PixelLayout::I420];
    let columns = if halves_columns { width.div_ceil(2) } else { width };
    let rows = if halves_rows { height.div_ceil(2) } else { height };

    let depth = picture.bit_depth();
    let identity = picture.matrix_coefficients() == MatrixCoefficients::Identity;
    // The largest number becomes 65,535 if the range is full, and the middle of chroma 32,768.
    let widen = |number: u16| match picture.color_range() {
        YUVRange::Limited => number << (16 - depth),
        YUVRange::Full => {
            let (largest, middle) = ((1 << depth) - 1, 1 << (depth - 1));
            let [origin, moved] = if chroma && !identity { [middle, 32_768] } else { [0, 0] };
            let scaled = (i64::from(number) - origin) * 65_535;
            ((scaled + largest * moved + largest / 2) / largest).clamp(0, 65_535) as u16
        }
    };
    let bytes = picture.plane(component);
    let stored = bytes.chunks(picture.stride(component) as usize).take(rows as usize);
    let numbers: Vec<u16> = if depth > 8 {
        stored
            .flat_map(|row| &row.as_chunks().0[..columns as usize])
            .map(|&pair| widen(u16::from_ne_bytes(pair)))
            .collect()
    } else {
        stored.flat_map(|row| &row[..columns as usize]).map(|&byte| widen(byte.into())).collect()
    };
    if !halves_columns && !halves_rows {
        return Ok(numbers);
    }
    let source =
        TypedImageRef::<U16>::from_buffer(columns, rows, bytemuck::cast_slice(&numbers)).map_err(failed)?;
    let mut whole = vec![0_u16; width as usize * height as usize];
    let mut target = TypedImage::<U16>::from_buffer(width, height, bytemuck::cast_slice_mut(&mut whole))
        .map_err(failed)?;
    let covered = |size: u32, halved: bool| f64::from(size) / if halved { 2.0 } else { 1.0 };
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).crop(
        0.0,
        0.0,
        covered(width, halves_columns),
        covered(height, halves_rows),
    );
    Resizer::new().resize_typed(&source, &mut target, &options).map_err(failed)?;
    Ok(whole)
}

/// How the file says that the picture is turned, and then mirrored.
fn orientation(bytes: &[u8], file: &AvifContext) -> Orientation {
    let turned = match file.image_rotation() {
        Ok(ImageRotation::D90) => 3,
        Ok(ImageRotation::D180) => 2,
        Ok(ImageRotation::D270) => 1,
        Ok(ImageRotation::D0) | Err(_) => 0,
    };
    // The reader gives the mirror as a pointer only. Its box is its name and one byte.
    let mirrored = file.image_mirror_ptr().is_ok_and(|mirror| !mirror.is_null());
    let mirror =
        bytes.windows(5).find(|bytes| mirrored && bytes.starts_with(b"imir")).map(|bytes| bytes[4] & 1);
    // Quarter turns to the right, then: the columns stay, the top becomes the bottom, or the left becomes the right.
    let table = match mirror {
        None => {
            [Orientation::NoTransforms, Orientation::Rotate90, Orientation::Rotate180, Orientation::Rotate270]
        }
        Some(0) => [
            Orientation::FlipVertical,
            Orientation::Rotate270FlipH,
            Orientation::FlipHorizontal,
            Orientation::Rotate90FlipH,
        ],
        Some(_) => [
            Orientation::FlipHorizontal,
            Orientation::Rotate90FlipH,
            Orientation::FlipVertical,
            Orientation::Rotate270FlipH,
        ],
    };
    table[turned]
}
