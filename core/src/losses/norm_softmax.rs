//! NormSoftmax: classify embeddings by their cosine to one learned proxy a class.
//!
//! L = −(1/B) Σ_i log softmax_c(x_i · ŵ_c / T) at c = y_i, where ŵ is the proxy of unit length and
//! y the finest label. It is the fine-grained baseline of HAPPIER's tables (Zhai & Wu, *Classification
//! is a strong baseline for deep metric learning*, BMVC 2019, eq. 3) and the clustering loss that
//! HAPPIER adds to its surrogate (HAPPIER eq. 7): the same function under two names.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{Batch, Setting, matrix};
use crate::cosine::normalise;
use crate::random::{stream, uniform};
use crate::{Error, Kind, Result};

/// Settings of [`NormSoftmax`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NormSoftmaxConfig {
    /// T > 0. Default 0.05.
    pub temperature: f64,
    /// Whether to bring embeddings to unit length first, as pytorch-metric-learning does. The
    /// heads of akin already do; the published code of both papers takes them as they are. Default
    /// false.
    pub normalise_embeddings: bool,
}

impl Default for NormSoftmaxConfig {
    fn default() -> Self {
        Self { temperature: 0.05, normalise_embeddings: false }
    }
}

/// One proxy for each fine class and the cross-entropy over their cosines.
#[derive(Module, Debug)]
pub struct NormSoftmax {
    /// [C, d], of any length: only their direction counts.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: NormSoftmaxConfig,
}

impl NormSoftmaxConfig {
    /// Proxies drawn from U(−1/√d, 1/√d), from the stream `proxies` of the seed.
    ///
    /// # Errors
    ///
    /// A temperature that is not positive.
    pub fn init(&self, setting: &Setting) -> Result<NormSoftmax> {
        if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            return Err(Error::new(
                Kind::Config,
                format!("the temperature of norm_softmax is {}", self.temperature),
                "give a positive number; the papers use 0.05",
            ));
        }
        let shape = [setting.fine_classes(), setting.dimension];
        let bound = 1.0 / (setting.dimension as f32).sqrt();
        let values = uniform(&mut stream(setting.seed, "proxies", &[]), shape[0] * shape[1], -bound, bound);
        Ok(self.with_proxies(Tensor::from_data(burn::tensor::TensorData::new(values, shape), setting.device)))
    }

    /// The loss with these proxies, [C, d].
    pub fn with_proxies(&self, proxies: Tensor<2>) -> NormSoftmax {
        NormSoftmax { proxies: Param::from_tensor(proxies), config: self.clone() }
    }
}

impl NormSoftmax {
    /// The loss of a batch, shape [1]. Its labels must be below C. Every item has a class, so no
    /// batch is without a loss.
    pub fn forward(&self, batch: &Batch) -> Tensor<1> {
        let proxies = normalise(self.proxies.val());
        let [classes, _] = proxies.dims();
        let embeddings = if self.config.normalise_embeddings {
            normalise(batch.embeddings.clone())
        } else {
            batch.embeddings.clone()
        };
        let size = batch.labels.len();
        let mut one_hot = vec![0.0; size * classes];
        for (i, class) in batch.labels.column(batch.labels.levels()).into_iter().enumerate() {
            one_hot[i * classes + class as usize] = 1.0;
        }
        let one_hot = matrix(one_hot, [size, classes], &embeddings);
        // Multiplied, not divided: Burn rounds the gradient of a scalar division to f32.
        let logits = embeddings.matmul(proxies.transpose()) * (1.0 / self.config.temperature);
        (log_softmax(logits, 1) * one_hot).sum() * (-1.0 / size as f64)
    }
}
