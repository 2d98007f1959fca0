//! What a paper reports, beside what was measured.

use akin_base::text_table::align_numbers;
use akin_core::metrics::Metric;

use crate::config::{PublishedConfig, PublishedResult};
use crate::evaluation::report::displayed;

/// The published scores with the measured ones, a score a row; none if the paper reports none. `measured` gives a score
/// as a report has it.
pub fn published_text(
    published: &PublishedConfig,
    measured: impl Fn(&PublishedResult, Metric) -> Option<f64>,
) -> Option<String> {
    let row = |result: &PublishedResult, metric: Metric, score: f64| {
        let measured = measured(result, metric).map(|score| displayed(metric, score));
        let level = result.level.as_deref().unwrap_or_default();
        vec![
            format!("{}, {}", result.place, result.row),
            format!("{} {level}", metric.label()).trim_end().to_owned(),
            printed(score),
            measured.map_or("–".into(), |measured| format!("{measured:.2}")),
            measured.map_or("–".into(), |measured| format!("{:+.2}", measured - score).replace('-', "−")),
        ]
    };
    let rows: Vec<Vec<String>> = published
        .results
        .iter()
        .flat_map(|result| result.scores.iter().map(|(&metric, &score)| row(result, metric, score)))
        .collect();
    let title = format!("published in {}", published.paper);
    let header = [title.as_str(), "metric", "published", "measured", "difference"];
    (!rows.is_empty()).then(|| align_numbers(&header, &rows))
}

/// A published score, with at least one decimal.
pub fn printed(score: f64) -> String {
    let text = score.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_score_stands_beside_the_measured_one() {
        let published: PublishedConfig = toml::from_str(
            "paper = 'ramzi2022'\nresults = [\n\
             { place = 'Table 1', row = 'NSM [59]', scores = { h_ap = 42.8, asi = 21 } },\n\
             { place = 'Table 3', row = 'NSM [59]', level = 'product', scores = { 'recall@1' = 81.3 } },\n]",
        )
        .unwrap();
        let measured = |result: &PublishedResult, metric: Metric| match (&result.level, metric.entry().name) {
            (None, "h_ap") => Some(0.4311),
            (Some(_), "recall") => Some(0.8),
            _ => None,
        };
        let text = published_text(&published, measured).unwrap();
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            words[0],
            ["published", "in", "ramzi2022", "metric", "published", "measured", "difference"]
        );
        assert!(words.iter().any(|line| line.ends_with(&["H-AP", "42.8", "43.11", "+0.31"])), "{text}");
        assert!(words.iter().any(|line| line.ends_with(&["ASI", "21.0", "–", "–"])), "{text}");
        assert!(words.iter().any(|line| line.ends_with(&["product", "81.3", "80.00", "−1.30"])), "{text}");
        assert_eq!(published_text(&PublishedConfig { results: vec![], ..published }, measured), None);
    }
}
