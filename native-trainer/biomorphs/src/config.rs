//! The settings of a data set.

use akin_core::{Error, Kind, Result};

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct BiomorphConfig {
    /// The same seed, with the same other settings, gives the same pictures.
    pub seed: u64,
    /// Children of each node, level by level, coarse to fine.
    pub branching: Vec<usize>,
    /// Pictures of each finest class.
    pub images_per_class: usize,
    /// Width and height of a picture, in pixels: 16 … 2048.
    pub side: u32,
    /// The share of each parent's finest classes that goes to the test split, from 0 up to but not including 1.
    /// It is rounded so that a parent of at least two classes has one in either split; 0 puts none in the test
    /// split.
    pub held_out: f64,
}

impl Default for BiomorphConfig {
    /// 96 species in 3 levels, 24 pictures of 64 × 64 pixels each, a third of the species held out.
    fn default() -> Self {
        Self { seed: 0, branching: vec![4, 4, 6], images_per_class: 24, side: 64, held_out: 1.0 / 3.0 }
    }
}

/// A request for more pictures than this is a typing error.
const MAX_PICTURES: usize = 10_000_000;

/// More levels than this have no use.
const MAX_LEVELS: usize = 12;

impl BiomorphConfig {
    /// Checks the range of every setting.
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |message: String, hint: &str| Err(Error::new(Kind::Config, message, hint));
        if !(1..=MAX_LEVELS).contains(&self.branching.len()) || self.branching.contains(&0) {
            return refuse(
                format!("the branching {:?} describes no tree", self.branching),
                "give 1 to 12 numbers, each at least 1, such as 4,4,6",
            );
        }
        if self.images_per_class == 0 {
            return refuse("the number of pictures per class is 0".into(), "give at least 1");
        }
        if !(16..=2048).contains(&self.side) {
            return refuse(
                format!("the side of a picture is {} pixels, outside 16 to 2048", self.side),
                "give a number from 16 to 2048; 64 is the default",
            );
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return refuse(
                format!(
                    "the held-out share is {}, but some classes must be left for training",
                    self.held_out
                ),
                "give a number of at least 0 and below 1, such as 0.3",
            );
        }
        let pictures =
            self.branching.iter().try_fold(self.images_per_class, |product, &n| product.checked_mul(n));
        if pictures.is_none_or(|count| count > MAX_PICTURES) {
            return refuse(
                format!(
                    "the branching {:?} with {} pictures per class gives more than {MAX_PICTURES} pictures",
                    self.branching, self.images_per_class
                ),
                "lower the branching or the pictures per class",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused_with_the_range() {
        let good = BiomorphConfig::default();
        for (bad, part) in [
            (BiomorphConfig { branching: vec![], ..good.clone() }, "1 to 12 numbers"),
            (BiomorphConfig { branching: vec![3, 0], ..good.clone() }, "[3, 0] describes no tree"),
            (
                BiomorphConfig { branching: vec![usize::MAX, 2], ..good.clone() },
                "more than 10000000 pictures",
            ),
            (BiomorphConfig { images_per_class: 0, ..good.clone() }, "at least 1"),
            (BiomorphConfig { side: 8, ..good.clone() }, "8 pixels, outside 16 to 2048"),
            (BiomorphConfig { held_out: 1.0, ..good.clone() }, "the held-out share is 1"),
            (BiomorphConfig { held_out: f64::NAN, ..good.clone() }, "the held-out share is NaN"),
        ] {
            let error = bad.validate().expect_err("it is refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
