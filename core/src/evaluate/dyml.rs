//! The protocol of Dynamic Metric Learning (Sun et al., CVPR 2021): one set of queries and gallery per level, each with
//! labels of that level only, and the scores averaged over the sets.

use super::{Report, Scores};
use crate::statistics::mean;
use crate::{Error, Kind, Result};

/// The row that DyML's tables print: each metric, averaged over the reports, one of each label set.
///
/// A report is [`evaluate`](super::evaluate)'s over one level. ASI is then DyML's binary ASI, and AP and R@k are those
/// of the level. DyML-Vehicle and DyML-Animal have a set of their own per level, whose queries stand among the items
/// they rank ([`evaluate_among`](super::evaluate_among)); DyML-Product has one set, evaluated once with each
/// [column](crate::taxonomy::Labels::column) of its labels.
///
/// # Errors
///
/// [`Kind::Config`] when there is no report, one has more than one level, or they have different metrics.
pub fn dyml(reports: &[Report]) -> Result<Scores> {
    let refuse = |what: &str, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let Some(first) = reports.first() else {
        return refuse("DyML's average is over no label set", "give one report per label set");
    };
    if reports.iter().any(|report| report.levels.len() != 1) {
        return refuse(
            "DyML's average is over reports of one level each, and one has another number of levels",
            "evaluate every label set by itself, with its own label column",
        );
    }
    if reports.iter().any(|report| report.config.metrics != first.config.metrics) {
        return refuse(
            "the reports of the label sets have different metrics",
            "evaluate all with the same metrics",
        );
    }
    let average = |&metric| {
        let level = usize::from(crate::metrics::Metric::entry(metric).per_level);
        let values: Vec<f64> = reports.iter().filter_map(|report| report.at(level).get(metric)).collect();
        (metric, mean(&values))
    };
    Ok(first.config.metrics.iter().map(average).collect())
}
