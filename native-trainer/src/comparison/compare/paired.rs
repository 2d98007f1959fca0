//! Paired tests across seeds: whether a row is better than another, or could differ from it by chance.

use akin_base::problem::problem;
use akin_core::statistics::{FEWEST_PAIRS, paired_t_test};
use anyhow::Result;

use super::results::{Comparison, PairedTests, ResultRow, RowTest, Statistic};

/// Checks that there are enough seeds for a test.
pub fn check_seeds(seeds: usize) -> Result<()> {
    if seeds >= FEWEST_PAIRS {
        return Ok(());
    }
    Err(problem(
        format!("a paired test over {seeds} seeds says nothing"),
        format!(
            "give at least {FEWEST_PAIRS} seeds, for example `--seeds 0,1,2,3,4`, or leave out `--paired`"
        ),
    ))
}

/// The tests of every other row against the row of this name, in every column; none without such a row.
pub fn paired_tests(comparison: &Comparison, against: &str) -> Option<PairedTests> {
    let reference = comparison.rows.iter().find(|row| row.name == against)?;
    // The columns of a metric per level begin with the finest.
    let finest = comparison.columns.iter().find_map(|column| column.level.clone());
    let mut tests = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.name != against) {
        for (place, column) in comparison.columns.iter().enumerate() {
            let optimised =
                column.metric == row.optimises && (column.level.is_none() || column.level == finest);
            let differences = differences(row, reference, place);
            tests.push(RowTest {
                name: row.name.clone(),
                label: row.label.clone(),
                metric: column.metric,
                level: column.level.clone(),
                optimised,
                test: paired_t_test(&differences),
            });
        }
    }
    Some(PairedTests { against: reference.name.clone(), label: reference.label.clone(), tests })
}

/// The differences of two rows in a column, over the seeds that both have.
fn differences(row: &ResultRow, reference: &ResultRow, column: usize) -> Vec<f64> {
    let by_seed = |row: &ResultRow| -> Vec<(u64, f64)> {
        let values = |score: &Statistic| score.values.clone();
        let values = row.scores[column].as_ref().map(values).unwrap_or_default();
        // A score is missing for all seeds or for none: they are evaluated on the same images.
        row.seeds.iter().copied().zip(values).collect()
    };
    let others = by_seed(reference);
    let other = |seed: u64| others.iter().find(|(other, _)| *other == seed).map(|(_, value)| *value);
    by_seed(row).into_iter().filter_map(|(seed, value)| Some(value - other(seed)?)).collect()
}
