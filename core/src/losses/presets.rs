//! Named settings: the variants of the papers' tables and, where they differ from the text, of their code.

use super::{Entry, Family};
use crate::geometry::Space;

/// Every preset; its settings are those of a config's `[loss]` table.
pub(super) const PRESETS: &[Entry] = &[
    Entry {
        name: "dcwh",
        title: "DCWH",
        family: Family::Hashing,
        summary: "HPDH on the fine level alone: class-wise Gaussians in the space of codes",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["zhe2020"],
        complete: true,
        preset: Some(r#"{ "kind": "hpdh", "fine_only": true, "squared": true }"#),
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
        name: "hpdh_published",
        title: "HPDH (code)",
        family: Family::Hashing,
        summary: "HPDH as its code computes it: squared distances over σ, and 1e-8 in place of a safe logarithm",
        optimises: "ndcg",
        spaces: &[Space::Binary],
        sources: &["zhang2019"],
        complete: true,
        preset: Some(r#"{ "kind": "hpdh", "squared": true, "floor": 1e-8 }"#),
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
