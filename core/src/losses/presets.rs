//! Named settings: the variants of the papers' tables and, where they differ from the text, of their code.

use super::{Entry, Family};
use crate::geometry::Space;

/// Every preset; its settings are those of a config's `[loss]` table.
pub(super) const PRESETS: &[Entry] = &[
    Entry {
        name: "blackbox_ap_published",
        title: "Blackbox-AP (code)",
        family: Family::AveragePrecision,
        summary: "Blackbox-AP with the random margin of its published code",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["rolinek2020"],
        complete: true,
        preset: Some(r#"{ "kind": "blackbox_ap", "random_margin": true }"#),
    },
    Entry {
        name: "cross_batch_memory_published",
        title: "XBM (code)",
        family: Family::Combinations,
        summary: "XBM as in its published code, which adds the loss of the batch itself",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2020"],
        complete: true,
        preset: Some(r#"{ "kind": "cross_batch_memory", "start": 2000, "batch_weight": 1.0 }"#),
    },
    Entry {
        name: "happier_f",
        title: "HAPPIER_F",
        family: Family::Hierarchical,
        summary: "HAPPIER with α = 5, which weighs the fine level most",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2022"],
        complete: true,
        preset: Some(
            r#"{ "kind": "happier", "surrogate": { "relevance": { "kind": "hierarchical_ap", "alpha": 5.0 } } }"#,
        ),
    },
    Entry {
        name: "happier_published",
        title: "HAPPIER (code)",
        family: Family::Hierarchical,
        summary: "HAPPIER as its published recipes run: offset 1.44 and a constant numerator",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2022"],
        complete: true,
        preset: Some(
            r#"{ "kind": "happier", "surrogate": { "upper_step": { "offset": 1.44 }, "smooth_rank": false } }"#,
        ),
    },
    Entry {
        name: "roadmap_published",
        title: "ROADMAP (code)",
        family: Family::Decomposability,
        summary: "ROADMAP as in its published code: the sum of both losses, offset 1.44, means over active pairs",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2021"],
        complete: true,
        preset: Some(
            r#"{ "kind": "sum", "terms": [
                { "weight": 1.0, "loss": { "kind": "sup_ap", "step": { "offset": 1.44 } } },
                { "weight": 1.0, "loss": { "kind": "calibration", "mean": "active", "normalise_embeddings": true } }
            ] }"#,
        ),
    },
    Entry {
        name: "softbin_ap_published",
        title: "SoftBin-AP (code)",
        family: Family::AveragePrecision,
        summary: "SoftBin-AP as in its published code: 25 bins over scores from 0 to 1",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["revaud2019"],
        complete: true,
        preset: Some(r#"{ "kind": "softbin_ap", "bins": 25, "lowest": 0.0 }"#),
    },
    Entry {
        name: "sum_norm_softmax",
        title: "ΣNSM",
        family: Family::Hierarchical,
        summary: "NormSoftmax on every level",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["zhai2019", "ramzi2022"],
        complete: true,
        preset: Some(r#"{ "kind": "levels", "loss": { "kind": "norm_softmax" } }"#),
    },
    Entry {
        name: "sup_ap_published",
        title: "SupAP (code)",
        family: Family::AveragePrecision,
        summary: "SupAP with the offset 1.44 of its published code",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2021"],
        complete: true,
        preset: Some(r#"{ "kind": "sup_ap", "step": { "offset": 1.44 } }"#),
    },
];
