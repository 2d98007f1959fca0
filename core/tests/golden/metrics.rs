//! The metrics, compared with those of the papers' own evaluation code.

use std::collections::BTreeMap;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, evaluate};
use akin_core::metrics::{
    ClassSimilarity, Gain, Metric, asi, average_hierarchical_precision, average_precision,
    average_precision_at, hierarchical_ap, hierarchical_precision, mahp, map_at_r, mean_ndcg, ndcg,
    precision, recall, reciprocal_rank,
};
use akin_core::ranking::{Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use serde_json::Value;

use crate::support::{Case, Verdict, numbers};

/// For values that the reference partly computes in float32: relevances and the discounts of NDCG.
const ROUNDED: f64 = 1e-6;
const EXACT: f64 = 1e-9;
/// For values that the reference computes entirely in float32.
const SINGLE: f64 = 1e-5;

/// `metrics_happier.json`, on its deterministic ranking (`…_stable`: by score, then by index, without the query).
///
/// Besides its [`departures`], the reference differs in these points. Its relevances have the constant factor
/// (L/(H−1))^α, where H is the number of levels that it counts; H-AP does not depend on it. R@k and P@k of a query
/// without positives are 0 there and `None` here. NDCG@10 is that of the ten items alone, as if no others were ranked.
/// AP#l is the AP of a list without the items whose shared level is finer than l.
pub(crate) fn happier(case: &Case, verdict: &mut Verdict) {
    let queries = labels(case, "inputs/labels");
    let gallery = case.find("inputs/gallery_labels").map(|_| labels(case, "inputs/gallery_labels"));
    let leave_one_out = gallery.is_none();
    let gallery = gallery.as_ref().unwrap_or(&queries);
    let order = case.rows("outputs/ranking_stable");
    let depth = queries[0].len();

    // The shared levels of every query's list, where `shared` computes that of two label rows.
    let lists = |shared: &dyn Fn(&[f64], &[f64]) -> usize| -> Vec<Vec<usize>> {
        let list = |(query, order): (&Vec<f64>, &Vec<f64>)| {
            order.iter().map(|&item| shared(query, &gallery[item as usize])).collect()
        };
        queries.iter().zip(&order).map(list).collect()
    };
    let rank = |depth: usize, lists: &[Vec<usize>]| -> Vec<Ranking> {
        // Relevances count the query if it is in the gallery.
        let ranked =
            lists.iter().map(|levels| Ranking::from_levels(depth, levels).count_query(leave_one_out));
        ranked.collect()
    };
    // If the labels are one tree, the number of equal columns is the shared level. If queries and gallery were numbered
    // separately, they are not one tree, and the scores of a column are those of the column alone.
    let all_lists = lists(&equal_columns);
    let rankings = rank(depth, &all_lists);
    let column =
        |level: usize| rank(1, &lists(&|a: &[f64], b: &[f64]| usize::from(a[level - 1] == b[level - 1])));

    let relevance = relevance(case);
    // The reference may count more levels than the labels have.
    let counted = case.get("params/hierarchy_levels").as_f64().expect("a number of levels");
    let constant = match relevance {
        Relevance::HierarchicalAp { alpha } => (depth as f64 / (counted - 1.0)).powf(alpha),
        _ => 1.0,
    };
    let checked = relevance.checked(depth).expect("weights for the levels of the labels");
    let mut expected = case.rows("outputs/relevance_table_per_query");
    let mut got = Vec::new();
    for (expected, ranking) in expected.iter_mut().zip(&rankings) {
        let mut sizes = ranking.class_sizes();
        let table = checked.by_level(&sizes).into_iter().map(|rel| rel * constant);
        got.extend(table.chain(std::iter::repeat(0.0)).take(expected.len()));
        // The reference's weighted AP has sums also for levels without items; ours are 0 there.
        sizes.resize(expected.len(), 0);
        expected.iter_mut().zip(&sizes).filter(|(_, size)| **size == 0).for_each(|(rel, _)| *rel = 0.0);
    }
    verdict.compare("relevance", &expected.concat(), &got, ROUNDED);

    let tables = case.rows("outputs/relevance_table_per_query");
    for (name, expected) in case.get("outputs/per_query_stable").as_object().expect("one list per metric") {
        let expected = numbers(expected);
        let mut compare = |tolerance: f64, score: &dyn Fn(usize) -> Option<f64>| {
            let got: Vec<f64> = (0..queries.len()).map(|query| score(query).unwrap_or(f64::NAN)).collect();
            verdict.compare(name, &expected, &got, tolerance);
        };
        let number = |text: &str| text.parse::<usize>().expect("a number in the metric's name");
        let list = |query: usize| &all_lists[query];
        match name.split_once("_level") {
            None => match name.as_str() {
                "H-AP_bruteforce_definition" => {
                    compare(ROUNDED, &|query| hierarchical_ap(&rankings[query], &checked));
                }
                "NDCG" => compare(ROUNDED, &|query| ndcg(&rankings[query], Gain::Exponential, None)),
                "ASI" => compare(EXACT, &|query| asi(&rankings[query])),
                "H-AP" => compare(ROUNDED, &|query| departures::happier_h_ap(list(query), &tables[query])),
                "ASI_at_R_False" => {
                    compare(EXACT, &|query| departures::asi_with_strangers(depth, list(query)))
                }
                "DCG_on_relevance" => {
                    compare(ROUNDED, &|query| {
                        Some(departures::dcg_on_relevance(list(query), &tables[query]))
                    });
                }
                _ if name.starts_with("NDCG@") => {
                    let k = number(&name[5..]);
                    let first =
                        |query: usize| Ranking::from_levels(depth, &list(query)[..k.min(list(query).len())]);
                    compare(ROUNDED, &|query| ndcg(&first(query), Gain::Exponential, None));
                }
                _ if name.starts_with("AP#") => {
                    let level = number(&name[3..]);
                    let without_nearer = |query: usize| {
                        let others: Vec<usize> =
                            list(query).iter().copied().filter(|&l| l <= level).collect();
                        Ranking::from_levels(depth, &others)
                    };
                    compare(ROUNDED, &|query| average_precision(&without_nearer(query), level));
                }
                _ => panic!("{name} is not compared"),
            },
            Some((metric, column_number)) => {
                // Their column 0 is the finest level.
                let level = depth - number(column_number);
                let column_rankings = column(level);
                let (rankings, level) =
                    if leave_one_out { (&rankings, level) } else { (&column_rankings, 1) };
                match metric.split_once('@') {
                    None if metric == "AP" => {
                        compare(EXACT, &|query| average_precision(&rankings[query], level))
                    }
                    None if metric == "ASI_binary" => compare(EXACT, &|query| asi(&column_rankings[query])),
                    Some(("mAP", "R")) => compare(EXACT, &|query| map_at_r(&rankings[query], level)),
                    Some(("R", k)) => {
                        compare(EXACT, &|query| {
                            Some(recall(&rankings[query], level, number(k)).unwrap_or(0.0))
                        });
                    }
                    Some(("P", k)) => {
                        compare(EXACT, &|query| {
                            Some(precision(&rankings[query], level, number(k)).unwrap_or(0.0))
                        });
                    }
                    _ => panic!("{name} is not compared"),
                }
            }
        }
    }
    if leave_one_out {
        evaluated_whole(case, verdict, &queries, relevance);
    }
}

/// The same through `evaluate`, from the embeddings: means over the queries that have a value.
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
    compare("H-AP_bruteforce_definition", report.overall.get(Metric::named("h_ap")));
    compare("NDCG", report.overall.get(Metric::named("ndcg")));
    compare("ASI", report.overall.get(Metric::named("asi")));
    for (column, level) in report.levels.iter().rev().enumerate() {
        compare(&format!("AP_level{column}"), level.means.get(Metric::named("ap")));
        compare(&format!("mAP@R_level{column}"), level.means.get(Metric::named("map_at_r")));
    }
}

