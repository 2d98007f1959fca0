//! ROADMAP: a bound of 1 − AP, with a calibration that makes AP decomposable into batches.
//!
//! L = (1 − λ) · L_SupAP + λ · L_calibration (Ramzi et al., *Robust and Decomposable Average Precision for Image
//! Retrieval*, NeurIPS 2021, eq. 2), with [`sup_ap`](mod@super::sup_ap) and [`calibration`](super::calibration).
//!
//! # Text and code
//!
//! `roadmap` is the text, with λ = ½. `roadmap_published` is the code: the sum of both losses, the offset 1.44 of the step
//! and the mean over active pairs. Both work. On drawn creatures (recipe `biomorphs`, one seed) AP of species, which the
//! loss optimises, is 91.0 with the text and 90.0 with the code. On iNaturalist the code has the offset 1 and the start 0.
//!
//! # The successor
//!
//! ROADMAP++ of its successor (Ramzi et al., *Optimization of Rank Losses for Image Retrieval*, TPAMI 2025) has another
//! second term: 0.9 · L_SupAP + 0.1 · L_clust, with [`norm_softmax`](super::norm_softmax) at a temperature of 0.05. So do
//! `roadndcg` and `roadratk`, over [`sup_ndcg`](super::ndcg) and [`sup_recall`](super::recall), and `happier`
//! over the H-AP surrogate. Each has the step of its code for SOP (offset 1.44) and a preset
//! `…_inat` with that for iNaturalist (offset 1, start 0).

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
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
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
        },
        LossEntry {
            name: "roadmap_plus_plus",
            title: "ROADMAP++",
            summary: "SupAP with the clustering loss of HAPPIER, as in the code for SOP",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_ap", "step": { "offset": 1.44 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "roadmap_plus_plus_inat",
            title: "ROADMAP++ (iNaturalist)",
            summary: "SupAP with the clustering loss of HAPPIER, as in the code for iNaturalist",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_ap", "step": { "offset": 1.0, "start": 0.0 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = WeightedSum;

    fn init(&self, context: &LossContext) -> Result<WeightedSum> {
        let sup_ap = Loss::SupAp(self.sup_ap.init(context)?);
        let calibration = Loss::Calibration(self.calibration.init(context)?);
        WeightedSum::blend(Self::ENTRY.title, self.lambda, [sup_ap, calibration])
    }
}
