//! Samples of tensors, and the formula of weights and images. `core`'s own tests of models read this file, too.

use burn::tensor::{DType, Tensor};
use serde::Deserialize;

use super::sha256;

/// Some elements of a tensor, at equal distances.
#[derive(Deserialize)]
pub(crate) struct Sample {
    largest: f64,
    norm: f64,
    values: Vec<f64>,
}

impl Sample {
    /// Asserts that a tensor agrees within 1e-4 of its largest element.
    pub(crate) fn check<const D: usize>(&self, what: &str, tensor: Tensor<D>) {
        let all: Vec<f64> = tensor.cast(DType::F64).into_data().try_to_vec().unwrap();
        let norm = all.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Live batch normalisation takes the bias before it away, so the gradient of that bias is 0, up to rounding.
        if self.norm < 1e-12 {
            return assert!(norm < 1e-12, "{what}: norm {norm} instead of 0");
        }
        assert!((norm - self.norm).abs() < 1e-4 * self.norm, "{what}: norm {norm} instead of {}", self.norm);
        for (i, &expected) in self.values.iter().enumerate() {
            let got = all[i * all.len() / self.values.len()];
            let error = (got - expected).abs() / self.largest;
            assert!(error < 1e-4, "{what}: {got} instead of {expected}, of at most {}", self.largest);
        }
    }
}

/// Numbers from −1 to 1 by the name of a tensor and the number of the element.
pub(crate) fn formula(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let seed = u64::from_str_radix(&sha256(name.as_bytes())[..16], 16).unwrap().swap_bytes();
    (1..=count as u64).map(move |i| {
        let mut x = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

/// A weight by formula.
pub(crate) fn weight(name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let fan_in: usize = shape.iter().skip(1).product();
    let scaled =
        |centre: f64, scale: f64| formula(name, count).map(|x| (centre + scale * x) as f32).collect();
    match shape {
        [] => vec![0.0],
        [1, _, ..] => scaled(0.0, 0.5),
        [_, _, ..] => scaled(0.0, (6.0 / fan_in as f64).sqrt()),
        _ if name.ends_with("running_var") => scaled(1.0, 0.5),
        _ if name.ends_with(".weight") => scaled(1.0, 0.25),
        _ if name.ends_with(".gamma") => scaled(0.5, 0.25),
        _ => scaled(0.0, 0.1),
    }
}
