//! Scores by class: each class of a level by itself, and their mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Means, QueryScores, Report, Scores};
use crate::statistics::mean;
use crate::taxonomy::UNKNOWN;

/// The scores of the queries of each class of a level. Metrics per level are measured at this level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByClass {
    /// The name of the level.
    pub level: String,
    /// The macro average: the mean over classes of the mean over their queries, so that each class counts as much as any
    /// other. Classes without a value are left out. The means of the [`Report`] are over queries.
    pub macro_average: Means,
    /// The classes that have queries, by the first metric of the config, the worst first.
    pub classes: Vec<ClassReport>,
}

/// The means over the queries of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// The class's name.
    pub name: String,
    /// The means.
    #[serde(flatten)]
    pub means: Means,
}

impl ByClass {
    /// The scores by class at a level, 1 … L, of a report that has the scores of its queries. `classes` are the classes of
    /// the queries there; those of unknown class are left out.
    ///
    /// # Panics
    ///
    /// When there is not a class for each query.
    pub fn new(report: &Report, level: usize, classes: &[u32], name: impl Fn(u32) -> String) -> Self {
        let metrics = &report.config.metrics;
        let mut rows: BTreeMap<u32, Vec<&QueryScores>> = BTreeMap::new();
        for row in report.per_query.iter().filter(|row| classes[row.query] != UNKNOWN) {
            rows.entry(classes[row.query]).or_default().push(row);
        }
        let class = |(&class, rows): (&u32, &Vec<&QueryScores>)| {
            let scores: Scores = metrics
                .iter()
                .map(|&metric| {
                    let at = if metric.entry().per_level { level } else { 0 };
                    let values = rows.iter().filter_map(|row| row.at(at).get(metric));
                    (metric, mean(&values.collect::<Vec<_>>()))
                })
                .collect();
            let queries = rows.iter().filter(|row| row.closest >= level).count();
            ClassReport { name: name(class), means: Means::plain(queries, scores) }
        };
        let mut classes: Vec<ClassReport> = rows.iter().map(class).collect();
        if let Some(&first) = metrics.first() {
            let sign = if first.entry().greater_is_better { 1.0 } else { -1.0 };
            // A class without a value is last.
            let value =
                |class: &ClassReport| class.means.get(first).map_or(f64::INFINITY, |value| sign * value);
            classes.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
        let scores = metrics.iter().map(|&metric| {
            let values: Vec<f64> = classes.iter().filter_map(|class| class.means.get(metric)).collect();
            (metric, mean(&values))
        });
        let queries = classes.iter().map(|class| class.means.queries).sum();
        let macro_average = Means::plain(queries, scores.collect());
        Self { level: report.levels[level - 1].name.clone(), macro_average, classes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embeddings::Embeddings;
    use crate::evaluate::{EvaluationConfig, Labelled, evaluate};
    use crate::metrics::Metric;
    use crate::taxonomy::Labels;

    #[test]
    fn each_class_counts_as_much_as_any_other() {
        // Three items of class 0 beside each other, and two of class 1 on either side of them.
        let embeddings = Embeddings::new(2, vec![1.0, 0.0, 1.0, 0.1, 1.0, 0.2, 1.0, -1.0, 1.0, 1.5]).unwrap();
        let labels = Labels::new(2, vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 1]).unwrap();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let levels = ["all", "one"].map(String::from);
        let report = evaluate(&levels, set, None, &EvaluationConfig::default()).unwrap();
        let by_class = ByClass::new(&report, 2, &labels.column(2), |class| format!("class {class}"));
        let (ap, h_ap) = (Metric::named("ap"), Metric::named("h_ap"));
        let of = |class: usize, metric| by_class.classes[class].means.get(metric).unwrap();
        let names: Vec<&str> = by_class.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!((names, by_class.level.as_str()), (vec!["class 1", "class 0"], "one"));
        // Each of class 1 finds the other last of four.
        assert_eq!((of(0, ap), of(1, ap)), (0.25, 1.0));
        assert_eq!(by_class.macro_average.get(ap), Some(0.625));
        let micro = (2.0 * of(0, h_ap) + 3.0 * of(1, h_ap)) / 5.0;
        assert!((report.overall.get(h_ap).unwrap() - micro).abs() < 1e-12);
        assert_eq!(by_class.macro_average.queries, 5);
        // An unknown class is none.
        let some = [0, 0, 0, UNKNOWN, UNKNOWN];
        let by_class = ByClass::new(&report, 2, &some, |class| class.to_string());
        assert_eq!((by_class.classes.len(), by_class.macro_average.get(ap)), (1, Some(1.0)));
    }
}
