//! Compares metrics, losses and miners with the numbers that reference implementations printed for small seeded inputs.
//!
//! `AKIN_GOLDEN=DIR cargo test -p akin-core --test golden` runs the same checks on another folder with the same
//! layout. A relative DIR counts from the workspace root.
//!
//! Losses are computed in f64 on the CPU. `BURN_DEVICE=cuda` or `vulkan` computes them in f32 on that device, if the tests
//! are built with its back end, and compares more coarsely. `tests/gpu/run` does both.

#[path = "golden/hashing.rs"]
mod hashing;
#[path = "golden/hyperbolic.rs"]
mod hyperbolic;
#[path = "golden/library.rs"]
mod library;
#[path = "golden/losses.rs"]
mod losses;
#[path = "golden/metrics.rs"]
mod metrics;
#[path = "golden/pairs.rs"]
mod pairs;
#[path = "golden/proxies.rs"]
mod proxies;
#[path = "golden/ranking.rs"]
mod ranking;
#[path = "golden/support.rs"]
mod support;

use support::{Checks, Exception};

/// The known files, each with the function that checks one of its cases.
const CHECKS: Checks = &[
    ("arcface.json", proxies::arc_face),
    ("blackbox_ap.json", ranking::blackbox_ap),
    ("calibration.json", ranking::calibration),
    ("contrastive.json", pairs::contrastive),
    ("csl.json", proxies::csl),
    ("csq.json", hashing::csq),
    ("dcdh.json", hashing::dcdh),
    ("dcwh.json", hashing::dcwh),
    ("delta_hyperbolicity.json", hyperbolic::hyperbolicity),
    ("dpsh.json", hashing::dpsh),
    ("dtsh.json", hashing::dtsh),
    ("fast_ap.json", ranking::fast_ap),
    ("happier_cluster_loss.json", losses::norm_softmax),
    ("happier_hap_surrogate.json", losses::hap_surrogate),
    ("happier_total.json", losses::happier),
    ("hier_loss.json", hyperbolic::hier),
    ("hier_msloss_hyperbolic.json", hyperbolic::multi_similarity),
    ("hpdh_centers.json", hashing::hpdh_centres),
    ("hpdh_loss.json", hashing::hpdh),
    ("hyp_pairwise_ce.json", hyperbolic::cross_entropy),
    ("hyperbolic_ops.json", hyperbolic::operations),
    ("library_losses.json", library::check),
    ("metrics_happier.json", metrics::happier),
    ("metrics_hashing.json", metrics::hashing),
    ("metrics_hierarchical_precision.json", metrics::hierarchical_precisions),
    ("metrics_pml.json", metrics::accuracy_calculator),
    ("metrics_recall_hyperbolic.json", metrics::recall_hyperbolic),
    ("metrics_recall_proxy_anchor.json", metrics::recall_proxy_anchor),
    ("multi_similarity.json", pairs::multi_similarity),
    ("norm_softmax.json", losses::norm_softmax),
    ("proxy_anchor.json", proxies::proxy_anchor),
    ("proxy_nca.json", proxies::proxy_nca),
    ("roadmap_total.json", ranking::roadmap),
    ("smooth_ap.json", ranking::smooth_ap),
    ("soft_triple.json", proxies::soft_triple),
    ("softbin_ap.json", ranking::softbin_ap),
    ("sup_ap.json", ranking::sup_ap),
    ("suprank_h_ap.json", ranking::suprank_h_ap),
    ("suprank_ndcg.json", ranking::suprank_ndcg),
    ("suprank_recall.json", ranking::suprank_recall),
    ("triplet.json", pairs::triplet),
    ("xbm_pair_loss.json", ranking::pair),
];

/// Recorded gradients that are wrong, at most ten. For each of them central differences of our value have to agree with
/// our gradient and, in the repository's own files, to disagree with the recorded one.
const EXCEPTIONS: &[Exception] = &[
    Exception { file: "fast_ap.json", cases: "official", output: "grad_embeddings", why: HAND_WRITTEN },
    Exception { file: "softbin_ap.json", cases: "naver_TAP", output: "grad_embeddings", why: LONE_QUERY },
];
const HAND_WRITTEN: &str = "the published code writes its gradient by hand: it has another factor, and a part \
    along each embedding, although their length is fixed";
const LONE_QUERY: &str = "the reference divides by c − 1, which is 0 up to rounding in a bin that holds only the query: \
    its gradient is millions of times too long";

#[test]
fn metrics_losses_and_miners_agree_with_their_references() {
    assert!(EXCEPTIONS.len() <= 10);
    support::run(CHECKS, EXCEPTIONS);
}
