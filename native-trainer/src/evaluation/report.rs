//! Reports as text: tables for the terminal, and how they were measured.

use std::collections::BTreeMap;

use akin_base::quantities::{count, counted};
use akin_base::text_table::{align_numbers, percent};
use akin_core::evaluate::{ByClass, EvaluationConfig, Means, PairedTest, Report};
use akin_core::metrics::{Metric, Unit};
use akin_core::relevance::Relevance;

use crate::config::{AVERAGE, setting_name};

/// A report as tables: each level, all levels, the decomposability gap, and how it was measured.
pub fn report_text(report: &Report) -> String {
    if averages_levels(report) {
        return levels_text(report);
    }
    let metrics = |per_level: bool| -> Vec<Metric> {
        report.config.metrics.iter().copied().filter(|metric| metric.entry().per_level == per_level).collect()
    };
    let part = |first: &str, metrics: &[Metric], rows: &[(&str, &Means)]| {
        let labels = metrics.iter().map(|metric| metric.label());
        let header: Vec<String> = [first.to_owned(), "queries".into()].into_iter().chain(labels).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let rows = rows.iter().map(|&(name, means)| {
            let cells =
                metrics.iter().map(|&metric| with_interval(metric, means.get(metric), &means.interval));
            [name.to_owned(), count(means.queries)].into_iter().chain(cells).collect()
        });
        align_numbers(&header, &rows.collect::<Vec<_>>())
    };
    let mut parts = Vec::new();
    let (per_level, overall) = (metrics(true), metrics(false));
    if !per_level.is_empty() {
        let rows: Vec<_> = report.levels.iter().map(|level| (level.name.as_str(), &level.means)).collect();
        parts.push(part("level", &per_level, &rows));
    }
    if !overall.is_empty() {
        parts.push(part("", &overall, &[("all levels", &report.overall)]));
    }
    if let Some(by_class) = &report.by_class {
        let table = part(&by_class.level, &report.config.metrics, &class_rows(by_class));
        parts.push(format!("{table}\n\n{MACRO_AVERAGE}"));
    }
    if let Some(gap) = &report.decomposability_gap {
        let number = |gap: f64| difference(Unit::Share, gap);
        let cell = |place: usize| match (gap.levels[place], gap.interval.get(place).copied().flatten()) {
            (Some(gap), Some([low, high])) => format!("{} [{}, {}]", number(gap), number(low), number(high)),
            (Some(gap), None) => number(gap),
            (None, _) => "–".into(),
        };
        let names = report.levels.iter().map(|level| level.name.clone()).enumerate();
        let rows: Vec<Vec<String>> = names.map(|(place, name)| vec![name, cell(place)]).collect();
        parts.push(format!(
            "{}\n\n{} of {} items",
            align_numbers(&["level", "decomposability gap"], &rows),
            counted(gap.batches, "batch", "batches"),
            count(gap.batch)
        ));
    }
    parts.extend(unknown_text(report));
    parts.extend(hyperbolicity_text(report));
    parts.push(measurement(report));
    parts.join("\n\n")
}

/// What the first of the rows of [`class_rows`] is.
pub const MACRO_AVERAGE: &str = "The macro average is the mean over classes of the mean over their queries. The worst class stands first.";

/// The rows of a table of classes: their average, and each of them.
pub fn class_rows(by_class: &ByClass) -> Vec<(&str, &Means)> {
    let classes = by_class.classes.iter().map(|class| (class.name.as_str(), &class.means));
    [("macro average", &by_class.macro_average)].into_iter().chain(classes).collect()
}