/// `metrics_hashing.json`, on its deterministic ranking (`stable_order`): by Hamming distance, then by index. Its
/// unstable sort (`torch181_sort_order`) must be within the bounds that the orders of ties allow. `mAP_all` and the
/// precisions are those of the finest column alone, because queries and database were numbered separately.
///
/// The reference differs in one point: a query without positives counts as 0 in its means, or makes mAP NaN.
pub(crate) fn hashing(case: &Case, verdict: &mut Verdict) {
    let [queries, database] = ["query", "database"].map(|set| case.rows(&format!("inputs/{set}_codes")));
    let [query_labels, database_labels] =
        ["query", "database"].map(|set| labels(case, &format!("inputs/{set}_labels")));
    let depth = query_labels[0].len();
    let hamming = |a: &[f64], b: &[f64]| a.iter().zip(b).filter(|(a, b)| a != b).count() as f64;
    let distances: Vec<f64> = queries.iter().flat_map(|a| database.iter().map(|b| hamming(a, b))).collect();
    verdict.compare("hamming", &case.numbers("outputs/hamming"), &distances, 0.0);
    let finest = |rows: &[Vec<f64>]| rows.iter().map(|row| row[depth - 1..].to_vec()).collect::<Vec<_>>();
    let r = case.numbers("params/r")[0] as usize;
    let average = |rankings: &[Ranking], score: &dyn Fn(&Ranking) -> Option<f64>, none: f64| {
        mean(rankings.iter().map(|ranking| score(ranking).unwrap_or(none)))
    };
    let scores = |ties: TiePolicy| {
        let rank = |query_labels: &[Vec<f64>], database_labels: &[Vec<f64>]| {
            let queries = Set { points: &queries, labels: query_labels };
            let database = Set { points: &database, labels: database_labels };
            rank(ties, queries, Some(database), &|a, b| -hamming(a, b))
        };
        let rankings = rank(&query_labels, &database_labels);
        let by_class = rank(&finest(&query_labels), &finest(&database_labels));
        let precisions = [1, 5, 10].map(|k| average(&by_class, &|ranking| precision(ranking, 1, k), 0.0));
        let mahps = [5, 10, r].map(|k| average(&rankings, &|ranking| mahp(ranking, k), 0.0));
        [
            ("mAP_all", vec![average(&by_class, &|ranking| average_precision(ranking, 1), f64::NAN)]),
            ("precision_at_10", precisions[2..].to_vec()),
            ("precision_at_1_5_10", precisions.to_vec()),
            ("mAHP", mahps[2..].to_vec()),
            ("mAHP_at_5_10_r", mahps.to_vec()),
            ("nDCG", vec![average(&rankings, &|ranking| mean_ndcg(ranking, r), 0.0)]),
        ]
    };
    for (name, got) in scores(TiePolicy::Stable) {
        verdict.compare(name, &case.numbers(&format!("outputs/stable_order/{name}")), &got, SINGLE);
    }
    // If the order of the reference's own sort is recorded, its value is between the worst and the best order of ties.
    let worst_and_best = scores(TiePolicy::Pessimistic).into_iter().zip(scores(TiePolicy::Optimistic));
    for ((name, worst), (_, best)) in worst_and_best {
        let Some(sorted) = case.find(&format!("outputs/torch181_sort_order/{name}")) else { continue };
        let sorted = numbers(sorted);
        let bounds = worst.into_iter().zip(best);
        let within: Vec<f64> =
            sorted.iter().zip(bounds).map(|(x, (worst, best))| x.max(worst).min(best)).collect();
        verdict.compare(&format!("{name} of some order of ties"), &within, &sorted, SINGLE);
    }
}

