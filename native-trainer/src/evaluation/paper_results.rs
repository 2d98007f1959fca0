//! What a paper reports, beside what was measured.

use akin_base::text_table::align_numbers;
use akin_core::metrics::Metric;

use crate::config::{DataConfig, PublishedConfig, PublishedResult};
use crate::evaluation::report::displayed;

/// The published scores with the measured ones, a score a row; none if the paper reports none. `measured` gives a score
/// as a report has it. The last column says whether both are the same as far as the paper prints digits.
///
/// `other` is the data set that was evaluated, if it is not the data set of the training; then only the scores on it are
/// given.
/// Without one, the scores on other data sets are given as not measured.
pub fn published_text(
    published: &PublishedConfig,
    other: Option<&DataConfig>,
    measured: impl Fn(&PublishedResult, Metric) -> Option<f64>,
) -> Option<String> {
    let row = |result: &PublishedResult, metric: Metric, score: f64| {
        let is_measured = result.on.is_some() == other.is_some();
        let measured = measured(result, metric).filter(|_| is_measured).map(|score| displayed(metric, score));
        let tolerance = rounding(result);
        let same = |measured: f64| {
            // The score itself has the rounding of a binary number.
            let same = (measured - score).abs() <= tolerance + 1e-9;
            format!("{} (±{tolerance})", if same { "yes" } else { "no" })
        };
        let level = result.level.as_deref().unwrap_or_default();
        vec![
            format!("{}, {}", result.place, result.row),
            match &result.on {
                None => format!("{} {level}", metric.label()).trim_end().to_owned(),
                Some(on) => format!("{} on {on}", metric.label()),
            },
            printed(score),
            measured.map_or("–".into(), |measured| format!("{measured:.2}")),
            measured.map_or("–".into(), |measured| format!("{:+.2}", measured - score).replace('-', "−")),
            measured.map_or("–".into(), same),
        ]
    };
    let rows: Vec<Vec<String>> = published
        .results
        .iter()
        .filter(|result| other.is_none_or(|other| result.on.is_some_and(|on| on.is(other))))
        .flat_map(|result| result.scores.iter().map(|(&metric, &score)| row(result, metric, score)))
        .collect();
    let title = format!("published in {}", published.paper);
    let header = [title.as_str(), "metric", "published", "measured", "difference", "the same, rounded"];
    (!rows.is_empty()).then(|| align_numbers(&header, &rows))
}

/// Half of the last digit that a row of a paper prints: its score with the most decimals tells, because a zero at the end
/// of a number is not kept.
fn rounding(result: &PublishedResult) -> f64 {
    let decimals = |score: &f64| printed(*score).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let decimals = result.scores.values().map(decimals).max().unwrap_or(0);
    format!("5e-{}", decimals + 1).parse().expect("a number")
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
        let text = published_text(&published, None, measured).unwrap();
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            words[0],
            [
                "published",
                "in",
                "ramzi2022",
                "metric",
                "published",
                "measured",
                "difference",
                "the",
                "same,",
                "rounded"
            ]
        );
        let has = |end: &[&str]| assert!(words.iter().any(|line| line.ends_with(end)), "{end:?} in\n{text}");
        has(&["H-AP", "42.8", "43.11", "+0.31", "no", "(±0.05)"]);
        has(&["ASI", "21.0", "–", "–", "–"]);
        has(&["product", "81.3", "80.00", "−1.30", "no", "(±0.05)"]);
        assert_eq!(published_text(&PublishedConfig { results: vec![], ..published }, None, measured), None);
    }

    #[test]
    fn a_score_on_other_data_is_measured_only_there() {
        let published: PublishedConfig = toml::from_str(
            "paper = 'ramzi2021'\nresults = [\n\
             { place = 'Table 1', row = 'one', scores = { ap = 50.0 } },\n\
             { place = 'Table 9', row = 'two', on = { kind = 'roxford5k', difficulty = 'hard' }, scores = { ap = 20.7 } },\n]",
        )
        .unwrap();
        let lines = |other: Option<&str>| -> Vec<String> {
            let other: Option<DataConfig> = other.map(|toml| toml::from_str(toml).unwrap());
            let text = published_text(&published, other.as_ref(), |_, _| Some(0.207)).unwrap_or_default();
            text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let own = lines(None);
        assert!(own.iter().any(|line| line.contains("one") && line.contains("20.70")), "{own:?}");
        assert!(own.iter().any(|line| line.ends_with("AP on roxford5k, hard 20.7 – – –")), "{own:?}");
        let data =
            |kind: &str, more: &str| format!("kind = '{kind}'\npath = 'x'\nlevels = ['landmark']\n{more}");
        let hard = lines(Some(&data("roxford5k", "difficulty = 'hard'")));
        assert!(hard.iter().any(|line| line.contains("20.7 20.70 +0.00 yes (±0.05)")), "{hard:?}");
        assert!(!hard.iter().any(|line| line.contains("one")), "{hard:?}");
        for other in [
            data("roxford5k", "difficulty = 'medium'"),
            data("rparis6k", "difficulty = 'hard'"),
            data("sop", ""),
        ] {
            assert_eq!(lines(Some(&other)), Vec::<String>::new());
        }
    }

    #[test]
    fn a_score_is_the_same_within_half_of_the_last_printed_digit() {
        let published: PublishedConfig = toml::from_str(
            "paper = 'ramzi2021'\nresults = [\n\
             { place = 'Table 1', row = 'one', scores = { h_ap = 70.6, ndcg = 71 } },\n\
             { place = 'Table 7', row = 'two', scores = { h_ap = 77.38, ndcg = 77.4 } },\n]",
        )
        .unwrap();
        let answers = |h_ap: f64, ndcg: f64| {
            let measured = |_: &PublishedResult, metric: Metric| {
                Some(if metric.entry().name == "h_ap" { h_ap } else { ndcg })
            };
            let text = published_text(&published, None, measured).unwrap();
            text.lines().filter(|line| line.contains("yes (")).map(str::to_owned).collect::<Vec<_>>()
        };
        let same = answers(0.7065, 0.77404);
        assert!(same.len() == 2 && same[0].contains("one") && same[0].ends_with("yes (±0.05)"), "{same:?}");
        assert!(same[1].contains("two") && same[1].ends_with("yes (±0.005)"), "{same:?}");
        assert_eq!(answers(0.70651, 0.77406), Vec::<String>::new());
    }
}
