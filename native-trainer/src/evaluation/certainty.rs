//! How far the answers of a gallery hold, measured on queries whose labels are known.

use akin_base::quantities::count;
use akin_base::text_table::{align_numbers, percent};
use akin_core::certainty::{BestScores, Calibration, Case, LeaveOneOut, Outcome, Promise, cases};
use akin_core::evaluate::Labelled;
use akin_core::similarity::Similarity;
use anyhow::Result;
use serde_json::{Value, json};

/// The promises of the table, in percent.
const PROMISES: [f64; 4] = [80.0, 90.0, 95.0, 99.0];

/// The answers to the queries, and what is known of the gallery.
pub struct Certainty {
    levels: Vec<String>,
    cases: Vec<Case>,
    /// Whether the queries are the gallery's own items, each of which was left out meanwhile.
    own: bool,
    calibration: Calibration,
    best_scores: Option<BestScores>,
}

/// The answers at one promise by one method.
struct Row {
    promise: f64,
    method: String,
    outcome: Outcome,
}

impl Certainty {
    /// Asks the gallery with the queries, or with its own items if there are no queries of their own. `None` for a gallery of
    /// fewer than two items.
    ///
    /// # Errors
    ///
    /// Embeddings that the similarity is not defined for.
    pub fn measure(
        levels: &[String],
        queries: Option<Labelled>,
        gallery: Labelled,
        similarity: Similarity,
    ) -> Result<Option<Self>> {
        let own = LeaveOneOut::new(gallery.embeddings, gallery.labels, similarity)?;
        let Some(calibration) = own.calibration() else { return Ok(None) };
        let best_scores = own.best_scores();
        let asked = queries.map(|queries| {
            cases((queries.embeddings, queries.labels), (gallery.embeddings, gallery.labels), similarity)
        });
        let is_own = asked.is_none();
        let cases = asked.transpose()?.unwrap_or(own.cases);
        Ok(Some(Self { levels: levels.to_vec(), cases, own: is_own, calibration, best_scores }))
    }

    /// The answers at a promise.
    pub fn outcome(&self, promise: Promise) -> Outcome {
        Outcome::new(&self.cases, &self.calibration, self.best_scores.as_ref(), promise)
    }

    /// The answers at promises of 50 … 99.9 %, each with its promise.
    ///
    /// # Errors
    ///
    /// None for these promises.
    pub fn curve(&self) -> Result<Vec<(f64, Outcome)>> {
        let promises = (50..=99).map(f64::from).chain([99.5, 99.9]);
        promises.map(|promise| Ok((promise, self.outcome(Promise::new(promise / 100.0)?)))).collect()
    }

    /// At each promise: the answers with certainties, those of plain votes whose share reaches the promise, and those of
    /// plain votes at the finest level at which all of them together keep the promise.
    fn rows(&self) -> Result<Vec<Row>> {
        let depth = self.levels.len();
        let mut rows = Vec::new();
        for promise in PROMISES {
            let share = promise / 100.0;
            let row = |method: &str, outcome| Row { promise, method: method.to_owned(), outcome };
            rows.push(row("certainty", self.outcome(Promise::new(share)?)));
            rows.push(row("votes", Outcome::of_votes(&self.cases, depth, share)));
            let fixed = |level: usize| Outcome::of_level(&self.cases, depth, level);
            let keeps = |level: &usize| fixed(*level).right_share().is_some_and(|right| right >= share);
            match (1..=depth).rev().find(keeps) {
                Some(level) => rows.push(row(&format!("always {}", self.levels[level - 1]), fixed(level))),
                None => rows.push(row("never", fixed(0))),
            }
        }
        Ok(rows)
    }

    /// The answers as a table.
    ///
    /// # Errors
    ///
    /// None for these promises.
    pub fn text(&self) -> Result<String> {
        let levels = self.levels.iter().map(String::as_str);
        let header: Vec<&str> = ["promise", "answers by", "right"]
            .into_iter()
            .chain(levels)
            .chain(["mean level", "nothing like it"])
            .collect();
        let cells = |Row { promise, method, outcome }: &Row| {
            let mut cells = vec![format!("{promise}"), method.clone(), percent(outcome.right_share())];
            cells.extend((1..=self.levels.len()).map(|level| percent(Some(outcome.coverage(level)))));
            cells.push(format!("{:.2}", outcome.mean_level()));
            cells.push(percent(Some(outcome.unlike as f64 / outcome.queries.max(1) as f64)));
            cells
        };
        let rows: Vec<Vec<String>> = self.rows()?.iter().map(cells).collect();
        let who = match self.own {
            true => format!(
                "The gallery's own {} items, each left out meanwhile; the thresholds were chosen on the same answers.",
                count(self.cases.len())
            ),
            false => format!(
                "{} queries; the thresholds were chosen on the answers to the {} items of the gallery.",
                count(self.cases.len()),
                count(self.calibration.items)
            ),
        };
        Ok(format!(
            "{}\n\n{who} Right: of the answers. Below each level: the share of the queries whose answer goes at least there. \
             Answers by certainty: as `akin classify` gives them; by votes: the share of votes reaches the promise; always: plain votes at the \
             finest level that keeps it.",
            align_numbers(&header, &rows)
        ))
    }

    /// The answers for programs.
    ///
    /// # Errors
    ///
    /// None for these promises.
    pub fn json(&self) -> Result<Value> {
        let row = |Row { promise, method, outcome }: &Row| {
            json!({
                "promise": promise / 100.0, "answers_by": method, "queries": outcome.queries,
                "reached": outcome.reached, "judged": outcome.judged, "right": outcome.right,
                "nothing_like_it": outcome.unlike,
            })
        };
        let rows: Vec<Value> = self.rows()?.iter().map(row).collect();
        Ok(json!({ "levels": self.levels, "leave_one_out": self.own, "rows": rows }))
    }
}
