//! Pictures through a network, in batches and in parallel.

use akin_core::encoder::Encoder;
use akin_core::image::Pixels;
use anyhow::{Result, anyhow};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use crate::loader::Pictures;
use crate::progress::Bar;

/// The number of pictures in one forward pass.
pub const BATCH: usize = 64;

/// Applies `forward` to the pictures of `items`, in their order. Returns the items that could be read
/// and, row after row, what `forward` gave for them.
///
/// `encoder` prepares the pictures. It must be one without gradients.
pub fn forward_pictures(
    encoder: &Encoder,
    pictures: &Pictures,
    items: &[usize],
    device: &Device,
    bar: &Bar,
    forward: impl Fn(Tensor<4>) -> Tensor<2>,
) -> Result<(Vec<usize>, Vec<f32>)> {
    let device = device.clone().without_autodiff();
    let (mut readable, mut values) = (Vec::with_capacity(items.len()), Vec::new());
    for batch in items.chunks(BATCH) {
        let (batch_readable, views): (Vec<usize>, Vec<Pixels>) =
            batch.par_iter().filter_map(|&item| Some((item, view(encoder, pictures, item)?))).unzip();
        pictures.check()?;
        if !views.is_empty() {
            values.extend(to_vec(forward(encoder.batch(&views, &device)))?);
        }
        readable.extend(batch_readable);
        bar.advance(batch.len() as u64);
    }
    Ok((readable, values))
}

/// The picture of an item as the encoder takes it; none if it cannot be read or resized.
pub fn view(encoder: &Encoder, pictures: &Pictures, item: usize) -> Option<Pixels> {
    encoder.preprocessing().view(&*pictures.get(item)?).ok()
}

/// The numbers of a matrix, row after row.
pub fn to_vec(matrix: Tensor<2>) -> Result<Vec<f32>> {
    matrix.into_data().try_to_vec::<f32>().map_err(|error| anyhow!("{error:?}"))
}
