//! Augmentation of training images: a random crop of random size and shape, and random mirroring.

use std::ops::Range;

use akin_core::Result;
use akin_core::image::{Filter, Pixels};
use rand::{Rng, RngExt};

use crate::config::AugmentConfig;

/// One random view of an image, `side`×`side` pixels.
///
/// The crop is torchvision's `RandomResizedCrop`: its area is drawn uniformly from `crop_scale` times
/// the area of the image, its shape log-uniformly from `crop_ratio`. If ten draws do not fit into the
/// image, the crop is the largest central one whose shape is allowed.
pub fn random_view(
    picture: &Pixels,
    config: &AugmentConfig,
    side: u32,
    filter: Filter,
    rng: &mut impl Rng,
) -> Result<Pixels> {
    let [x, y, width, height] = random_crop(picture.width(), picture.height(), config, rng).map(f64::from);
    let view = picture.resize_region(x, y, width, height, side, side, filter)?;
    Ok(if config.flip && rng.random_bool(0.5) { view.flip_horizontal() } else { view })
}

/// The x, y, width and height of a random crop.
fn random_crop(width: u32, height: u32, config: &AugmentConfig, rng: &mut impl Rng) -> [u32; 4] {
    let [scale_low, scale_high] = config.crop_scale;
    let [ratio_low, ratio_high] = config.crop_ratio;
    let area = f64::from(width) * f64::from(height);
    for _ in 0..10 {
        let target = area * uniform(scale_low..scale_high, rng);
        let ratio = uniform(ratio_low.ln()..ratio_high.ln(), rng).exp();
        let w = (target * ratio).sqrt().round() as u32;
        let h = (target / ratio).sqrt().round() as u32;
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            return [rng.random_range(0..=width - w), rng.random_range(0..=height - h), w, h];
        }
    }
    let ratio = (f64::from(width) / f64::from(height)).clamp(ratio_low, ratio_high);
    let w = f64::from(width).min((f64::from(height) * ratio).round()).max(1.0) as u32;
    let h = f64::from(height).min((f64::from(w) / ratio).round()).max(1.0) as u32;
    [(width - w) / 2, (height - h) / 2, w, h]
}

/// A number drawn uniformly from a range; its start if the range is empty.
fn uniform(range: Range<f64>, rng: &mut impl Rng) -> f64 {
    range.start + (range.end - range.start) * rng.random::<f64>()
}

#[cfg(test)]
mod tests {
    use akin_core::random::stream;

    use super::*;

    fn config(scale: [f64; 2], ratio: [f64; 2]) -> AugmentConfig {
        AugmentConfig { crop_scale: scale, crop_ratio: ratio, flip: true }
    }

    #[test]
    fn crops_lie_inside_the_image_and_within_scale_and_ratio() {
        let mut rng = stream(0, "augmentation", &[]);
        for _ in 0..1000 {
            let [x, y, w, h] = random_crop(120, 80, &config([0.4, 1.0], [0.75, 4.0 / 3.0]), &mut rng);
            assert!(x + w <= 120 && y + h <= 80);
            let area = f64::from(w * h) / (120.0 * 80.0);
            assert!((0.38..=1.0).contains(&area), "{area}");
            let ratio = f64::from(w) / f64::from(h);
            assert!((0.73..=1.36).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn an_image_too_narrow_for_any_crop_is_cropped_at_its_centre() {
        let mut rng = stream(0, "augmentation", &[]);
        assert_eq!(random_crop(100, 4, &config([1.0, 1.0], [0.75, 4.0 / 3.0]), &mut rng), [47, 0, 5, 4]);
        assert_eq!(random_crop(1, 1, &config([0.4, 1.0], [0.75, 4.0 / 3.0]), &mut rng), [0, 0, 1, 1]);
    }
}
