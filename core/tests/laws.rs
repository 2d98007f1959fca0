//! Laws of the metrics, and the formulas that they equal, on random rankings.

#[path = "oracle/mod.rs"]
mod oracle;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{
    DYML_METRICS, Decomposability, EvaluationConfig, LabelSets, Labelled, Report, decomposability_gap, dyml,
    evaluate,
};
use akin_core::metrics::{
    CATALOGUE, ClassSimilarity, Gain, Metric, Unit, asi, average_hierarchical_precision, average_precision,
    average_precision_at, capped_precision, h_precision, h_recall, hierarchical_ap, hierarchical_precision,
    mahp, map_at_r, mean_ndcg, mistake_severity, ndcg, precision, precision_recall_curve, r_precision,
    recall, reciprocal_rank, trapezoid_average_precision, true_recall, weighted_ap,
};
use akin_core::ranking::{Ranking, TiePolicy};
use akin_core::relevance::{CheckedRelevance, Relevance};
use akin_core::statistics::{Bootstrap, Permutations, bootstrap_interval, mean, paired_permutation_test};
use akin_core::taxonomy::Labels;
use proptest::prelude::*;

/// L and the shared levels of a gallery, in ranked order or not.
fn lists() -> impl Strategy<Value = (usize, Vec<usize>)> {
    (1..=4usize).prop_flat_map(|depth| (Just(depth), prop::collection::vec(0..=depth, 0..60)))
}

/// The same with scores from a small grid, so that many are tied and some are −0.
fn tied_lists() -> impl Strategy<Value = (usize, Vec<f32>, Vec<usize>)> {
    let score = (-3i8..=3).prop_map(|step| -f32::from(step) / 4.0);
    lists().prop_flat_map(move |(depth, levels)| {
        (Just(depth), prop::collection::vec(score.clone(), levels.len()), Just(levels))
    })
}

/// Any relevance, with weights for four levels.
fn relevances() -> impl Strategy<Value = Relevance> {
    prop_oneof![
        (0.0..4.0).prop_map(|alpha| Relevance::HierarchicalAp { alpha }),
        (0.0..4.0).prop_map(|alpha| Relevance::Plain { alpha }),
        prop::collection::vec(0.01..1.0, 4).prop_map(|weights| Relevance::WeightedAp { weights }),
    ]
}

/// The relevance for `depth` levels, with the first `depth` of its weights.
fn checked(relevance: Relevance, depth: usize) -> CheckedRelevance {
    match relevance {
        Relevance::WeightedAp { weights } => Relevance::WeightedAp { weights: weights[..depth].to_vec() },
        other => other,
    }
    .checked(depth)
    .unwrap()
}

/// Every metric of the catalogue; those that take a cut-off also with k = 1, 4 and 100.
fn every_metric() -> Vec<Metric> {
    let spellings =
        |name: &str| [name.to_owned(), format!("{name}@1"), format!("{name}@4"), format!("{name}@100")];
    CATALOGUE.iter().flat_map(|entry| spellings(entry.name)).filter_map(|name| name.parse().ok()).collect()
}

/// Every value of every metric: over all levels, or at each level.
fn every_value(ranking: &Ranking, relevance: &CheckedRelevance) -> Vec<(Metric, usize, Option<f64>)> {
    let levels = |metric: Metric| if metric.entry().per_level { 1..=ranking.depth() } else { 0..=0 };
    let values = |metric: Metric| {
        levels(metric).map(move |level| (metric, level, metric.value(ranking, relevance, level)))
    };
    every_metric().into_iter().flat_map(values).collect()
}

/// A set of items on the plane, with three columns of labels that are not a tree.
fn sets() -> impl Strategy<Value = (Embeddings, Labels)> {
    let item = (0.0..6.0f32, prop::array::uniform3(0..3u32));
    prop::collection::vec(item, 8..40).prop_map(|items| {
        let points = items.iter().flat_map(|(angle, _)| [angle.cos(), angle.sin()]).collect();
        let ids = items.iter().flat_map(|(_, ids)| *ids).collect();
        (Embeddings::new(2, points).unwrap(), Labels::new(3, ids).unwrap())
    })
}

