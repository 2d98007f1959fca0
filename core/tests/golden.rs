//! Held to the numbers that the reference implementations print for small seeded inputs.
//!
//! `AKIN_GOLDEN=DIR cargo test -p akin-core --test golden` runs the same checks on another folder of the same
//! shape; a relative DIR counts from the workspace root.

#[path = "golden/hyperbolic.rs"]
mod hyperbolic;
#[path = "golden/losses.rs"]
mod losses;
#[path = "golden/metrics.rs"]
mod metrics;
#[path = "golden/pairs.rs"]
mod pairs;
#[path = "golden/proxies.rs"]
mod proxies;
#[path = "golden/support.rs"]
mod support;

use support::Checks;

/// Every file that is covered, and what checks one of its cases.
const CHECKS: Checks = &[
    ("delta_hyperbolicity.json", hyperbolic::hyperbolicity),
    ("csl.json", proxies::csl),
    ("contrastive.json", pairs::contrastive),
    ("happier_cluster_loss.json", losses::norm_softmax),
    ("happier_hap_surrogate.json", losses::hap_surrogate),
    ("happier_total.json", losses::happier),
    ("hier_loss.json", hyperbolic::hier),
    ("hier_msloss_hyperbolic.json", hyperbolic::multi_similarity),
    ("hyp_pairwise_ce.json", hyperbolic::cross_entropy),
    ("hyperbolic_ops.json", hyperbolic::operations),
    ("metrics_happier.json", metrics::happier),
    ("multi_similarity.json", pairs::multi_similarity),
    ("norm_softmax.json", losses::norm_softmax),
    ("proxy_anchor.json", proxies::proxy_anchor),
    ("proxy_nca.json", proxies::proxy_nca),
    ("soft_triple.json", proxies::soft_triple),
    ("triplet.json", pairs::triplet),
];

#[test]
fn the_references_are_met() {
    support::run(CHECKS);
}
