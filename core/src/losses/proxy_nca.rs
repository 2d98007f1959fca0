//! Proxy-NCA: neighbourhood components analysis with proxies. An item is pulled to the proxy of its class and pushed
//! away from all others.
//!
//! With x̂ and p̂ of unit length and d_iz = ‖x̂_i − p̂_z‖² (Movshovitz-Attias et al., ICCV 2017),
//!
//! ```text
//! L = −(1/B) Σ_i log( e^{−s·d_iy} / Σ_{z ∈ Z_i} e^{−s·d_iz} )          y = y_i
//! ```
//!
//! Z_i are all proxies except that of the item's class. ProxyNCA++ (Teh et al., ECCV 2020) includes that proxy, which
//! makes the quotient a probability, and uses a temperature T = 1/s of 1/9: its code scales both vectors by 3, so their
//! squared distance by 9. As d = 2 − 2 x̂·p̂, the constant cancels and the exponents are 2s x̂·p̂.
//!
//! | published as | settings |
//! |---|---|
//! | Proxy-NCA | the defaults |
//! | ProxyNCA++ | `proxy_nca_plus_plus`: scale 9, denominator `all`, proxies from N(0, 1/8²) |
//! | pytorch-metric-learning | scale 1, denominator `all` |
//! | Proxy-Anchor's comparison | scale 32, denominator `all` |
//!
//! HIER's code gives the name Proxy-NCA to another loss, [`proxy_anchor`](super::proxy_anchor) with items as anchors.
//!
//! Embeddings are [B, d], proxies [C, d]. Every item has a proxy, so every batch has a loss. With a single class the
//! loss is 0, because there is no other proxy. Ties are not special: the loss is smooth.

use burn::module::Param;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    BuildLoss, ClassProxies, Family, LossContext, LossEntry, ProxyLoss, above_zero, log_sum_exp,
    mask_exponents,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of Proxy-NCA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ProxyNcaConfig {
    /// s > 0, the factor of the squared distance. Default 1.
    pub scale: f64,
    /// Z_i, the proxies in the denominator. Default: those of the other classes.
    pub denominator: Denominator,
    /// The standard deviation from which proxies are drawn. The loss uses only their direction, but a longer proxy turns
    /// more slowly at the same learning rate. Default 1.
    pub proxy_deviation: f64,
}

/// The proxies that an item's own proxy competes with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Denominator {
    /// Those of the other classes, as in Proxy-NCA.
    #[default]
    Others,
    /// All, including its own, as in ProxyNCA++.
    All,
}

impl Default for ProxyNcaConfig {
    fn default() -> Self {
        Self { scale: 1.0, denominator: Denominator::Others, proxy_deviation: 1.0 }
    }
}

impl BuildLoss for ProxyNcaConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "proxy_nca",
        title: "Proxy-NCA",
        family: Family::Proxies,
        summary: "closer to the proxy of the item's class than to all others",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["movshovitz2017"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "proxy_nca_plus_plus",
        title: "ProxyNCA++",
        summary: "Proxy-NCA as a probability over all proxies, at temperature 1/9",
        sources: &["teh2020"],
        preset: Some(
            r#"{ "kind": "proxy_nca", "scale": 9.0, "denominator": "all", "proxy_deviation": 0.125 }"#,
        ),
        ..Self::ENTRY
    }];
    type Loss = ClassProxies;

    fn init(&self, context: &LossContext) -> Result<ClassProxies> {
        ClassProxies::new(ProxyLoss::ProxyNca(self.clone()), context)
    }
}

impl ProxyNcaConfig {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<()> {
        above_zero("proxy_nca", "scale", self.scale, 1.0)?;
        above_zero("proxy_nca", "proxy_deviation", self.proxy_deviation, 1.0)
    }

    /// Checks the settings and draws `count` proxies.
    pub(super) fn proxies(&self, context: &LossContext, count: usize) -> Result<Param<Tensor<2>>> {
        self.check()?;
        Ok(context.normal_proxies(count, self.proxy_deviation))
    }

    /// The loss of embeddings [B, d] against proxies [C, d]; `own` is 1 at the proxy of each item, [B, C]. An item without
    /// a proxy of its own is left out.
    pub(super) fn value(&self, embeddings: Tensor<2>, proxies: Tensor<2>, own: Tensor<2>) -> Tensor<1> {
        let classes = own.dims()[1];
        let has_own = own.clone().sum_dim(1);
        let items = has_own.clone().sum().clamp_min(1.0);
        let exponents = normalise(embeddings).matmul(normalise(proxies).transpose()) * (2.0 * self.scale);
        if classes == 1 {
            return exponents.sum() * 0.0;
        }
        let positive = (exponents.clone() * own.clone()).sum_dim(1);
        let compared = match self.denominator {
            Denominator::All => exponents,
            Denominator::Others => mask_exponents(exponents, -own + 1.0),
        };
        ((log_sum_exp(compared) - positive) * has_own).sum() * items.recip()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn a_scale_of_zero_is_refused() {
        let error = refusal(&ProxyNcaConfig { scale: 0.0, ..Default::default() });
        assert_eq!(error.message(), "the scale of proxy_nca is 0");
        let error = refusal(&ProxyNcaConfig { proxy_deviation: f64::NAN, ..Default::default() });
        assert_eq!(error.message(), "the proxy_deviation of proxy_nca is NaN");
    }
}