/// `metrics_hierarchical_precision.json`: `P@k` is HP@k here, and `AHP` is AHP@k for k = the length of the list.
///
/// The reference removes the query from the list at its place, but from the ideal list at the top. The two are the same
/// if the query is its own nearest neighbour.
pub(crate) fn hierarchical_precisions(case: &Case, verdict: &mut Verdict) {
    let labels = labels(case, "inputs/labels");
    let ranked = case.rows("inputs/ranking_with_self");
    let rank = |(query, order): (usize, &Vec<f64>)| {
        let others = order.iter().map(|&item| item as usize).filter(|&item| item != query);
        let levels: Vec<usize> = others.map(|item| equal_columns(&labels[query], &labels[item])).collect();
        Ranking::from_levels(labels[0].len(), &levels)
    };
    let rankings: Vec<Ranking> = ranked.iter().enumerate().map(rank).collect();
    let outputs = ["metrics", "metrics_ahp_full"].map(|part| case.get(&format!("outputs/{part}")));
    for (name, expected) in outputs.iter().flat_map(|part| part.as_object().expect("a number per metric")) {
        let (metric, similarity) = match name.split_once(" (") {
            Some((metric, "WUP)")) => (metric, ClassSimilarity::WuPalmer),
            _ => (name.trim_end_matches(" (LCS_HEIGHT)"), ClassSimilarity::LcaHeight),
        };
        let score = |ranking: &Ranking| match metric.split_once('@') {
            Some(("P", k)) => hierarchical_precision(ranking, similarity, k.parse().expect("a number")),
            Some(("AHP", k)) => {
                average_hierarchical_precision(ranking, similarity, k.parse().expect("a number"))
            }
            None if metric == "AHP" => average_hierarchical_precision(ranking, similarity, ranking.len()),
            _ => average_precision(ranking, ranking.depth()),
        };
        // A query without relatives has no value here; the reference gives it 0/0 or a share of strangers.
        let got = mean(rankings.iter().map(|ranking| score(ranking).unwrap_or(f64::NAN)));
        verdict.compare(name, &numbers(expected), &[got], if name == "AP" { SINGLE } else { EXACT });
    }
}

