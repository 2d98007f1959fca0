//! Each loss against its paper: the equations written out as nested loops over f64, and compared on random batches,
//! on batches full of equal scores, and against item sets in which some queries have no positive.
//!
//! The golden files hold what the published *code* computes. Where paper and code differ, the page of the loss says
//! so, and a setting chooses.

#[path = "paper/average_precision.rs"]
mod average_precision;
#[path = "paper/hashing.rs"]
mod hashing;
#[path = "paper/hierarchical.rs"]
mod hierarchical;
#[path = "paper/hierarchical_proxy.rs"]
mod hierarchical_proxy;
#[path = "paper/hyperbolic.rs"]
mod hyperbolic;
#[path = "paper/pairs.rs"]
mod pairs;
#[path = "paper/proxies.rs"]
mod proxies;
#[path = "paper/rank_losses.rs"]
mod rank_losses;
#[path = "paper/support.rs"]
mod support;
