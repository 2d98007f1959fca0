//! Proxy-Anchor: each proxy pulls the items of its class, the hardest most, and pushes all others away.
//!
//! With s_ip the cosine of item i and proxy p (Kim et al., CVPR 2020, eq. 4),
//!
//! ```text
//! L = (1/|P⁺|) Σ_{p ∈ P⁺} log(1 + Σ_{i: y_i = p} e^{−α(s_ip − δ)})
//!   + (1/|P|)  Σ_{p ∈ P}  log(1 + Σ_{i: y_i ≠ p} e^{ α(s_ip + δ)})
//! ```
//!
//! P are all proxies, one for each fine class; P⁺ are those with an item in the batch. `anchors = "items"` swaps the
//! two sides: each item is pulled to its one proxy and pushed away from the others, and both terms are averaged over
//! the items (preset `proxy_anchor_per_item`). HIER's code calls that Proxy-NCA.
//!
//! Embeddings are [B, d], proxies [C, d]. A class without items has no first term, and a class of all items no second
//! one: an empty sum gives log 1 = 0. Ties are not special: the loss is smooth.

use burn::module::Param;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    BuildLoss, ClassProxies, Family, LossContext, LossEntry, ProxyLoss, above_zero, log_one_plus_sum_exp,
    not_negative,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of Proxy-Anchor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ProxyAnchorConfig {
    /// α > 0, the scale of the cosines. Default 32.
    pub alpha: f64,
    /// δ ≥ 0, the margin. Default 0.1.
    pub margin: f64,
    /// Whether each proxy sums over the items or each item over the proxies. Default: each proxy.
    pub anchors: Anchors,
}

/// The side whose members each have a sum over the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Anchors {
    /// Each proxy sums over the items.
    #[default]
    Proxies,
    /// Each item sums over the proxies.
    Items,
}

impl Default for ProxyAnchorConfig {
    fn default() -> Self {
        Self { alpha: 32.0, margin: 0.1, anchors: Anchors::Proxies }
    }
}

impl BuildLoss for ProxyAnchorConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "proxy_anchor",
        title: "Proxy-Anchor",
        family: Family::Proxies,
        summary: "proxies that pull the hard items of their class and push away those of the others",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["kim2020"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "proxy_anchor_per_item",
        title: "Proxy-Anchor per item",
        summary: "Proxy-Anchor summed for each item instead of each proxy, as the code of HIER does",
        sources: &["kim2020", "kim2023"],
        preset: Some(r#"{ "kind": "proxy_anchor", "anchors": "items" }"#),
        ..Self::ENTRY
    }];
    type Loss = ClassProxies;

    fn init(&self, context: &LossContext) -> Result<ClassProxies> {
        ClassProxies::new(ProxyLoss::ProxyAnchor(self.clone()), context)
    }
}

impl ProxyAnchorConfig {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<()> {
        above_zero("proxy_anchor", "alpha", self.alpha, 32.0)?;
        not_negative("proxy_anchor", "margin", self.margin, 0.1)
    }

    /// Checks the settings and draws `count` proxies from N(0, 2/count), as the published code does.
    pub(super) fn proxies(&self, context: &LossContext, count: usize) -> Result<Param<Tensor<2>>> {
        self.check()?;
        Ok(context.normal_proxies(count, (2.0 / count as f64).sqrt()))
    }

    /// The loss of embeddings [B, d] against proxies [C, d]; `own` is 1 at the proxy of each item, and `apart` at the
    /// proxies that it is pushed away from, [B, C].
    pub(super) fn value(
        &self,
        embeddings: Tensor<2>,
        proxies: Tensor<2>,
        own: Tensor<2>,
        apart: Tensor<2>,
    ) -> Tensor<1> {
        let scores = normalise(embeddings).matmul(normalise(proxies).transpose());
        // One anchor a row.
        let (scores, own, apart) = match self.anchors {
            Anchors::Proxies => (scores.transpose(), own.transpose(), apart.transpose()),
            Anchors::Items => (scores, own, apart),
        };
        let anchors = scores.dims()[0];
        let with_positives = own.clone().max_dim(1).sum().clamp_min(1.0);
        let pull = log_one_plus_sum_exp((scores.clone() - self.margin) * -self.alpha, own);
        let push = log_one_plus_sum_exp((scores + self.margin) * self.alpha, apart);
        pull.sum() / with_positives + push.sum() * (1.0 / anchors as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = refusal(&ProxyAnchorConfig { alpha: 0.0, ..Default::default() });
        assert_eq!(error.message(), "the alpha of proxy_anchor is 0");
        let error = refusal(&ProxyAnchorConfig { margin: -0.1, ..Default::default() });
        assert_eq!(error.message(), "the margin of proxy_anchor is -0.1");
    }
}
