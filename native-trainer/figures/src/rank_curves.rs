//! H-precision, H-recall and mAHP by the number of ranked items: as metrics to evaluate, a table and a file.

use std::path::Path;

use akin_base::files::write_atomic;
use akin_base::quantities::count;
use akin_base::text_table::{align_numbers, percent};
use akin_core::evaluate::{EvaluationConfig, Report};
use akin_core::metrics::Metric;
use anyhow::Result;

/// The metrics of the curves.
pub const METRICS: [&str; 3] = ["h_precision", "h_recall", "mahp"];

/// The ranks of curves over this number of ranked items: 1, 2, 5, 10, 20, 50 … 1,000,000, and the last one.
fn ranks(ranked: usize) -> impl Iterator<Item = usize> {
    let round = (0..7).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_usize.pow(power)));
    round.filter(move |&k| k < ranked && k <= 1_000_000).chain((ranked > 0).then_some(ranked))
}

/// One of these metrics at a rank.
pub fn metric(name: &str, k: usize) -> Metric {
    format!("{name}@{k}").parse().expect("each of these metrics takes any k of at least 1")
}

/// Adds the metrics of curves over this number of ranked items to those that are evaluated.
pub fn add_metrics(config: &mut EvaluationConfig, ranked: usize) {
    for k in ranks(ranked) {
        for name in METRICS {
            let metric = metric(name, k);
            if !config.metrics.contains(&metric) {
                config.metrics.push(metric);
            }
        }
    }
}

/// The ranks that a report has, with the three means of each.
pub fn points(report: &Report) -> Vec<(usize, [Option<f64>; 3])> {
    let means = |k: usize| METRICS.map(|name| report.overall.get(metric(name, k)));
    ranks(report.ranked).map(|k| (k, means(k))).collect()
}

/// Writes the curves, in full precision. A cell is empty if no query has a positive.
pub fn write(file: &Path, report: &Report) -> Result<()> {
    write_atomic(file, |out| {
        let mut table = csv::Writer::from_writer(out);
        table.write_record([&["k"][..], &METRICS].concat())?;
        for (k, means) in points(report) {
            let cells = means.map(|mean| mean.map(|mean| mean.to_string()).unwrap_or_default());
            table.write_record([vec![k.to_string()], cells.to_vec()].concat())?;
        }
        table.flush()
    })
}

/// The curves as a table, in percent.
pub fn text(report: &Report) -> String {
    let row = |(k, means): (usize, [Option<f64>; 3])| [vec![count(k)], means.map(percent).to_vec()].concat();
    let rows: Vec<Vec<String>> = points(report).into_iter().map(row).collect();
    align_numbers(&["k", "H-P@k", "H-R@k", "mAHP@k"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_at_the_last_rank() {
        assert_eq!(ranks(95).collect::<Vec<_>>(), [1, 2, 5, 10, 20, 50, 95]);
        assert_eq!(ranks(100).last(), Some(100));
        assert_eq!(ranks(1).collect::<Vec<_>>(), [1]);
        assert_eq!(ranks(0).count(), 0);
        assert_eq!(ranks(60_000_000).collect::<Vec<_>>()[18..], [1_000_000, 60_000_000]);
    }
}
