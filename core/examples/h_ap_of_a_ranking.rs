//! Prints AP and H-AP of the two rankings of HAPPIER's figure 8.
//!
//! AP is 0.45 for both. H-AP is 0.78 for the ranking that puts a close relative first and 0.67 for the ranking that
//! puts a distant one first. Run it with
//!
//! ```text
//! cargo run -p akin-core --example h_ap_of_a_ranking
//! ```

use akin_core::metrics::{average_precision, hierarchical_ap};
use akin_core::ranking::Ranking;
use akin_core::relevance::Relevance;

/// The level, of three, that each result shares with the query, best result first.
pub(crate) const RANKINGS: [(&str, [usize; 5]); 2] =
    [("close relative first", [2, 3, 0, 1, 3]), ("distant relative first", [1, 3, 0, 2, 3])];

fn main() -> akin_core::Result<()> {
    for (name, shared_levels) in RANKINGS {
        let [ap, h_ap] = scores(&shared_levels)?;
        println!("{name:22}  AP {ap:.2}  H-AP {h_ap:.2}");
    }
    Ok(())
}

/// AP at the finest level, and H-AP.
pub(crate) fn scores(shared_levels: &[usize]) -> akin_core::Result<[f64; 2]> {
    let ranking = Ranking::from_levels(3, shared_levels);
    let relevance = Relevance::Plain { alpha: 1.0 }.checked(3)?;
    let scores = [average_precision(&ranking, 3), hierarchical_ap(&ranking, &relevance)];
    Ok(scores.map(|score| score.expect("the ranking has positives")))
}
