//! Augmentation of training images: a random crop of random size and shape, and random mirroring.

use std::ops::Range;

use akin_core::Result;
use akin_core::image::{Filter, Pixels};
use rand::{Rng, RngExt};

use crate::config::{AugmentConfig, CropKind};

/// One random view of an image, `side`×`side` pixels: the image, resized if the config says so; a random crop of it,
/// resized to the square; and mirrored with probability 1/2 if the config says so.
pub fn random_view(
    picture: &Pixels,
    config: &AugmentConfig,
    side: u32,
    filter: Filter,
    rng: &mut impl Rng,
) -> Result<Pixels> {
    let resized = resized(picture, config);
    let [width, height] = resized.unwrap_or([picture.width(), picture.height()]);
    let [x, y, w, h] = random_crop(width, height, config, side, rng);
    let view = match resized {
        None => {
            let [x, y, w, h] = [x, y, w, h].map(f64::from);
            picture.resize_region(x, y, w, h, side, side, filter)?
        }
        Some(full) => {
            let crop =
                picture.resize_then_crop(full.map(f64::from), [x, y].map(f64::from), [w, h], filter)?;
            crop.resize_region(0.0, 0.0, f64::from(w), f64::from(h), side, side, filter)?
        }
    };
    Ok(if config.flip && rng.random_bool(0.5) { view.flip_horizontal() } else { view })
}

/// The width and height that an image is resized to before it is cropped, if it is. The longer side is rounded down, as
/// by torchvision's `Resize`, and at most `u32::MAX`.
fn resized(picture: &Pixels, config: &AugmentConfig) -> Option<[u32; 2]> {
    let sides = [picture.width(), picture.height()].map(u64::from);
    let shorter = sides[0].min(sides[1]);
    let in_proportion =
        |length| sides.map(|side| (u64::from(length) * side / shorter).min(u64::from(u32::MAX)) as u32);
    config.squeeze.map(|length| [length; 2]).or(config.resize.map(in_proportion))
}