/// What unknown labels leave open: the queries and pairs that are left out, and the bounds of each mean.
pub fn unknown_text(report: &Report) -> Option<String> {
    let names = report.levels.iter().map(|level| level.name.as_str());
    let places: Vec<(&str, &Means)> = names
        .zip(report.levels.iter().map(|level| &level.means))
        .chain([("all levels", &report.overall)])
        .collect();
    let all = |metric: &&Metric| {
        let trivial =
            [0.0, if metric.entry().unit == Unit::Levels { report.levels.len() as f64 } else { 1.0 }];
        let bounds = places.iter().filter_map(|(_, means)| means.open.as_ref()?.bounds.get(*metric));
        bounds.into_iter().any(|bounds| *bounds != trivial)
    };
    let metrics: Vec<Metric> = report.config.metrics.iter().filter(all).copied().collect();
    let labels: Vec<String> = metrics.iter().map(|metric| format!("{} within", metric.label())).collect();
    let header: Vec<&str> = ["unknown labels", "queries left out", "pairs left out"]
        .into_iter()
        .chain(labels.iter().map(String::as_str))
        .collect();
    let row = |&(name, means): &(&str, &Means)| -> Option<Vec<String>> {
        let open = means.open.as_ref()?;
        let cell = |metric: &Metric| {
            let bounds = open.bounds.get(metric);
            bounds.map_or_else(String::new, |bounds| {
                let [low, high] = bounds.map(|bound| number(metric.entry().unit, bound));
                format!("{low} … {high}")
            })
        };
        let counts = [name.to_owned(), count(open.unknown_queries), count(open.left_out as usize)];
        Some(counts.into_iter().chain(metrics.iter().map(cell)).collect())
    };
    let rows: Vec<Vec<String>> = places.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| {
        format!(
            "{}\n\nThe scores are estimates, which assume that labels are missing at random. Whatever the unknown labels \
             are, each score is within its bounds.",
            align_numbers(&header, &rows)
        )
    })
}

/// The δ-hyperbolicity of the ranked items in a sentence, if it was measured.
pub fn hyperbolicity_text(report: &Report) -> Option<String> {
    let measured = report.hyperbolicity.as_ref()?;
    let Some(relative) = measured.relative else {
        return Some("no δ-hyperbolicity: all items are the same".into());
    };
    let deviation = measured.deviation.map_or_else(String::new, |deviation| format!(" ± {deviation:.3}"));
    let meaning = measured.curvature.map_or_else(
        || "the distances are those of a tree".to_owned(),
        |curvature| format!("from 0, a tree, to 1; it suggests the curvature {curvature:.3}"),
    );
    Some(format!(
        "relative δ-hyperbolicity {relative:.3}{deviation} in {} of {}: {meaning}",
        counted(measured.draws, "draw", "draws"),
        counted(measured.points, "item", "items"),
    ))
}

/// Whether the scores over all levels are averages of those of each level, as the protocol of DyML has it.
fn averages_levels(report: &Report) -> bool {
    let metrics = &report.config.metrics;
    metrics.iter().any(|metric| metric.entry().per_level && report.overall.get(*metric).is_some())
}

/// The scores of each level by itself, and their average.
fn levels_text(report: &Report) -> String {
    let metrics = &report.config.metrics;
    let labels: Vec<String> = metrics.iter().map(|metric| metric.label()).collect();
    let header: Vec<&str> =
        ["label set", "queries"].into_iter().chain(labels.iter().map(String::as_str)).collect();
    let row = |name: &str, queries: String, means: &Means| -> Vec<String> {
        let cells = metrics.iter().map(|&metric| with_interval(metric, means.get(metric), &means.interval));
        [name.to_owned(), queries].into_iter().chain(cells).collect()
    };
    let levels = report.levels.iter().map(|level| row(&level.name, count(level.means.queries), &level.means));
    let rows: Vec<Vec<String>> = levels.chain([row(AVERAGE, String::new(), &report.overall)]).collect();
    format!(
        "{}\n\neach label set separately, ranked {}",
        align_numbers(&header, &rows),
        conditions(&report.config)
    )
}

/// A score of a report. Without a level it is the score over all levels or, for a metric per level, that at the
/// finest.
pub fn score(report: &Report, metric: Metric, level: Option<&str>) -> Option<f64> {
    let place = match level {
        Some(AVERAGE) if averages_levels(report) => 0,
        Some(name) => 1 + report.levels.iter().position(|level| level.name == name)?,
        None if metric.entry().per_level => report.levels.len(),
        None => 0,
    };
    report.at(place).get(metric)
}

/// Whether a score is better than another.
pub fn is_better(metric: Metric, score: f64, other: f64) -> bool {
    if metric.entry().greater_is_better { score > other } else { score < other }
}