/// The reports of a set with each of its label columns, with intervals.
fn column_reports((embeddings, labels): &(Embeddings, Labels), seed: u64) -> Vec<Report> {
    let config = EvaluationConfig {
        metrics: DYML_METRICS.to_vec(),
        bootstrap: Some(Bootstrap { resamples: 100, seed }),
        ..EvaluationConfig::default()
    };
    let report = |column| {
        let labels = Labels::new(1, labels.column(column)).unwrap();
        let set = Labelled { embeddings, labels: &labels };
        evaluate(&["column".into()], set, None, &config).unwrap()
    };
    (1..=labels.levels()).map(report).collect()
}

/// A relevance that rises with the level, whatever the class sizes.
fn rising(depth: usize) -> CheckedRelevance {
    checked(Relevance::Plain { alpha: 1.0 }, depth)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

fn all_close(a: Option<f64>, b: Option<f64>) -> bool {
    a.is_some() == b.is_some() && close(a.unwrap_or(0.0), b.unwrap_or(0.0))
}

fn from_scores(depth: usize, ties: TiePolicy, scores: &[f32], levels: &[usize]) -> Ranking {
    Ranking::from_scores(depth, ties, scores.iter().copied().zip(levels.iter().copied()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn h_ap_is_ap_when_there_is_one_level(levels in prop::collection::vec(0..=1usize, 0..60), relevance in relevances()) {
        let relevance = checked(relevance, 1);
        let ranking = Ranking::from_levels(1, &levels);
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), average_precision(&ranking, 1)));
    }

    #[test]
    fn h_ap_is_1_exactly_for_decreasing_relevance((depth, mut levels) in lists(), relevance in relevances()) {
        let relevance = checked(relevance, depth);
        let rel = relevance.by_level(Ranking::from_levels(depth, &levels).counts());
        let decreasing = levels.windows(2).all(|pair| rel[pair[0]] >= rel[pair[1]]);
        if let Some(h_ap) = hierarchical_ap(&Ranking::from_levels(depth, &levels), &relevance) {
            prop_assert_eq!(close(h_ap, 1.0), decreasing, "{}", h_ap);
        }
        levels.sort_by(|&a, &b| rel[b].total_cmp(&rel[a]));
        if let Some(h_ap) = hierarchical_ap(&Ranking::from_levels(depth, &levels), &relevance) {
            prop_assert!(close(h_ap, 1.0), "{}", h_ap);
        }
    }

    #[test]
    fn weighted_ap_is_the_weighted_sum_of_ap(
        (depth, levels) in lists(),
        weights in prop::collection::vec(0.0..1.0, 4),
    ) {
        let ranking = Ranking::from_levels(depth, &levels);
        // Levels without positives are left out, and the weights of the others rescaled.
        let with_positives = (1..=depth).zip(&weights).filter_map(|(l, w)| Some((w, average_precision(&ranking, l)?)));
        let (total, sum) = with_positives.fold((0.0, 0.0), |(total, sum), (w, ap)| (total + w, sum + w * ap));
        prop_assume!(weights[..depth].iter().sum::<f64>() > 0.0);
        let relevance = checked(Relevance::WeightedAp { weights }, depth);
        prop_assert!(all_close(weighted_ap(&ranking, &relevance), (total > 0.0).then(|| sum / total)));
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), (total > 0.0).then(|| sum / total)));
    }

    #[test]
    fn swapping_neighbours_changes_h_ap_as_the_law_says((depth, mut levels) in lists(), relevance in relevances()) {
        let relevance = checked(relevance, depth);
        let h_ap = |levels: &[usize]| hierarchical_ap(&Ranking::from_levels(depth, levels), &relevance);
        let rel = relevance.by_level(Ranking::from_levels(depth, &levels).counts());
        let total: f64 = levels.iter().map(|&level| rel[level]).sum();
        for r in 1..levels.len() {
            let before = h_ap(&levels);
            let shared = |x: f64| levels[..r - 1].iter().map(|&level| rel[level].min(x)).sum::<f64>();
            let (a, b) = (rel[levels[r - 1]], rel[levels[r]]);
            // Positive when a > b.
            let fall = (a - b + shared(a) - shared(b)) / ((r * (r + 1)) as f64 * total);
            levels.swap(r - 1, r);
            if let Some(before) = before {
                prop_assert!(close(before - h_ap(&levels).unwrap(), fall));
            }
        }
    }

    #[test]
    fn the_curves_area_is_h_ap((depth, levels) in lists(), relevance in relevances(), query_counts: bool) {
        let relevance = checked(relevance, depth);
        let ranking = Ranking::from_levels(depth, &levels).count_query(query_counts);
        let curve = precision_recall_curve(&ranking, &relevance);
        let mut recall = 0.0;
        let area: f64 = curve.iter().map(|r| r.precision * (r.recall - std::mem::replace(&mut recall, r.recall))).sum();
        prop_assert!(close(area, hierarchical_ap(&ranking, &relevance).unwrap_or(0.0)));
        prop_assert!(curve.is_empty() || close(recall, 1.0));
    }

    #[test]
    fn strict_ties_follow_the_papers_formula((depth, scores, levels) in tied_lists(), relevance in relevances()) {
        let relevance = checked(relevance, depth);
        let ranking = from_scores(depth, TiePolicy::Strict, &scores, &levels);
        let rel = relevance.by_level(ranking.counts());
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), oracle::h_ap(&scores, &levels, &rel)));
        for level in 1..=depth {
            prop_assert!(all_close(average_precision(&ranking, level), oracle::ap(&scores, &levels, level)));
        }
    }

    #[test]
    fn stable_ties_follow_the_formulas_in_gallery_order(
        (depth, scores, levels) in tied_lists(),
        relevance in relevances(),
    ) {
        let relevance = checked(relevance, depth);
        let ranking = from_scores(depth, TiePolicy::Stable, &scores, &levels);
        let ranked = oracle::ranked(&scores, &levels);
        let falling: Vec<f32> = (0..ranked.len()).map(|rank| -(rank as f32)).collect();
        let rel = relevance.by_level(ranking.counts());
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), oracle::h_ap(&falling, &ranked, &rel)));
        prop_assert!(all_close(asi(&ranking), oracle::asi(&ranked)));
        for k in [1, 4, usize::MAX] {
            let exponential = oracle::ndcg(&ranked, oracle::exponential, k);
            prop_assert!(all_close(ndcg(&ranking, Gain::Exponential, Some(k)), exponential));
            let linear = oracle::ndcg(&ranked, |level| level as f64, k);
            prop_assert!(all_close(ndcg(&ranking, Gain::Linear, Some(k)), linear));
            prop_assert!(all_close(mean_ndcg(&ranking, k), oracle::mean_ndcg(&ranked, k)));
        }
        for level in 1..=depth {
            prop_assert!(all_close(average_precision(&ranking, level), oracle::ap(&falling, &ranked, level)));
            let trapezoids = trapezoid_average_precision(&ranking, level);
            prop_assert!(all_close(trapezoids, oracle::trapezoid_ap(&ranked, level)));
            prop_assert!(all_close(map_at_r(&ranking, level), oracle::map_at_r(&ranked, level)));
            prop_assert_eq!(reciprocal_rank(&ranking, level), oracle::reciprocal_rank(&ranked, level));
            let r = ranking.positives_at(level);
            prop_assert_eq!(r_precision(&ranking, level), oracle::precision(&ranked, level, r));
            for k in [1, 4, 100] {
                prop_assert_eq!(recall(&ranking, level, k), oracle::recall(&ranked, level, k));
                prop_assert_eq!(precision(&ranking, level, k), oracle::precision(&ranked, level, k));
                let hits = |k| oracle::precision(&ranked, level, k).map(|share| (share * k as f64).round());
                let share = |of: usize| hits(k).map(|hits| hits / of as f64);
                prop_assert_eq!(true_recall(&ranking, level, k), share(r));
                prop_assert_eq!(capped_precision(&ranking, level, k), share(r.min(k)));
                let ap = oracle::ap_at(&ranked, level, k);
                prop_assert!(all_close(average_precision_at(&ranking, level, k), ap));
            }
            prop_assert!(all_close(
                average_precision_at(&ranking, level, usize::MAX),
                average_precision(&ranking, level)
            ));
        }
    }

    #[test]
    fn hierarchical_precision_and_its_averages_follow_their_formulas((depth, levels) in lists(), k in 1..70usize) {
        let ranking = Ranking::from_levels(depth, &levels);
        prop_assume!(!ranking.positives().is_empty());
        let (l, n) = (depth as f64, k.min(levels.len()));
        let lca_height = move |level: usize| level as f64 / l;
        let wu_palmer = move |level: usize| (level as f64 + 1.0) / (l + 1.0);
        let similarities: [(_, &dyn Fn(usize) -> f64); 2] =
            [(ClassSimilarity::LcaHeight, &lca_height), (ClassSimilarity::WuPalmer, &wu_palmer)];
        for (similarity, formula) in similarities {
            let hp: Vec<f64> = (1..=n).map(|k| oracle::hierarchical_precision(&levels, formula, k)).collect();
            prop_assert!(close(hierarchical_precision(&ranking, similarity, k).unwrap(), hp[n - 1]));
            // Trapezoids between the ranks, each 1/n wide.
            let area: f64 = hp.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0 / n as f64).sum();
            prop_assert!(close(average_hierarchical_precision(&ranking, similarity, k).unwrap(), area));
            if similarity == ClassSimilarity::LcaHeight {
                prop_assert!(close(mahp(&ranking, k).unwrap(), mean(&hp).unwrap()));
            }
        }
    }

    #[test]
    fn h_precision_and_h_recall_are_the_curve((depth, levels) in lists(), relevance in relevances()) {
        let relevance = checked(relevance, depth);
        let ranking = Ranking::from_levels(depth, &levels);
        let rel = relevance.by_level(ranking.counts());
        let curve = precision_recall_curve(&ranking, &relevance);
        for point in &curve {
            let (recall, precision) = oracle::h_recall_and_precision(&levels, &rel, point.rank);
            prop_assert!(close(point.recall, recall) && close(point.precision, precision));
            prop_assert!(all_close(h_recall(&ranking, &relevance, point.rank), Some(recall)));
            prop_assert!(all_close(h_precision(&ranking, &relevance, point.rank), Some(precision)));
        }
        let recalls: Vec<f64> = (1..=levels.len() + 3).filter_map(|k| h_recall(&ranking, &relevance, k)).collect();
        prop_assert_eq!(curve.is_empty(), recalls.is_empty());
        prop_assert!(recalls.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(recalls.last().is_none_or(|&last| last == 1.0));
        for k in 1..=levels.len() + 3 {
            let relevant = levels.iter().take(k).filter(|&&level| rel[level] > 0.0).count();
            if levels.get(k - 1).is_none_or(|&level| rel[level] == 0.0) && !curve.is_empty() {
                let share = relevant as f64 / k as f64;
                prop_assert!(all_close(h_precision(&ranking, &relevance, k), Some(share)));
            }
        }
    }

    #[test]
    fn the_severity_of_a_mistake_is_the_height_of_its_ancestor((depth, levels) in lists()) {
        let ranking = Ranking::from_levels(depth, &levels);
        let first_wrong = levels.iter().find(|&&level| level < depth);
        let severity = first_wrong.map_or(0, |level| depth - level) as f64;
        prop_assert_eq!(mistake_severity(&ranking), (!ranking.positives().is_empty()).then_some(severity));
    }

    #[test]
    fn every_metric_keeps_to_its_range_and_has_a_value_where_there_are_positives(
        (depth, scores, levels) in tied_lists(),
        query_counts: bool,
    ) {
        let ranking = from_scores(depth, TiePolicy::Stable, &scores, &levels).count_query(query_counts);
        for (metric, level, value) in every_value(&ranking, &rising(depth)) {
            prop_assert_eq!(value.is_some(), ranking.positives_at(level.max(1)) > 0, "{}", metric);
            let most = match metric.entry().unit {
                Unit::Share => 1.0,
                Unit::Levels => depth as f64,
            };
            let value = value.unwrap_or(0.0);
            // A table must not show −0.
            prop_assert!((0.0..=most).contains(&value) && value.is_sign_positive(), "{}: {}", metric, value);
        }
    }

    #[test]
    fn nothing_is_better_than_the_order_by_level((depth, mut levels) in lists()) {
        levels.sort_by(|a, b| b.cmp(a));
        let ranking = Ranking::from_levels(depth, &levels);
        for (metric, level, value) in every_value(&ranking, &rising(depth)) {
            let n = levels.len() as f64;
            let best = match (metric.entry().name, metric.cutoff().map(|k| k as f64)) {
                ("mistake_severity" | "h_precision" | "h_recall", _) => continue,
                ("ahp" | "wu_palmer_ahp", Some(k)) => 1.0 - 1.0 / n.min(k),
                ("precision", Some(k)) => 1f64.min(ranking.positives_at(level) as f64 / k),
                ("ap" | "true_recall", Some(k)) => 1f64.min(k / ranking.positives_at(level) as f64),
                _ => 1.0,
            };
            prop_assert!(value.is_none_or(|value| close(value, best)), "{}: {:?}", metric, value);
        }
    }

    #[test]
    fn moving_a_closer_relative_up_makes_no_metric_worse((depth, mut levels) in lists(), at in any::<prop::sample::Index>()) {
        prop_assume!(levels.len() > 1);
        let at = at.index(levels.len() - 1);
        if levels[at] > levels[at + 1] {
            levels.swap(at, at + 1);
        }
        let before = every_value(&Ranking::from_levels(depth, &levels), &rising(depth));
        levels.swap(at, at + 1);
        let after = every_value(&Ranking::from_levels(depth, &levels), &rising(depth));
        for ((metric, _, before), (_, _, after)) in before.into_iter().zip(after) {
            // The one metric that a better order can lower.
            if metric.entry().name == "h_precision" {
                continue;
            }
            let gain = after.unwrap_or(0.0) - before.unwrap_or(0.0);
            let gain = if metric.entry().greater_is_better { gain } else { -gain };
            prop_assert!(gain >= -1e-12, "{} by {}", metric, gain);
        }
    }

    #[test]
    fn a_cut_off_beyond_the_end_has_no_effect((depth, levels) in lists()) {
        let ranking = Ranking::from_levels(depth, &levels);
        for gain in [Gain::Exponential, Gain::Linear] {
            prop_assert_eq!(ndcg(&ranking, gain, Some(levels.len())), ndcg(&ranking, gain, None));
        }
    }

    #[test]
    fn every_metric_lies_between_its_pessimistic_and_optimistic_value(
        (depth, scores, levels) in tied_lists(),
        relevance in relevances(),
    ) {
        let relevance = checked(relevance, depth);
        let values = |ties| every_value(&from_scores(depth, ties, &scores, &levels), &relevance);
        let [low, stable, high] = [TiePolicy::Pessimistic, TiePolicy::Stable, TiePolicy::Optimistic].map(values);
        for (((metric, _, low), (_, _, stable)), (_, _, high)) in low.into_iter().zip(stable).zip(high) {
            if metric.entry().name == "h_precision" {
                continue;
            }
            if let (Some(low), Some(stable), Some(high)) = (low, stable, high) {
                let (low, high) = if metric.entry().greater_is_better { (low, high) } else { (high, low) };
                prop_assert!(low <= stable + 1e-12 && stable <= high + 1e-12, "{}", metric);
            } else {
                prop_assert_eq!((low, stable, high), (None, None, None));
            }
        }
    }

    #[test]
    fn without_ties_the_order_of_the_gallery_does_not_matter(
        (depth, levels) in lists(),
        relevance in relevances(),
        turn in any::<prop::sample::Index>(),
    ) {
        let relevance = checked(relevance, depth);
        let mut items: Vec<(f32, usize)> = (0u8..).map(f32::from).zip(levels).collect();
        let before = Ranking::from_scores(depth, TiePolicy::Stable, items.clone());
        let turn = turn.index(items.len().max(1));
        items.rotate_left(turn);
        let after = Ranking::from_scores(depth, TiePolicy::Stable, items);
        prop_assert_eq!(hierarchical_ap(&before, &relevance), hierarchical_ap(&after, &relevance));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bootstrap_interval_holds_the_mean(values in prop::collection::vec(0.0..1.0, 1..50), seed: u64) {
        let [low, high] = bootstrap_interval(&values, Bootstrap { resamples: 300, seed }).unwrap();
        let mean = mean(&values).unwrap();
        prop_assert!(low <= mean + 1e-12 && mean <= high + 1e-12, "{} {} {}", low, mean, high);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        prop_assert!(low >= least - 1e-12);
    }

    #[test]
    fn a_permutation_test_does_not_depend_on_which_run_comes_first(
        differences in prop::collection::vec(-1.0..1.0, 0..40),
        seed: u64,
    ) {
        let permutations = Permutations { draws: 200, seed };
        let p = paired_permutation_test(&differences, permutations);
        prop_assert!(0.0 < p && p <= 1.0);
        let turned: Vec<f64> = differences.iter().map(|difference| -difference).collect();
        prop_assert_eq!(paired_permutation_test(&turned, permutations), p);
        let same = vec![0.0; differences.len()];
        prop_assert_eq!(paired_permutation_test(&same, permutations), 1.0);
    }

    #[test]
    fn calibrated_scores_have_no_decomposability_gap(
        classes in prop::collection::vec((0..2u32, 0..3u32), 4..30),
        batch in any::<prop::sample::Index>(),
        seed: u64,
    ) {
        // Cosine 1 to the same fine class, 1/2 to a relative, 0 to a stranger: one threshold per level.
        let point = |&(coarse, fine): &(u32, u32)| {
            let mut point = [0.0; 8];
            point[coarse as usize] = 1.0;
            point[2 + (3 * coarse + fine) as usize] = 1.0;
            point
        };
        let embeddings = Embeddings::new(8, classes.iter().flat_map(point).collect()).unwrap();
        let ids = classes.iter().flat_map(|&(coarse, fine)| [coarse, 3 * coarse + fine]).collect();
        let labels = Labels::new(2, ids).unwrap();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let settings = Decomposability { batch: 2 + batch.index(classes.len() - 1), seed };
        let gap = decomposability_gap(set, &EvaluationConfig::default(), settings).unwrap();
        prop_assert!(gap.levels.iter().flatten().all(|gap| close(*gap, 0.0)), "{:?}", gap);
    }

    #[test]
    fn dyml_of_one_label_set_is_its_report(set in sets(), seed: u64) {
        let reports = column_reports(&set, seed);
        for label_sets in [LabelSets::Apart, LabelSets::Columns] {
            let row = dyml(&reports[..1], label_sets).unwrap();
            for metric in DYML_METRICS {
                let means = reports[0].at(usize::from(metric.entry().per_level));
                prop_assert_eq!(row.get(metric), means.get(metric));
                prop_assert_eq!(row.interval.get(&metric), means.interval.get(&metric));
            }
        }
    }

    #[test]
    fn dyml_is_the_mean_of_its_label_sets_and_lies_in_its_interval(set in sets(), seed: u64) {
        let reports = column_reports(&set, seed);
        for label_sets in [LabelSets::Apart, LabelSets::Columns] {
            let row = dyml(&reports, label_sets).unwrap();
            for metric in DYML_METRICS {
                let level = usize::from(metric.entry().per_level);
                let sum: f64 = reports.iter().map(|report| report.at(level).get(metric).unwrap()).sum();
                let average = row.get(metric).unwrap();
                prop_assert!(close(average, sum / 3.0));
                let [low, high] = row.interval[&metric];
                prop_assert!(low <= average + 1e-12 && average <= high + 1e-12);
            }
        }
    }

    #[test]
    fn equal_columns_average_to_the_interval_of_one(set in sets(), seed: u64) {
        let report = column_reports(&set, seed).remove(0);
        // Each query is drawn together with all its scores, so that the columns do not average out.
        let row = dyml(&[report.clone(), report.clone(), report.clone()], LabelSets::Columns).unwrap();
        for metric in DYML_METRICS {
            let one = report.at(usize::from(metric.entry().per_level)).interval[&metric];
            let three = row.interval[&metric];
            prop_assert!(close(three[0], one[0]) && close(three[1], one[1]));
        }
    }

    #[test]
    fn a_decomposability_gap_lies_in_its_interval(set in sets(), batch in 2..5usize, seed: u64) {
        let (embeddings, labels) = (&set.0, &set.1);
        let labelled = Labelled { embeddings, labels };
        let config = EvaluationConfig {
            // Batches are in an order of their own, which must not part equal scores.
            ties: TiePolicy::Strict,
            bootstrap: Some(Bootstrap { resamples: 300, seed }),
            ..EvaluationConfig::default()
        };
        let gap = decomposability_gap(labelled, &config, Decomposability { batch, seed }).unwrap();
        for (gap, interval) in gap.levels.iter().zip(&gap.interval) {
            prop_assert_eq!(gap.is_some(), interval.is_some());
            if let Some((gap, [low, high])) = gap.zip(*interval) {
                prop_assert!(low <= gap + 1e-12 && gap <= high + 1e-12, "{} {} {}", low, gap, high);
            }
        }
        // A batch of everything is the whole, however it is drawn.
        let settings = Decomposability { batch: labels.len(), seed };
        let all = decomposability_gap(labelled, &config, settings).unwrap();
        prop_assert!(all.interval.iter().flatten().flatten().all(|&bound| close(bound, 0.0)));
    }
}