/// `metrics_pml.json`: the list is cut after the first k items, but R, the number of positives, counts all.
///
/// The reference differs in two points: a query without a hit among the k counts as 0 in its MRR, and with
/// `avg_of_avgs` it first averages over the queries of each class.
pub(crate) fn accuracy_calculator(case: &Case, verdict: &mut Verdict) {
    let (points, labels) = (case.rows("inputs/embeddings"), column(case, "inputs/labels"));
    let gallery = case
        .find("inputs/gallery_embeddings")
        .map(|_| (case.rows("inputs/gallery_embeddings"), column(case, "inputs/gallery_labels")));
    let gallery_set = gallery.as_ref().map(|(points, labels)| Set { points, labels });
    let set = Set { points: &points, labels: &labels };
    let rankings = rank(TiePolicy::Stable, set, gallery_set, &|a, b| -squared_distance(a, b));
    // The size of the largest class, without the query itself if it is one of the items.
    let reference = gallery.as_ref().map_or(&labels, |(_, labels)| labels);
    let most = labels.iter().map(|label| reference.iter().filter(|other| *other == label).count()).max();
    let most = most.expect("there are labels") - usize::from(gallery.is_none());

    let classes_first = case.get("params/avg_of_avgs") == &Value::Bool(true);
    let average = |score: &dyn Fn(&Ranking) -> Option<f64>| {
        let mut classes = BTreeMap::<u64, Vec<f64>>::new();
        for (label, ranking) in labels.iter().zip(&rankings) {
            let class = if classes_first { label[0] as u64 } else { 0 };
            if let Some(score) = score(ranking) {
                classes.entry(class).or_default().push(score);
            }
        }
        mean(classes.into_values().map(|scores| mean(scores.into_iter())))
    };
    for (cut, expected) in case.get("outputs").as_object().expect("one part per k") {
        let k = match cut.as_str() {
            "k=None" => usize::MAX,
            "k=max_bin_count" => most,
            _ => cut["k=".len()..].parse().expect("a number after k="),
        };
        let up_to_r = |ranking: &Ranking| k.min(ranking.positives_at(1));
        for (name, expected) in expected.as_object().expect("a number per metric") {
            let got = match name.as_str() {
                "mean_average_precision" => average(&|ranking| average_precision_at(ranking, 1, k)),
                "mean_average_precision_at_r" => {
                    average(&|ranking| average_precision_at(ranking, 1, up_to_r(ranking)))
                }
                "mean_reciprocal_rank" => {
                    average(&|ranking| Some(reciprocal_rank(ranking, 1)? * recall(ranking, 1, k)?))
                }
                "precision_at_1" => average(&|ranking| precision(ranking, 1, 1)),
                "r_precision" => average(&|ranking| precision(ranking, 1, up_to_r(ranking))),
                _ => panic!("unknown metric {name}"),
            };
            verdict.compare(&format!("{cut}, {name}"), &numbers(expected), &[got], SINGLE);
        }
    }
}

