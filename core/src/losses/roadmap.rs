//! ROADMAP: a bound of 1 − AP, with a calibration that makes AP decomposable into batches.
//!
//! L = (1 − λ) · L_SupAP + λ · L_calibration (Ramzi et al., *Robust and Decomposable Average Precision for Image
//! Retrieval*, NeurIPS 2021, eq. 2), with [`sup_ap`](mod@super::sup_ap) and [`calibration`](super::calibration).

use super::{BuildLoss, Family, Loss, LossContext, LossEntry, WeightedSum};
use crate::Result;
use crate::geometry::Space;

pub use crate::query_losses::RoadmapConfig;

impl BuildLoss for RoadmapConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "roadmap",
        title: "ROADMAP",
        family: Family::Decomposability,
        summary: "SupAP with calibrated scores",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2021"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "roadmap_published",
        title: "ROADMAP (code)",
        summary: "ROADMAP as in its published code: the sum of both losses, offset 1.44, means over active pairs",
        preset: Some(
            r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "sup_ap", "step": { "offset": 1.44 } } },
                    { "weight": 1.0, "loss": { "kind": "calibration", "mean": "active", "normalise_embeddings": true } }
                ] }"#,
        ),
        ..Self::ENTRY
    }];
    type Loss = WeightedSum;

    fn init(&self, context: &LossContext) -> Result<WeightedSum> {
        let sup_ap = Loss::SupAp(self.sup_ap.init(context)?);
        let calibration = Loss::Calibration(self.calibration.init(context)?);
        WeightedSum::blend(Self::ENTRY.title, self.lambda, [sup_ap, calibration])
    }
}