/// Runs side by side, one row each: H-AP, NDCG and ASI, then R@1 at the finest level and AP at every level,
/// finest first.
pub fn runs_text(reports: &[(&str, &Report)]) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let depth = first.levels.len();
    let overall = ["h_ap", "ndcg", "asi"].map(|name| (0, Metric::named(name)));
    let columns = overall
        .into_iter()
        .chain([(depth, Metric::named("recall@1"))])
        .chain((1..=depth).rev().map(|level| (level, Metric::named("ap"))));
    let columns: Vec<(usize, Metric)> = columns.collect();
    let heading = |&(level, metric): &(usize, Metric)| match level {
        0 => metric.label(),
        _ => format!("{} {}", metric.label(), first.levels[level - 1].name),
    };
    let header: Vec<String> = [String::new()].into_iter().chain(columns.iter().map(heading)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = reports.iter().map(|(name, report)| {
        let cells = columns.iter().map(|&(level, metric)| percent(report.at(level).get(metric)));
        [(*name).to_owned()].into_iter().chain(cells).collect()
    });
    align_numbers(&header, &rows.collect::<Vec<_>>())
}

/// The paired tests between two runs, one metric per row, with the intervals of their reports.
pub fn paired_tests_text(tests: &[PairedTest], reports: [&Report; 2]) -> String {
    let row = |test: &PairedTest| {
        let PairedTest { metric, ref level, queries, first, second, .. } = *test;
        let place = reports[0].levels.iter().position(|known| Some(&known.name) == level.as_ref());
        let [first, second] = [(first, reports[0]), (second, reports[1])].map(|(mean, report)| {
            let means = report.at(place.map_or(0, |place| place + 1));
            with_interval(metric, Some(mean), &means.interval)
        });
        vec![
            format!("{} {}", metric.label(), level.as_deref().unwrap_or_default()),
            count(queries),
            first,
            second,
            difference(metric.entry().unit, test.difference),
            format!("{:.4}", test.p),
        ]
    };
    let rows: Vec<Vec<String>> = tests.iter().map(row).collect();
    align_numbers(&["", "queries", "run", "against", "difference", "p"], &rows)
}

/// How a report was measured, in one line.
pub fn measurement(report: &Report) -> String {
    format!(
        "{}, each ranking {} {}; relevance {}",
        counted(report.queries, "query", "queries"),
        counted(report.ranked, "item", "items"),
        conditions(&report.config),
        relevance_name(&report.config.relevance),
    )
}

/// A relevance as `akin eval --relevance` takes it: `hierarchical_ap`, `plain:2`, `weighted_ap:1,2`.
fn relevance_name(relevance: &Relevance) -> String {
    let with_exponent = |name: &str, alpha: f64| match alpha {
        1.0 => name.to_owned(),
        _ => format!("{name}:{alpha}"),
    };
    match relevance {
        Relevance::HierarchicalAp { alpha } => with_exponent("hierarchical_ap", *alpha),
        Relevance::Plain { alpha } => with_exponent("plain", *alpha),
        Relevance::WeightedAp { weights } => {
            format!("weighted_ap:{}", weights.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
        }
    }
}

/// The similarity, the tie policy, whether the query was counted, and the number of resamples.
pub fn conditions(config: &EvaluationConfig) -> String {
    let itself = if config.count_query { "counted" } else { "not counted" };
    let intervals = config.bootstrap.map_or_else(String::new, |bootstrap| {
        format!("; in brackets 95 % bootstrap intervals of {} resamples", count(bootstrap.resamples))
    });
    let (similarity, ties) = (setting_name(config.similarity), setting_name(config.ties));
    format!("by {similarity}; ties {ties}; the query itself {itself}{intervals}")
}

/// A mean, with its interval if it has one: `87.20 [85.10, 89.05]`. A dash if there is no mean.
pub fn with_interval(metric: Metric, mean: Option<f64>, intervals: &BTreeMap<Metric, [f64; 2]>) -> String {
    let number = |value: f64| number(metric.entry().unit, value);
    match (mean, intervals.get(&metric)) {
        (Some(mean), Some(&[low, high])) => format!("{} [{}, {}]", number(mean), number(low), number(high)),
        (Some(mean), None) => number(mean),
        (None, _) => "–".into(),
    }
}

/// A share as percent, or a number of levels.
fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => percent(Some(value)),
        Unit::Levels => format!("{value:.2}"),
    }
}

fn difference(unit: Unit, value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", number(unit, value.abs()))
}

/// A score as tables show it: shares in percent.
pub fn displayed(metric: Metric, score: f64) -> f64 {
    match metric.entry().unit {
        Unit::Share => 100.0 * score,
        Unit::Levels => score,
    }
}
