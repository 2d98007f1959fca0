//! The arguments of `akin eval`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::MetricArgs;
use crate::config::DeviceName;
use crate::progress::Progress;
use crate::run::Which;

/// Evaluate a run, or embeddings from .npy files.
///
/// Prints the metrics at each level and over all levels, in percent; `akin list metrics` lists them. Without a gallery
/// the queries rank each other, and no query ranks itself. A query without a positive at a level is left out of the
/// mean at that level.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The run directory that `akin train` wrote.
    #[arg(value_name = "RUN", required_unless_present = "queries", conflicts_with = "queries")]
    pub run: Option<PathBuf>,
    /// Evaluate the run's encoder as it was before training: with the weights in the config, or random ones. It has
    /// no head if embeddings are compared by cosine.
    #[arg(long, conflicts_with = "queries")]
    pub untrained: bool,
    /// The encoder of the run. With `--against`, of both runs.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["untrained", "queries"])]
    pub which: Which,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum, conflicts_with = "queries")]
    pub device: Option<DeviceName>,
    /// Embeddings of the queries: a two-dimensional .npy file of float16, float32 or float64.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "query_labels",
        requires = "levels",
        help_heading = "Embeddings from files"
    )]
    pub queries: Vec<PathBuf>,
    /// Labels of the queries: a CSV file with one column per level and one row per embedding, in the same order.
    #[arg(long, value_name = "FILE.csv", requires = "queries", help_heading = "Embeddings from files")]
    pub query_labels: Vec<PathBuf>,
    /// Embeddings of the gallery, if it is not the queries.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "queries",
        requires = "gallery_labels",
        help_heading = "Embeddings from files"
    )]
    pub gallery: Vec<PathBuf>,
    /// Labels of the gallery, as for the queries.
    #[arg(long, value_name = "FILE.csv", requires = "gallery", help_heading = "Embeddings from files")]
    pub gallery_labels: Vec<PathBuf>,
    /// A column of both CSV files that identifies an item, such as the path of its picture. Give it if the queries
    /// are also in the gallery, so that no query ranks itself.
    #[arg(long, value_name = "COLUMN", requires = "gallery", help_heading = "Embeddings from files")]
    pub path_column: Option<String>,
    /// The columns of the levels, coarse to fine.
    #[arg(
        long,
        value_name = "COARSE,…,FINE",
        value_delimiter = ',',
        requires = "queries",
        help_heading = "Embeddings from files"
    )]
    pub levels: Vec<String>,
    /// Identify a class by its full label path: the same name under two parents is then two classes.
    #[arg(long, requires = "queries", help_heading = "Embeddings from files")]
    pub qualify: bool,

    /// Follow the protocol of DyML: evaluate each label column separately, then average.
    ///
    /// With one set, each column of `--levels`, or each level of the run, is a label set (DyML-Product). With several
    /// sets that have one label column each (DyML-Vehicle, DyML-Animal), give `--queries`, `--query-labels`,
    /// `--gallery` and `--gallery-labels` once per set, in the same order, with `--path-column`; `--levels` names the
    /// column of each set, or one column for all.
    #[arg(long, conflicts_with_all = ["against", "per_query", "qualify", "relevance", "decomposability_gap"])]
    pub dyml: bool,

    /// Compare with this run on the same queries. Prints for each metric both means, their difference, and p of a
    /// paired permutation test: the probability of a difference at least as large if the runs were equal.
    #[arg(long, value_name = "RUN", conflicts_with = "queries")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    pub metrics: MetricArgs,

    /// How to show progress.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: Progress,
    /// Print the whole report as JSON, in full precision.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write the scores of every query to a CSV file.
    #[arg(long, value_name = "FILE.csv", help_heading = "Output")]
    pub per_query: Option<PathBuf>,
    /// Replace the file of `--per-query` if it exists.
    #[arg(long, requires = "per_query", help_heading = "Output")]
    pub overwrite: bool,
}