/// The x, y, width and height of a random crop.
///
/// For `area` it is torchvision's `RandomResizedCrop`: its area is drawn uniformly from `crop_scale` times the area of the
/// image, its shape log-uniformly from `crop_ratio`. For `side` the square root of the area is drawn uniformly instead. If
/// ten draws do not fit into the image, the crop is the largest central one whose shape is allowed.
fn random_crop(width: u32, height: u32, config: &AugmentConfig, side: u32, rng: &mut impl Rng) -> [u32; 4] {
    if config.crop == CropKind::Position {
        return [rng.random_range(0..=width - side), rng.random_range(0..=height - side), side, side];
    }
    let [ratio_low, ratio_high] = config.crop_ratio;
    let area = f64::from(width) * f64::from(height);
    for _ in 0..10 {
        let target = match config.crop_side {
            Some([low, high]) => uniform(low..high, rng).powi(2),
            None => area * uniform(config.crop_scale[0]..config.crop_scale[1], rng),
        };
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
        AugmentConfig { crop_scale: scale, crop_ratio: ratio, ..AugmentConfig::default() }
    }

    /// An image whose red is the column and whose green is the row.
    fn gradient(width: u32, height: u32) -> Pixels {
        let bytes = (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, 0]));
        Pixels::new(width, height, bytes.collect()).unwrap()
    }

    #[test]
    fn crops_lie_inside_the_image_and_within_scale_and_ratio() {
        let mut rng = stream(0, "augmentation", &[]);
        for _ in 0..1000 {
            let [x, y, w, h] = random_crop(120, 80, &config([0.4, 1.0], [0.75, 4.0 / 3.0]), 32, &mut rng);
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
        let mut crop = |width, height, scale| {
            random_crop(width, height, &config(scale, [0.75, 4.0 / 3.0]), 32, &mut rng)
        };
        assert_eq!(crop(100, 4, [1.0, 1.0]), [47, 0, 5, 4]);
        assert_eq!(crop(1, 1, [0.4, 1.0]), [0, 0, 1, 1]);
    }

    #[test]
    fn sides_of_crops_are_uniform_between_their_limits() {
        let config = AugmentConfig {
            crop: CropKind::Side,
            crop_side: Some([40.0, 256.0]),
            crop_ratio: [1.0, 1.0],
            ..AugmentConfig::default()
        };
        let mut rng = stream(0, "augmentation", &[]);
        let mut crop = || random_crop(256, 300, &config, 224, &mut rng);
        let sides: Vec<f64> = (0..4000).map(|_| crop()[2]).map(f64::from).collect();
        assert!(sides.iter().all(|side| (40.0..=256.0).contains(side)));
        // The mean of a uniform side; a uniform area would give 169.
        let mean = sides.iter().sum::<f64>() / 4000.0;
        assert!((mean - 148.0).abs() < 5.0, "{mean}");
    }

    #[test]
    fn a_crop_at_a_random_place_shows_the_resized_image_pixel_by_pixel() {
        let config = AugmentConfig {
            resize: Some(80),
            crop: CropKind::Position,
            flip: false,
            ..AugmentConfig::default()
        };
        let picture = gradient(100, 80);
        let mut rng = stream(0, "augmentation", &[]);
        let mut corners = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let view = random_view(&picture, &config, 64, Filter::Bilinear, &mut rng).unwrap();
            let [left, top] = [view.data()[0], view.data()[1]];
            assert_eq!(view.data()[3 * (64 * 64 - 1)..][..2], [left + 63, top + 63]);
            corners.insert([left, top]);
        }
        let range = |place: usize| {
            (
                corners.iter().map(|corner| corner[place]).min(),
                corners.iter().map(|corner| corner[place]).max(),
            )
        };
        assert_eq!([range(0), range(1)], [(Some(0), Some(36)), (Some(0), Some(16))]);
    }

    #[test]
    fn an_image_keeps_its_shape_unless_it_is_squeezed() {
        let resize = AugmentConfig { resize: Some(256), ..AugmentConfig::default() };
        let squeeze = AugmentConfig { squeeze: Some(240), ..AugmentConfig::default() };
        let picture = gradient(100, 30);
        assert_eq!(resized(&picture, &resize), Some([853, 256]));
        assert_eq!(resized(&picture, &squeeze), Some([240, 240]));
        assert_eq!(resized(&picture, &AugmentConfig::default()), None);
    }

    #[test]
    fn a_very_long_image_is_resized_to_the_longest_side_that_there_is() {
        let config =
            AugmentConfig { resize: Some(4096), crop: CropKind::Position, ..AugmentConfig::default() };
        // In proportion it would be 2³² pixels wide.
        let picture = gradient(1 << 20, 1);
        assert_eq!(resized(&picture, &config), Some([u32::MAX, 4096]));
        let mut rng = stream(0, "augmentation", &[]);
        let view = random_view(&picture, &config, 32, Filter::Bilinear, &mut rng).unwrap();
        assert_eq!([view.width(), view.height()], [32, 32]);
    }

    #[test]
    fn every_image_gives_a_view_of_the_right_size() {
        let mut rng = stream(0, "augmentation", &[]);
        let side = AugmentConfig {
            resize: Some(256),
            crop: CropKind::Side,
            crop_side: Some([40.0, 256.0]),
            crop_ratio: [0.25, 4.0],
            ..AugmentConfig::default()
        };
        let position =
            AugmentConfig { squeeze: Some(40), crop: CropKind::Position, ..AugmentConfig::default() };
        let area = AugmentConfig { resize: Some(256), crop_scale: [0.16, 1.0], ..AugmentConfig::default() };
        for [width, height] in [[1, 1], [3, 200], [2000, 1], [224, 224], [256, 300]] {
            let picture = gradient(width, height);
            for config in [&side, &position, &area, &AugmentConfig::default()] {
                let view = random_view(&picture, config, 32, Filter::Bicubic, &mut rng).unwrap();
                assert_eq!([view.width(), view.height()], [32, 32], "{width}×{height}");
            }
        }
    }

    #[test]
    fn a_crop_by_area_takes_its_share_and_shape_from_the_stream_of_augmentation() {
        let picture = gradient(90, 70);
        let [low, high] = AugmentConfig::default().crop_scale;
        for seed in 0..20 {
            let mut rng = stream(seed, "augmentation", &[]);
            let target = 90.0 * 70.0 * uniform(low..high, &mut rng);
            let ratio = uniform(0.75_f64.ln()..(4.0_f64 / 3.0).ln(), &mut rng).exp();
            let [w, h] = [(target * ratio).sqrt().round() as u32, (target / ratio).sqrt().round() as u32];
            if w > 90 || h > 70 {
                continue;
            }
            let [x, y] = [rng.random_range(0..=90 - w), rng.random_range(0..=70 - h)];
            let [x, y, w, h] = [x, y, w, h].map(f64::from);
            let crop = picture.resize_region(x, y, w, h, 32, 32, Filter::Bilinear).unwrap();
            let expected = if rng.random_bool(0.5) { crop.flip_horizontal() } else { crop };
            let mut rng = stream(seed, "augmentation", &[]);
            let view =
                random_view(&picture, &AugmentConfig::default(), 32, Filter::Bilinear, &mut rng).unwrap();
            assert_eq!(view, expected);
        }
    }
}
