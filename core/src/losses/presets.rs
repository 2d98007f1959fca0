//! Named settings: the variants of the papers' tables and, where they differ from the text, of their code.

use super::{Entry, Family};
use crate::geometry::Space;

/// Every preset; its settings are those of a config's `[loss]` table.
pub(super) const PRESETS: &[Entry] = &[
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
        name: "hier_published",
        title: "HIER (code)",
        family: Family::Hyperbolic,
        summary: "HIER as its public code runs: neighbours by label first, any stranger, ancestors that may be equal",
        optimises: "ap",
        spaces: &[Space::Poincare, Space::Cosine],
        sources: &["kim2023"],
        complete: true,
        preset: Some(
            r#"{ "kind": "hier", "labels": true, "anchor_as_stranger": true, "equal_ancestors": true }"#,
        ),
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
];
