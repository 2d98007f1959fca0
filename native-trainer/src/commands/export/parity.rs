//! The parity check: small pictures and the trainer's embeddings of them.

use akin_core::bundle::{BundleWriter, ElementType, Parity, embedding_bytes};
use akin_core::encoder::Encoder;
use akin_core::image::{Pixels, decode, self_test_pattern};
use anyhow::Result;
use burn::tensor::Device;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

use super::tile;
use crate::pictures::loader::Pictures;

/// The number of pictures, the test pattern among them.
const PICTURES: usize = 8;
/// Their side in pixels.
const SIDE: u32 = 96;
/// The JPEG quality of the photos.
const QUALITY: u8 = 90;

/// The paths and bytes of the pictures: a test pattern, which has fine structure in every channel, and the central squares
/// of pictures from all over the gallery.
pub fn parity_pictures(pictures: &Pictures, gallery: &[usize]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pattern = Vec::new();
    let pixels = self_test_pattern(SIDE)?.into_data();
    PngEncoder::new(&mut pattern).write_image(&pixels, SIDE, SIDE, ExtendedColorType::Rgb8)?;
    let mut files = vec![("parity/0.png".to_owned(), pattern)];
    let photos = gallery.len().min(PICTURES - 1);
    let chosen = (0..photos).filter_map(|place| pictures.get(gallery[place * gallery.len() / photos]));
    for picture in chosen {
        let mut photo = Vec::new();
        JpegEncoder::new_with_quality(&mut photo, QUALITY).write_image(
            &tile(&picture, SIDE)?.into_data(),
            SIDE,
            SIDE,
            ExtendedColorType::Rgb8,
        )?;
        files.push((format!("parity/{}.jpg", files.len()), photo));
    }
    pictures.check()?;
    Ok(files)
}

/// Adds the embeddings of the pictures by the encoder of a run, and measures how near that of the bundle comes to them.
pub fn add_parity(
    bundle: &mut BundleWriter,
    folder: &str,
    pictures: &[(String, Vec<u8>)],
    [encoder, shipped]: [&Encoder; 2],
    device: &Device,
) -> Result<Parity> {
    let pixels: Vec<Pixels> =
        pictures.iter().map(|(_, bytes)| decode(bytes)).collect::<akin_core::Result<_>>()?;
    let trainers = encoder.embed(&pixels, device)?;
    let cosine = Parity::smallest_cosine(&shipped.embed(&pixels, device)?, &trainers, encoder.dimension());
    let embeddings = format!("{folder}/parity.f32");
    bundle.add(&embeddings, embedding_bytes(&trainers, ElementType::F32))?;
    Ok(Parity { embeddings, cosine })
}
