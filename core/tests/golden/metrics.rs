//! The metrics against those of HAPPIER's evaluation.

use akin_core::cosine::{Embeddings, Similarity};
use akin_core::evaluate::{EvaluationConfig, Labelled, evaluate};
use akin_core::metrics::{asi, average_precision, hierarchical_ap, map_at_r, ndcg, recall};
use akin_core::ranking::Ranking;
use akin_core::relevance::Relevance;
use akin_core::taxonomy::Labels;

use crate::support::{Case, Verdict, numbers};

/// For what the reference rounds to float32 on its way: relevances and the discounts of NDCG.
const ROUNDED: f64 = 1e-6;
const EXACT: f64 = 1e-9;

/// `metrics_happier.json`, on its deterministic ranking (`…_stable`: by score, then index, the query left out by
/// its index).
///
/// Where the reference differs from us, on purpose: its own H-AP counts twice where two levels share a relevance,
/// so ours is held to the formula (`H-AP_bruteforce_definition`); its relevances have the constant factor
/// (L/(L−1))^α, which H-AP does not feel; R@k of a query without positives is 0 there and has no value here.
pub(crate) fn happier(case: &Case, verdict: &mut Verdict) {
    let queries = labels(case, "inputs/labels");
    let gallery = case.find("inputs/gallery_labels").map(|_| labels(case, "inputs/gallery_labels"));
    let leave_one_out = gallery.is_none();
    let gallery = gallery.as_ref().unwrap_or(&queries);
    let order = case.rows("outputs/ranking_stable");
    let depth = queries[0].len();

    // `kin` of two label rows is their shared level, from the labels in ranked order.
    let rank = |depth: usize, kin: &dyn Fn(&[f64], &[f64]) -> usize| -> Vec<Ranking> {
        let ranked = queries.iter().zip(&order).map(|(query, order)| {
            let levels: Vec<usize> = order.iter().map(|&item| kin(query, &gallery[item as usize])).collect();
            // Relevances count the query where the query is one of the gallery.
            Ranking::from_levels(depth, &levels).count_query(leave_one_out)
        });
        ranked.collect()
    };
    // The number of equal columns is the shared level wherever the labels are one tree. Where queries and gallery
    // were numbered apart they are not, and a column's AP has to be that of the column alone.
    let equal_columns = |a: &[f64], b: &[f64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let rankings = rank(depth, &equal_columns);
    let column = |level: usize| rank(1, &|a: &[f64], b: &[f64]| usize::from(a[level - 1] == b[level - 1]));

    let relevance = relevance(case);
    if case.get("params/hierarchy_levels").as_u64() == Some(depth as u64) {
        let constant = match relevance {
            Relevance::HierarchicalAp { alpha } => (depth as f64 / (depth as f64 - 1.0)).powf(alpha),
            _ => 1.0,
        };
        let tables = rankings.iter().flat_map(|ranking| relevance.table(&ranking.class_sizes()));
        let got: Vec<f64> = tables.map(|rel| rel * constant).collect();
        verdict.compare("relevance", &case.numbers("outputs/relevance_table_per_query"), &got, ROUNDED);
    }

    for (name, expected) in case.get("outputs/per_query_stable").as_object().expect("one list per metric") {
        let expected = numbers(expected);
        let mut compare = |rankings: &[Ranking], tolerance: f64, score: &dyn Fn(&Ranking) -> Option<f64>| {
            let got: Vec<f64> = rankings.iter().map(|ranking| score(ranking).unwrap_or(f64::NAN)).collect();
            verdict.compare(name, &expected, &got, tolerance);
        };
        match name.split_once("_level") {
            None if name == "H-AP_bruteforce_definition" => {
                compare(&rankings, ROUNDED, &|ranking| hierarchical_ap(ranking, &relevance));
            }
            None if name == "NDCG" => compare(&rankings, ROUNDED, &ndcg),
            None if name == "ASI" => compare(&rankings, EXACT, &asi),
            Some((metric, number)) => {
                // Their column 0 is the finest level.
                let level = depth - number.parse::<usize>().expect("a column number");
                let (rankings, level) = if leave_one_out { (&rankings, level) } else { (&column(level), 1) };
                match metric {
                    "AP" => compare(rankings, EXACT, &|ranking| average_precision(ranking, level)),
                    "mAP@R" => compare(rankings, EXACT, &|ranking| map_at_r(ranking, level)),
                    _ if metric.starts_with("R@") => {
                        let k = metric[2..].parse().expect("a number after R@");
                        compare(rankings, EXACT, &|ranking| Some(recall(ranking, level, k).unwrap_or(0.0)));
                    }
                    _ => {}
                }
            }
            None => {}
        }
    }
    if leave_one_out {
        evaluated_whole(case, verdict, &queries, relevance);
    }
}

/// The same from the embeddings themselves, by the evaluation that users run: its means over the queries that have
/// a value.
fn evaluated_whole(case: &Case, verdict: &mut Verdict, queries: &[Vec<f64>], relevance: Relevance) {
    let rows = case.rows("inputs/embeddings");
    let values = rows.iter().flatten().map(|&x| x as f32).collect();
    let embeddings = Embeddings::new(rows[0].len(), values).expect("finite embeddings");
    let depth = queries[0].len();
    let ids = queries.iter().flatten().map(|&id| id as u32).collect();
    let labels = Labels::new(depth, ids).expect("whole rows of labels");
    let levels: Vec<String> = (1..=depth).map(|level| format!("level {level}")).collect();
    let config = EvaluationConfig {
        relevance,
        count_query: true,
        similarity: Similarity::Dot,
        ..EvaluationConfig::default()
    };
    let set = Labelled { embeddings: &embeddings, labels: &labels };
    let report = evaluate(&levels, set, None, &config).expect("a set that can be evaluated");

    let mut compare = |name: &str, got: Option<f64>| {
        let expected = case.numbers(&format!("outputs/nanmean_stable/{name}"));
        verdict.compare(&format!("mean {name}"), &expected, &[got.unwrap_or(f64::NAN)], ROUNDED);
    };
    compare("H-AP_bruteforce_definition", report.overall.h_ap);
    compare("NDCG", report.overall.ndcg);
    compare("ASI", report.overall.asi);
    for (column, level) in report.levels.iter().rev().enumerate() {
        compare(&format!("AP_level{column}"), level.ap);
        compare(&format!("mAP@R_level{column}"), level.map_at_r);
    }
}

/// Label rows, turned round: their column 0 is the finest level, ours the coarsest.
fn labels(case: &Case, path: &str) -> Vec<Vec<f64>> {
    case.rows(path).into_iter().map(|row| row.into_iter().rev().collect()).collect()
}

fn relevance(case: &Case) -> Relevance {
    let alpha = case.numbers("params/alpha");
    match case.get("params/relevance_type").as_str() {
        Some("pop") => Relevance::HierarchicalAp { alpha: alpha[0] },
        Some("map") => Relevance::WeightedAp { weights: alpha },
        other => panic!("unknown relevance type {other:?}"),
    }
}
