//! The protocol of DyML (Sun et al., CVPR 2021): each level is evaluated by itself, and the scores are averaged over levels.
//! DyML-Vehicle and DyML-Animal have queries and a gallery for each level, other data sets the same for all levels.

use std::slice::from_ref;

use akin_base::progress::Progress;
use akin_core::encoder::Encoder;
use akin_core::evaluate::{
    DymlRow, EvaluationConfig, LabelSets, Labelled, LevelReport, Means, Report, Scores, dyml, evaluate,
};
use akin_core::metrics::Metric;
use akin_core::relevance::Relevance;
use akin_core::taxonomy::Labels;
use anyhow::{Context, Result};
use burn::tensor::Device;

use crate::config::{Config, Selection};
use crate::data::Dataset;
use crate::evaluation::embedding::{Embedded, embed, embed_splits};
use crate::pictures::loader::Pictures;

/// The config of the evaluation of one level. With one level every relevance gives the same scores; neither gap nor
/// hyperbolicity is measured.
pub fn level_config(config: EvaluationConfig) -> EvaluationConfig {
    EvaluationConfig {
        relevance: Relevance::default(),
        decomposability_gap: None,
        hyperbolicity: None,
        ..config
    }
}

/// Evaluates each level of a data set, or only one of them, from 1. Embeds the evaluation splits once, with `embed`.
///
/// # Errors
///
/// The errors of `embed`, and a config that does not fit the data.
pub fn evaluate_levels(
    dataset: &Dataset,
    config: &EvaluationConfig,
    only: Option<usize>,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<Vec<Report>> {
    let (queries, gallery) = embed_splits(dataset, embed)?;
    let query_labels = dataset.labels.select(&queries.items);
    let gallery = gallery.map(|gallery| (dataset.labels.select(&gallery.items), gallery.embeddings));

    let column = |labels: &Labels, level| Labels::new(1, labels.column(level));
    let report = |(level, name): (usize, &String)| {
        let gallery_column = gallery.as_ref().map(|(labels, _)| column(labels, level)).transpose()?;
        let gallery = (gallery.as_ref().zip(gallery_column.as_ref()))
            .map(|((_, embeddings), labels)| Labelled { embeddings, labels });
        let queries = Labelled { embeddings: &queries.embeddings, labels: &column(&query_labels, level)? };
        evaluate(from_ref(name), queries, gallery, config).with_context(|| set_name(name))
    };
    let levels = (1..).zip(dataset.taxonomy.level_names());
    levels.filter(|&(level, _)| only.is_none_or(|only| level == only)).map(report).collect()
}

/// Evaluates each level: each benchmark of a data set that has one per level, else each level of one set. `evaluate` takes
/// the images and the only level to evaluate, from 1, or none for all levels.
///
/// # Errors
///
/// Those of `evaluate`.
pub fn evaluate_benchmarks(
    selection: &Selection,
    mut evaluate: impl FnMut(Selection, Option<usize>) -> Result<Vec<Report>>,
) -> Result<(Vec<Report>, LabelSets)> {
    let Some(benchmarks) = selection.data.benchmarks() else {
        return Ok((evaluate(selection.clone(), None)?, LabelSets::Columns));
    };
    let mut reports = Vec::new();
    for (level, data) in (1..).zip(benchmarks) {
        reports.extend(evaluate(selection.with_data(data), Some(level))?);
    }
    Ok((reports, LabelSets::Apart))
}

/// What errors call the label set of a level.
pub fn set_name(name: &str) -> String {
    format!("label set {name}")
}

/// The report of an encoder on the data set of a config by this protocol: that of each level, and over all levels the
/// average.
///
/// # Errors
///
/// A benchmark that cannot be read, and the errors of [`evaluate_levels`].
pub fn report(encoder: &Encoder, config: &Config, device: &Device, progress: Progress) -> Result<Report> {
    let eval = level_config(config.eval.clone());
    let evaluated = |selection: Selection, only: Option<usize>| {
        let dataset = Dataset::load_to_evaluate(&selection)?;
        let pictures = Pictures::of(&dataset);
        evaluate_levels(&dataset, &eval, only, |items| embed(encoder, &pictures, items, device, progress))
    };
    let (reports, sets) = evaluate_benchmarks(&config.selection(), evaluated)?;
    let average = dyml(&reports, sets)?;
    Ok(combined(reports, average, sets))
}

/// One report of the reports of several levels and their average. Every metric has a score at every level.
fn combined(reports: Vec<Report>, average: DymlRow, sets: LabelSets) -> Report {
    let means = |report: &Report| {
        let at = |metric: Metric| report.at(usize::from(metric.entry().per_level));
        let scores: Scores =
            report.config.metrics.iter().map(|&metric| (metric, at(metric).get(metric))).collect();
        let interval = report
            .config
            .metrics
            .iter()
            .filter_map(|&metric| Some((metric, *at(metric).interval.get(&metric)?)));
        Means { scores, interval: interval.collect(), ..report.at(1).clone() }
    };
    let levels: Vec<LevelReport> = reports
        .iter()
        .flat_map(|report| {
            report.levels.iter().map(|level| LevelReport { name: level.name.clone(), means: means(report) })
        })
        .collect();
    let queries = match sets {
        LabelSets::Columns => reports[0].queries,
        LabelSets::Apart => reports.iter().map(|report| report.queries).sum(),
    };
    let first = reports.into_iter().next().expect("an average is over at least one report");
    Report {
        queries,
        overall: Means {
            queries,
            open: None,
            fewer: Default::default(),
            scores: average.scores,
            interval: average.interval,
        },
        levels,
        by_class: None,
        per_query: Vec::new(),
        ..first
    }
}
