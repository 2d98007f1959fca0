//! Pictures through a network, in batches and in parallel.

use akin_base::progress::Bar;
use akin_core::encoder::Encoder;
use akin_core::image::Pixels;
use anyhow::{Result, anyhow};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use crate::config::device::out_of_memory;
use crate::pictures::loader::Pictures;

/// The largest number of items in one forward pass.
pub const BATCH: usize = 64;

/// Applies `forward` to the pictures of `items`, in their order and in batches. Returns the items that could be read
/// and, row after row, what `forward` gave for them.
///
/// `encoder` prepares the pictures. It must be one without gradients.
///
/// # Errors
///
/// Fails if the system could not read a picture, if `forward` fails, or if the device has too little memory for a single one.
pub fn forward_pictures(
    encoder: &Encoder,
    pictures: &Pictures,
    items: &[usize],
    device: &Device,
    bar: &Bar,
    forward: impl Fn(Tensor<4>) -> akin_core::Result<Tensor<2>>,
) -> Result<(Vec<usize>, Vec<f32>)> {
    let device = device.clone().without_autodiff();
    let (mut readable, mut values) = (Vec::with_capacity(items.len()), Vec::new());
    in_batches(items, |batch| {
        let (batch_readable, views): (Vec<usize>, Vec<Pixels>) =
            batch.par_iter().filter_map(|&item| Some((item, view(encoder, pictures, item)?))).unzip();
        pictures.check()?;
        if !views.is_empty() {
            values.extend(to_vec(forward(encoder.batch(&views, &device))?)?);
        }
        readable.extend(batch_readable);
        bar.advance(batch.len() as u64);
        Ok(())
    })?;
    Ok((readable, values))
}

/// Calls `pass` with one batch of items after another. If the device has too little memory for a batch, its items and all
/// later ones come in batches of half the size.
fn in_batches(items: &[usize], mut pass: impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
    let (mut rest, mut size) = (items, BATCH);
    while !rest.is_empty() {
        size = size.min(rest.len());
        let (batch, after) = rest.split_at(size);
        match pass(batch) {
            Ok(()) => rest = after,
            Err(error) if size > 1 && out_of_memory(&error).is_some() => size /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The picture of an item as the encoder takes it; none if it cannot be read or resized.
pub fn view(encoder: &Encoder, pictures: &Pictures, item: usize) -> Option<Pixels> {
    encoder.preprocessing().view(&*pictures.get(item)?).ok()
}

/// The numbers of a tensor, row after row.
///
/// # Errors
///
/// A device that failed to compute them, for example because it has too little memory.
pub fn to_vec<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let numbers = tensor.try_into_data()?.try_to_vec::<f32>();
    numbers.map_err(|error| anyhow!("the numbers of a tensor are not of type f32: {error:?}"))
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use burn::tensor::ExecutionError;

    use super::*;

    /// Passes 150 items on a device with memory for `fits` of them. Returns those that passed, and the sizes that were tried.
    fn pass(fits: usize) -> (Result<()>, Vec<usize>, Vec<usize>) {
        let (mut passed, mut sizes) = (Vec::new(), Vec::new());
        let result = in_batches(&Vec::from_iter(0..150), |batch| {
            sizes.push(batch.len());
            if batch.len() > fits {
                return Err(ExecutionError::WithContext { reason: "out of memory".into() }.into());
            }
            passed.extend_from_slice(batch);
            Ok(())
        });
        (result, passed, sizes)
    }

    #[test]
    fn a_device_with_too_little_memory_gets_smaller_batches() {
        for (fits, tried) in [(64, vec![64, 64, 22]), (40, vec![64, 32, 32, 32, 32, 22])] {
            let (result, passed, sizes) = pass(fits);
            assert!(result.is_ok());
            assert_eq!(passed, Vec::from_iter(0..150));
            assert_eq!(sizes, tried);
        }
        let (result, passed, sizes) = pass(0);
        assert!(result.is_err() && passed.is_empty());
        assert_eq!(sizes, [64, 32, 16, 8, 4, 2, 1]);
    }

    #[test]
    fn an_error_of_another_kind_ends_the_passes() {
        let mut passes = 0;
        let result = in_batches(&[0, 1], |_| {
            passes += 1;
            bail!("the file out of memory/a.png cannot be read")
        });
        assert!(result.is_err());
        assert_eq!(passes, 1);
    }
}
