//! One learned proxy for each fine class, and the losses that compare embeddings with them:
//! [`proxy_anchor`](super::proxy_anchor) and [`proxy_nca`](super::proxy_nca).

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Batch, LossContext, Objective, ProxyAnchorConfig, ProxyNcaConfig, apart, one_hot};
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// A loss between embeddings and proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProxyLoss {
    /// [Proxy-Anchor](super::proxy_anchor).
    ProxyAnchor(ProxyAnchorConfig),
    /// [Proxy-NCA](super::proxy_nca).
    ProxyNca(ProxyNcaConfig),
}

impl ProxyLoss {
    /// The same loss with another scale (α of Proxy-Anchor) and margin, where they are given.
    ///
    /// # Errors
    ///
    /// A margin for Proxy-NCA, which has none.
    pub(super) fn with(&self, scale: Option<f64>, margin: Option<f64>) -> Result<Self> {
        Ok(match self.clone() {
            Self::ProxyAnchor(loss) => Self::ProxyAnchor(ProxyAnchorConfig {
                alpha: scale.unwrap_or(loss.alpha),
                margin: margin.unwrap_or(loss.margin),
                ..loss
            }),
            Self::ProxyNca(_) if margin.is_some() => {
                return Err(Error::new(
                    Kind::Config,
                    "Proxy-NCA has no margin, but `margins` are given",
                    "remove `margins`, or set the loss to proxy_anchor",
                ));
            }
            Self::ProxyNca(loss) => {
                Self::ProxyNca(ProxyNcaConfig { scale: scale.unwrap_or(loss.scale), ..loss })
            }
        })
    }

    /// Checks the settings.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::ProxyAnchor(loss) => loss.check(),
            Self::ProxyNca(loss) => loss.check(),
        }
    }

    /// Checks the settings and draws `count` proxies.
    pub(super) fn proxies(&self, context: &LossContext, count: usize) -> Result<Param<Tensor<2>>> {
        match self {
            Self::ProxyAnchor(loss) => loss.proxies(context, count),
            Self::ProxyNca(loss) => loss.proxies(context, count),
        }
    }

    /// The loss of embeddings [B, d] against proxies [C, d]; `own` is 1 at the proxy of each item, and `apart` at the
    /// proxies of what it is decided not to be, [B, C].
    pub(super) fn value(
        &self,
        embeddings: Tensor<2>,
        proxies: Tensor<2>,
        own: Tensor<2>,
        apart: Tensor<2>,
    ) -> Tensor<1> {
        match self {
            Self::ProxyAnchor(loss) => loss.value(embeddings, proxies, own, apart),
            Self::ProxyNca(loss) => loss.value(embeddings, proxies, own),
        }
    }
}

/// One proxy for each fine class, with the loss that compares items with them.
#[derive(Module, Debug)]
pub struct ClassProxies {
    /// [C, d], of any length.
    pub proxies: Param<Tensor<2>>,
    /// [C, L].
    #[module(skip)]
    classes: Labels,
    #[module(skip)]
    loss: ProxyLoss,
}

impl ClassProxies {
    pub(super) fn new(loss: ProxyLoss, context: &LossContext) -> Result<Self> {
        let proxies = loss.proxies(context, context.fine_classes())?;
        Ok(Self { proxies, classes: context.fine_paths(), loss })
    }
}

impl Objective for ClassProxies {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let proxies = self.proxies.val();
        let own = one_hot(batch.labels, proxies.dims()[0], &batch.embeddings);
        let apart = match batch.labels.are_known() {
            true => -own.clone() + 1.0,
            false => apart(batch.labels, &self.classes, &batch.embeddings),
        };
        self.loss.value(batch.embeddings.clone(), proxies, own, apart)
    }
}
