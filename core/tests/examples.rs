//! Each example prints what its first comment promises.

use akin_core::metrics::Metric;

#[path = "../examples/evaluate_two_sets.rs"]
#[allow(dead_code, reason = "the test calls what `main` prints")]
mod evaluate_two_sets;

#[path = "../examples/h_ap_of_a_ranking.rs"]
#[allow(dead_code, reason = "the test calls what `main` prints")]
mod h_ap_of_a_ranking;

#[path = "../examples/train_a_loss.rs"]
#[allow(dead_code, reason = "the test calls what `main` prints")]
mod train_a_loss;

#[test]
fn training_a_loss_raises_h_ap() {
    let [before, after] = train_a_loss::train().unwrap();
    assert!(before < 0.5 && after > 0.99, "from {before} to {after}");
}

#[test]
fn h_ap_tells_two_rankings_of_equal_ap_apart() {
    let scores = h_ap_of_a_ranking::RANKINGS.map(|(_, shared_levels)| {
        h_ap_of_a_ranking::scores(&shared_levels).unwrap().map(|score| format!("{score:.2}"))
    });
    assert_eq!(scores, [["0.45", "0.78"], ["0.45", "0.67"]]);
}

#[test]
fn evaluating_two_sets_reports_the_scores_that_the_example_promises() {
    let report = evaluate_two_sets::report().unwrap();
    let value = |level: usize, metric| format!("{:.2}", report.at(level).get(Metric::named(metric)).unwrap());
    assert_eq!((report.queries, report.ranked), (4, 6));
    assert_eq!([value(1, "recall@1"), value(2, "recall@1"), value(0, "h_ap")], ["1.00", "0.75", "0.96"]);
}
