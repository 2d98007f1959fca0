//! Held to the numbers that the reference implementations print for small seeded inputs.
//!
//! `AKIN_GOLDEN=DIR cargo test -p akin-core --test golden` runs the same checks on another folder of the same
//! shape; a relative DIR counts from the workspace root.

#[path = "golden/losses.rs"]
mod losses;
#[path = "golden/metrics.rs"]
mod metrics;
#[path = "golden/support.rs"]
mod support;

use support::Checks;

/// Every file that is covered, and what checks one of its cases.
const CHECKS: Checks = &[
    ("happier_cluster_loss.json", losses::norm_softmax),
    ("happier_hap_surrogate.json", losses::hap_surrogate),
    ("happier_total.json", losses::happier),
    ("metrics_happier.json", metrics::happier),
    ("metrics_hashing.json", metrics::hashing),
    ("metrics_hierarchical_precision.json", metrics::hierarchical_precisions),
    ("metrics_pml.json", metrics::accuracy_calculator),
    ("metrics_recall_hyperbolic.json", metrics::recall_hyperbolic),
    ("metrics_recall_proxy_anchor.json", metrics::recall_proxy_anchor),
    ("norm_softmax.json", losses::norm_softmax),
];

#[test]
fn the_references_are_met() {
    support::run(CHECKS);
}
