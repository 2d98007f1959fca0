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
        name: "multi_similarity_published",
        title: "Multi-Similarity (code)",
        family: Family::Pairs,
        summary: "Multi-Similarity as its published code runs: λ = 0.5 and β = 40",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2019"],
        complete: true,
        preset: Some(r#"{ "kind": "multi_similarity", "beta": 40.0, "base": 0.5 }"#),
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
        name: "sum_triplet",
        title: "ΣTL",
        family: Family::Hierarchical,
        summary: "the triplet loss with semi-hard negatives on every level",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["schroff2015", "ramzi2022"],
        complete: true,
        preset: Some(
            r#"{ "kind": "levels", "loss": {
                "kind": "triplet_margin",
                "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "semihard" }
            } }"#,
        ),
    },
    Entry {
        name: "triplet_distance_weighted",
        title: "Triplet, distance-weighted",
        family: Family::Pairs,
        summary: "the triplet loss with negatives drawn so that all distances come up alike",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wu2017"],
        complete: true,
        preset: Some(r#"{ "kind": "triplet_margin", "miner": { "kind": "distance_weighted_miner" } }"#),
    },
    Entry {
        name: "triplet_semihard",
        title: "Triplet, semi-hard",
        family: Family::Pairs,
        summary: "the triplet loss with negatives farther than the positive, but not by the margin",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["schroff2015"],
        complete: true,
        preset: Some(
            r#"{
                "kind": "triplet_margin",
                "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "semihard" }
            }"#,
        ),
    },
];