/// `metrics_recall_hyperbolic.json`: R@k of rankings by increasing distance in the Poincaré ball or, if the curvature
/// is 0, by decreasing dot product.
pub(crate) fn recall_hyperbolic(case: &Case, verdict: &mut Verdict) {
    let (points, labels) = (case.rows("inputs/z"), column(case, "inputs/labels"));
    let curvature = case.numbers("params/hyp_c")[0];
    let score = |a: &[f64], b: &[f64]| {
        if curvature == 0.0 { dot(a, b) } else { -poincare_distance(curvature, a, b) }
    };
    let rankings = rank(TiePolicy::Stable, Set { points: &points, labels: &labels }, None, &score);
    let got = recalls(&rankings, &[1, 2, 4, 8]);
    verdict.compare("R@1,2,4,8", &case.numbers("outputs/R@1,2,4,8"), &got, EXACT);
    verdict.compare("R@1", &case.numbers("outputs/R@1"), &got[..1], EXACT);
}

/// `metrics_recall_proxy_anchor.json`: R@k by cosine. With a separate gallery a query counts as right at k if fewer
/// than k negatives score above its best positive, so that ties count in its favour.
pub(crate) fn recall_proxy_anchor(case: &Case, verdict: &mut Verdict) {
    let set = |prefix: &str| {
        (case.rows(&format!("inputs/{prefix}embeddings")), column(case, &format!("inputs/{prefix}labels")))
    };
    let cosine = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let [whole, queries, gallery] = ["", "query_", "gallery_"].map(set);
    let [whole, queries, gallery] =
        [&whole, &queries, &gallery].map(|(points, labels)| Set { points, labels });

    let same = recalls(&rank(TiePolicy::Stable, whole, None, &cosine), &[1, 2, 4, 8, 16, 32]);
    verdict.compare("same set", &case.numbers("outputs/R@1,2,4,8,16,32 (same set)"), &same, EXACT);
    let apart =
        recalls(&rank(TiePolicy::Optimistic, queries, Some(gallery), &cosine), &[1, 10, 20, 30, 40, 50]);
    verdict.compare(
        "apart",
        &numbers(&case.get("outputs")["R@1,10,20,30,40,50 (query/gallery)"]),
        &apart,
        EXACT,
    );
}

