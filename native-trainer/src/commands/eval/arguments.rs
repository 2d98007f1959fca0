//! The arguments of `akin eval`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::MetricArgs;
use crate::config::DeviceName;
use crate::progress::Progress;

/// Measure a run, or embeddings made elsewhere.
///
/// Prints the metrics of each level and those over all levels, shares in percent; `akin list metrics`
/// names them. Without a gallery the queries rank each other, each leaving itself out. A query that has
/// nothing to find at a level is left out of that level's mean.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// A run directory that `akin train` left.
    #[arg(value_name = "RUN", required_unless_present = "queries", conflicts_with = "queries")]
    pub run: Option<PathBuf>,
    /// Measure what the run started from instead: the features of its backbone with the weights that
    /// the config names, or random ones, without a head.
    #[arg(long, conflicts_with = "queries")]
    pub untrained: bool,
    /// Where tensors are computed, instead of the run's run.device.
    #[arg(long, value_enum, conflicts_with = "queries")]
    pub device: Option<DeviceName>,
    /// Embeddings of the queries: a two-dimensional .npy file of float16, float32 or float64.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "query_labels",
        requires = "levels",
        help_heading = "Embeddings made elsewhere"
    )]
    pub queries: Vec<PathBuf>,
    /// Their labels: a CSV file with a column per level, and a row per embedding in the same order.
    #[arg(long, value_name = "FILE.csv", requires = "queries", help_heading = "Embeddings made elsewhere")]
    pub query_labels: Vec<PathBuf>,
    /// Embeddings to rank, if not the queries themselves.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "queries",
        requires = "gallery_labels",
        help_heading = "Embeddings made elsewhere"
    )]
    pub gallery: Vec<PathBuf>,
    /// Their labels.
    #[arg(long, value_name = "FILE.csv", requires = "gallery", help_heading = "Embeddings made elsewhere")]
    pub gallery_labels: Vec<PathBuf>,
    /// The queries are in the gallery, too: a column of both CSV files by which to find each there, such
    /// as the path of its picture, so that it is left out of its own ranking.
    #[arg(long, value_name = "COLUMN", requires = "gallery", help_heading = "Embeddings made elsewhere")]
    pub path_column: Option<String>,
    /// The columns of the levels, coarse to fine.
    #[arg(
        long,
        value_name = "COARSE,…,FINE",
        value_delimiter = ',',
        requires = "queries",
        help_heading = "Embeddings made elsewhere"
    )]
    pub levels: Vec<String>,
    /// A class is its whole label path, so that equal names under two parents are two classes.
    #[arg(long, requires = "queries", help_heading = "Embeddings made elsewhere")]
    pub qualify: bool,

    /// Measure by DyML's protocol: every label column by itself, then the average.
    ///
    /// Of one set, each column of `--levels`, or each level of the run, is a label set (DyML-Product).
    /// Of several sets with a label column each (DyML-Vehicle, -Animal), give `--queries`,
    /// `--query-labels`, `--gallery` and `--gallery-labels` once per set, in the same order, with
    /// `--path-column`, and in `--levels` the column of each set, or one for all.
    #[arg(long, conflicts_with_all = ["against", "per_query", "qualify", "relevance", "decomposability_gap"])]
    pub dyml: bool,

    /// Compare with this run over the same queries, metric by metric: both means, their difference,
    /// and p of a paired permutation test, the chance of a difference as large if the two were equal.
    #[arg(long, value_name = "RUN", conflicts_with = "queries")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    pub metrics: MetricArgs,

    /// How progress is told.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: Progress,
    /// Print the whole report as JSON, in full precision.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write every query's own scores to a CSV file.
    #[arg(long, value_name = "FILE.csv", help_heading = "Output")]
    pub per_query: Option<PathBuf>,
}
