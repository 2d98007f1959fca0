//! Evaluates the embeddings of four queries against a gallery of six items, and prints the report.
//!
//! The nearest item is of the query's kind for every query, and of its variety for three of four, so that R@1 is 1.00
//! for the kind and 0.75 for the variety. H-AP is 0.96. Run it with
//!
//! ```text
//! cargo run -p akin-core --example evaluate_two_sets
//! ```

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate};
use akin_core::metrics::Metric;
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};

/// [6, 2], row after row, as a `.npy` file holds them: unit vectors at 0°, 20°, 90°, 110°, 180° and 200°.
const GALLERY: [f32; 12] = [1.0, 0.0, 0.940, 0.342, 0.0, 1.0, -0.342, 0.940, -1.0, 0.0, -0.940, -0.342];
const GALLERY_LABELS: [[&str; 2]; 6] = [
    ["apple", "gala"],
    ["apple", "fuji"],
    ["pear", "kaiser"],
    ["pear", "conference"],
    ["fig", "black"],
    ["fig", "white"],
];

/// [4, 2]: unit vectors at 2°, 12°, 92° and 198°.
const QUERIES: [f32; 8] = [0.999, 0.035, 0.978, 0.208, -0.035, 0.999, -0.951, -0.309];
/// The second query is nearer to the fuji at 20° than to the gala at 0°.
const QUERY_LABELS: [[&str; 2]; 4] =
    [["apple", "gala"], ["apple", "gala"], ["pear", "kaiser"], ["fig", "white"]];

fn main() -> akin_core::Result<()> {
    let report = report()?;
    println!("{} queries, each ranking {} items", report.queries, report.ranked);
    for level in 0..=report.levels.len() {
        let name = if level == 0 { "all levels" } else { &report.levels[level - 1].name };
        for (metric, value) in report.at(level).scores.iter() {
            println!("{name:10}  {:4}  {:.2}", metric.label(), value.expect("every query has positives"));
        }
    }
    Ok(())
}

/// H-AP over all levels and R@1 at each.
pub(crate) fn report() -> akin_core::Result<Report> {
    // One taxonomy for both sets, so that equal names get equal class ids.
    let levels = ["kind", "variety"].map(String::from);
    let rows: Vec<Vec<&str>> = GALLERY_LABELS.iter().chain(&QUERY_LABELS).map(|row| row.to_vec()).collect();
    let (_, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name)?;
    let items: Vec<usize> = (0..labels.len()).collect();
    let (gallery_items, query_items) = items.split_at(GALLERY_LABELS.len());
    let [gallery_labels, query_labels]: [Labels; 2] =
        [gallery_items, query_items].map(|set| labels.select(set));

    let gallery = Embeddings::new(2, GALLERY.to_vec())?;
    let queries = Embeddings::new(2, QUERIES.to_vec())?;
    let config =
        EvaluationConfig { metrics: ["h_ap", "recall@1"].map(Metric::named).to_vec(), ..Default::default() };
    evaluate(
        &levels,
        Labelled { embeddings: &queries, labels: &query_labels },
        Some(Labelled { embeddings: &gallery, labels: &gallery_labels }),
        &config,
    )
}