/// Values that the references compute differently from the formula, and that are therefore not metrics of ours. Each is
/// computed here on our rankings and compared with the reference. The lists are shared levels in ranked order.
mod departures {
    /// HAPPIER's own H-AP counts the items above by their relevance, level by level: if two levels have the same
    /// relevance, their items are counted twice. Ours is compared with the formula, `H-AP_bruteforce_definition`.
    pub(super) fn happier_h_ap(list: &[usize], rel: &[f64]) -> Option<f64> {
        let total: f64 = list.iter().map(|&level| rel[level]).sum();
        let h_rank = |k: usize| -> f64 {
            let equal = |level: usize| list[..=k].iter().filter(|&&j| rel[j] == rel[level]).count() as f64;
            (1..rel.len()).map(|level| equal(level) * rel[level].min(rel[list[k]])).sum()
        };
        let sum: f64 = (0..list.len()).map(|k| h_rank(k) / (k as f64 + 1.0)).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// An ASI over all ranks, in which level 0 counts like the others.
    pub(super) fn asi_with_strangers(depth: usize, list: &[usize]) -> Option<f64> {
        let mut ideal = list.to_vec();
        ideal.sort_by(|a, b| b.cmp(a));
        let count = |list: &[usize], level| list.iter().filter(|&&l| l == level).count();
        let common = |n: usize| -> usize {
            (0..=depth).map(|level| count(&list[..n], level).min(count(&ideal[..n], level))).sum()
        };
        let sum: f64 = (1..=list.len()).map(|n| common(n) as f64 / n as f64).sum();
        (!list.is_empty()).then(|| sum / list.len() as f64)
    }

    /// A DCG, not normalised, whose gain is the relevance.
    pub(super) fn dcg_on_relevance(list: &[usize], rel: &[f64]) -> f64 {
        list.iter().enumerate().map(|(i, &level)| rel[level] / (i as f64 + 2.0).log2()).sum()
    }
}

/// Points, each with a row of labels.
#[derive(Clone, Copy)]
struct Set<'a> {
    points: &'a [Vec<f64>],
    labels: &'a [Vec<f64>],
}

/// The rankings of the gallery for each query, by decreasing `score`; without a gallery, of the other queries.
fn rank(
    ties: TiePolicy,
    queries: Set,
    gallery: Option<Set>,
    score: &dyn Fn(&[f64], &[f64]) -> f64,
) -> Vec<Ranking> {
    let items = gallery.unwrap_or(queries);
    let rank = |query: usize| {
        let others = (0..items.points.len()).filter(|&item| gallery.is_some() || item != query);
        let scored = others.map(|item| {
            let level = equal_columns(&queries.labels[query], &items.labels[item]);
            (score(&queries.points[query], &items.points[item]) as f32, level)
        });
        Ranking::from_scores(queries.labels[0].len(), ties, scored)
    };
    (0..queries.points.len()).map(rank).collect()
}

/// The mean R@k for each k; a query without positives counts as wrong.
fn recalls(rankings: &[Ranking], ks: &[usize]) -> Vec<f64> {
    let at = |&k: &usize| mean(rankings.iter().map(|ranking| recall(ranking, 1, k).unwrap_or(0.0)));
    ks.iter().map(at).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// 2/√c · artanh(√c ‖−x ⊕ y‖), with the 10⁻⁵ that the reference adds to the denominator of ⊕.
fn poincare_distance(c: f64, x: &[f64], y: &[f64]) -> f64 {
    let (xy, xx, yy) = (-dot(x, y), dot(x, x), dot(y, y));
    let denominator = 1.0 + 2.0 * c * xy + c * c * xx * yy + 1e-5;
    let (factor_x, factor_y) = (1.0 + 2.0 * c * xy + c * yy, 1.0 - c * xx);
    let sum: Vec<f64> = x.iter().zip(y).map(|(x, y)| (factor_y * y - factor_x * x) / denominator).collect();
    2.0 / c.sqrt() * (c * dot(&sum, &sum)).sqrt().atanh()
}

/// The number of equal labels, which is the shared level if the labels are one tree.
fn equal_columns(a: &[f64], b: &[f64]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// The labels of one level, each as a row.
fn column(case: &Case, path: &str) -> Vec<Vec<f64>> {
    case.numbers(path).into_iter().map(|label| vec![label]).collect()
}

/// Label rows with reversed columns: column 0 of the reference is the finest level, ours the coarsest.
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
