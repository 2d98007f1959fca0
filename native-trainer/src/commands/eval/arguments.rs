//! The arguments of `akin eval`.

use std::path::PathBuf;

use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_core::random::stream;
use akin_core::taxonomy::Labels;
use akin_core::unknown::cut_at_random;
use anyhow::Result;
use clap::Args;

use super::shard::Shard;
use crate::commands::arguments::MetricArgs;
use crate::commands::pretrained::PretrainedArgs;
use crate::config::{DeviceName, KinshipSource};
use crate::runs::run::Which;

/// What the labels of files have in place of a tree.
#[derive(Debug, Args)]
#[group(multiple = false, conflicts_with_all = [
    "qualify", "cut_labels", "shard", "dyml", "certainty", "junk_column", "decomposability_gap",
])]
pub struct KinshipArgs {
    /// The text between the labels of a cell that holds several, such as `;` in `fruit;vegetable`. The first labels of a
    /// row form a label path, and so do the second; a cell with one label belongs to all paths.
    #[arg(long, value_name = "TEXT", requires = "queries", help_heading = "Embeddings from files")]
    pub label_separator: Option<String>,
    /// A CSV file with the columns `class` and `parent`, and a row for each parent of a class, which may have several.
    /// `--levels` then names one column, the class, and the levels are the depths below the root.
    #[arg(long, value_name = "FILE", requires = "queries", help_heading = "Embeddings from files")]
    pub parents: Option<PathBuf>,
    /// A CSV file with the relevance of each pair of classes in place of a tree: a row and a column for each class.
    /// `--levels` then names one column, the class, and the levels are the different values above 0.
    #[arg(long, value_name = "FILE", requires = "queries", help_heading = "Embeddings from files")]
    pub relevance_matrix: Option<PathBuf>,
}

impl KinshipArgs {
    /// What there is in place of a tree, if there is something.
    ///
    /// # Errors
    ///
    /// An empty separator, and not one column of classes.
    pub fn source(&self, columns: &[String]) -> Result<Option<KinshipSource>> {
        let Self { label_separator, parents, relevance_matrix } = self;
        if label_separator.as_ref().is_some_and(String::is_empty) {
            return Err(problem(
                "`--label-separator` is empty",
                "give the text between two labels, such as `;`",
            ));
        }
        let file = parents.clone().map(KinshipSource::Parents);
        let file = file.or_else(|| relevance_matrix.clone().map(KinshipSource::Matrix));
        if file.is_some() && columns.len() != 1 {
            return Err(problem(
                format!("`--levels` names {} columns, and a class stands in one", columns.len()),
                "name the column of the classes; the file says how they are related",
            ));
        }
        Ok(file.or_else(|| label_separator.clone().map(KinshipSource::Separator)))
    }
}

/// Evaluate a run, a gallery, a pretrained backbone, or embeddings from files.
///
/// Prints the metrics at each level and over all levels, in percent; `akin list metrics` lists them. Without a gallery
/// the queries rank each other, and no query ranks itself. A query without a positive at a level is left out of the
/// mean at that level.
#[derive(Debug, Args)]
#[command(override_usage = "akin eval [OPTIONS] <RUN|CONFIG>\n       \
    akin eval [OPTIONS] <GALLERY> [--queries <GALLERY|FILE>]\n       \
    akin eval [OPTIONS] --queries <FILE> [--query-labels <FILE>] --levels <COARSE,…,FINE>\n       \
    akin eval [OPTIONS] --merge <PART.json>...")]
pub struct EvalArgs {
    /// The run directory that `akin train` wrote. Its data are compared with those of the training by the names, sizes,
    /// labels and splits of the images; `akin verify` also compares what is in the images.
    ///
    /// Or a config, or the name of a recipe such as `hier/pretrained/cub-deit`: then the backbone of the config is evaluated
    /// with its published weights, without a head and without training. Only `[data]`, `[split]`, `[model]` and `[eval]`
    /// are needed.
    ///
    /// Or a gallery that `akin index` wrote: each picture with a label asks all others, or those of `--queries` ask.
    #[arg(value_name = "RUN|CONFIG|GALLERY", required_unless_present_any = ["queries", "merge"])]
    pub run: Option<PathBuf>,
    /// Evaluate the run's encoder as it was before training: with the weights in the config, or random ones. It has
    /// no head if embeddings are compared by cosine.
    #[arg(long, conflicts_with = "queries")]
    pub untrained: bool,
    /// The encoder of the run. With `--against`, of both runs.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["untrained", "queries"])]
    pub which: Which,
    /// The device to compute on, instead of the config's `run.device`.
    ///
    /// For files and galleries it is the device that their scores are added up on [default: cpu]. A GPU gives the
    /// scores of the CPU, digit for digit: it adds up in the same order. Embeddings with numbers below 2⁻³⁹ beside 0
    /// are left to the CPU, and so are Hamming distances.
    #[arg(long, value_enum, conflicts_with_all = ["junk_column", "group_column"])]
    pub device: Option<DeviceName>,
    /// Evaluate on the data set of this config's section `[data]` instead of the run's, for example on one that has no
    /// training split. With `--against`, both runs.
    #[arg(long, value_name = "CONFIG", conflicts_with = "queries")]
    pub data: Option<PathBuf>,
    /// Embeddings of the queries: a matrix in `.npy`, `.npz` or `.safetensors`, a column of lists in Parquet or JSON lines,
    /// a table of numbers in CSV or TSV, or `-` for any of these from standard input. Or a gallery, which has its labels.
    ///
    /// Numbers are float64, float32, float16, bfloat16, int8 or bool. int8 numbers stand for number · scale + offset, from the
    /// arrays `scale` and `offset` beside them, if there are any. With `--similarity hamming` bytes without a sign are eight
    /// bits each, as `numpy.packbits` writes them.
    #[arg(long, value_name = "FILE", help_heading = "Embeddings from files")]
    pub queries: Vec<PathBuf>,
    /// Labels of the queries: a CSV, TSV or Parquet file, or JSON lines, with one column per level and one row per
    /// embedding, in the same order. Without it, they are in columns beside the embeddings.
    #[arg(long, value_name = "FILE", requires = "queries", help_heading = "Embeddings from files")]
    pub query_labels: Vec<PathBuf>,
    /// Embeddings of the gallery, if it is not the queries.
    #[arg(
        long,
        value_name = "FILE",
        requires = "queries",
        conflicts_with = "run",
        help_heading = "Embeddings from files"
    )]
    pub gallery: Vec<PathBuf>,
    /// Labels of the gallery, as for the queries.
    #[arg(long, value_name = "FILE", requires = "gallery", help_heading = "Embeddings from files")]
    pub gallery_labels: Vec<PathBuf>,
    /// The array, tensor, column or field with the embeddings, where a file has several [default: `embeddings`,
    /// `embedding`, or the only one]. Of numbers in columns e0, e1, … it is `e`.
    #[arg(long, value_name = "NAME", requires = "queries", help_heading = "Embeddings from files")]
    pub embedding_column: Option<String>,
    /// A column beside the labels of both that identifies an item, such as the path of its picture. Give it if the queries
    /// are also in the gallery, so that no query ranks itself.
    #[arg(long, value_name = "COLUMN", requires = "gallery", help_heading = "Embeddings from files")]
    pub path_column: Option<String>,
    /// A column beside the labels of the gallery with junk: for a gallery item, the finest classes whose queries leave it
    /// out of their rankings, separated by semicolons. The gallery has to fit into memory.
    #[arg(
        long,
        value_name = "COLUMN",
        requires = "gallery",
        conflicts_with_all = ["path_column", "shard", "dyml", "decomposability_gap", "hyperbolicity"],
        help_heading = "Embeddings from files"
    )]
    pub junk_column: Option<String>,
    /// A column beside the labels with the group of each item, such as a burst, a camera or a product: a query leaves the
    /// items of its own group out of its ranking, itself among them. Embeddings have to fit into memory.
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with_all = ["path_column", "junk_column", "shard", "dyml", "decomposability_gap", "hyperbolicity"],
        help_heading = "Embeddings from files"
    )]
    pub group_column: Option<String>,
    /// The columns of the levels, coarse to fine [default: those of a gallery].
    #[arg(long, value_name = "COARSE,…,FINE", value_delimiter = ',', help_heading = "Embeddings from files")]
    pub levels: Vec<String>,
    /// Identify a class by its full label path: the same name under two parents is then two classes.
    #[arg(long, requires = "queries", help_heading = "Embeddings from files")]
    pub qualify: bool,
    #[command(flatten)]
    pub kinship: KinshipArgs,

    /// Memory for the rankings of the queries that are ranked at once [default: as much as the numbers of the gallery take,
    /// but from 256 to 1,024]. The gallery is read once for each such group of queries, so more is quicker for a large
    /// gallery. No result depends on it.
    #[arg(long, value_name = "MIB", requires = "queries", help_heading = "Embeddings from files")]
    pub memory: Option<usize>,

    /// Follow the protocol of DyML: evaluate each label column separately, then average.
    ///
    /// With one set, each column of `--levels`, or each level of the run, is a label set (DyML-Product). With several
    /// sets that have one label column each (DyML-Vehicle, DyML-Animal), give `--queries`, `--query-labels`,
    /// `--gallery` and `--gallery-labels` once per set, in the same order, with `--path-column`; `--levels` names the
    /// column of each set, or one column for all.
    #[arg(long, conflicts_with_all = ["against", "per_query", "qualify", "relevance", "decomposability_gap", "hyperbolicity"])]
    pub dyml: bool,

    #[command(flatten)]
    pub cut: CutArgs,

    /// Compare with this run on the same queries. Prints for each metric both means, their difference, and p of a
    /// paired permutation test: the probability of a difference at least as large if the runs were equal.
    #[arg(long, value_name = "RUN", conflicts_with = "queries")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    pub pretrained: PretrainedArgs,

    #[command(flatten)]
    pub metrics: MetricArgs,

    /// Score only this share of the queries, for example `3/16`, and write the scores to `--out`. Each shard can run on
    /// a machine of its own; `--merge` gives the report of all. A part of the same evaluation that is there is kept.
    #[arg(
        long,
        value_name = "NUMBER/COUNT",
        requires = "queries",
        requires = "out",
        conflicts_with_all = ["dyml", "per_query", "json", "decomposability_gap", "hyperbolicity"],
        help_heading = "Shards"
    )]
    pub shard: Option<Shard>,
    /// Where `--shard` writes its part.
    #[arg(long, value_name = "PART.json", requires = "shard", group = "written", help_heading = "Shards")]
    pub out: Option<PathBuf>,
    /// Print the report of all these parts. It equals the report without shards, digit for digit.
    #[arg(
        long,
        value_name = "PART.json",
        num_args = 1..,
        conflicts_with_all = ["run", "queries", "shard", "dyml", "against", "untrained", "device", "which", "MetricArgs", "PretrainedArgs"],
        help_heading = "Shards"
    )]
    pub merge: Vec<PathBuf>,

    /// How to show progress.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: Progress,
    /// Print the whole report as JSON, in full precision.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Also print the scores of each class of this level, the worst first, and their macro average: the mean over classes of
    /// the mean over their queries.
    #[arg(
        long,
        value_name = "LEVEL",
        conflicts_with_all = ["dyml", "against", "merge", "shard"],
        help_heading = "Output"
    )]
    pub by_class: Option<String>,
    /// Write the scores of every query to a CSV file.
    #[arg(long, value_name = "FILE.csv", group = "written", help_heading = "Output")]
    pub per_query: Option<PathBuf>,
    /// Write the curves of H-precision, H-recall and mAHP at the ranks 1, 2, 5, 10, 20, 50 … and the last one to a CSV
    /// file, and print them.
    #[arg(
        long,
        value_name = "FILE.csv",
        group = "written",
        conflicts_with_all = ["dyml", "against", "merge", "shard"],
        help_heading = "Output"
    )]
    pub curves: Option<PathBuf>,
    /// Also measure how far the answers hold, as `akin classify` gives them: at promises of 80, 90, 95 and 99 %, the share of
    /// right answers and how deep they go, beside plain votes. The gallery has to fit into memory.
    #[arg(long, conflicts_with_all = ["dyml", "against", "merge", "shard", "junk_column"], help_heading = "Output")]
    pub certainty: bool,
    /// Replace the file of `--per-query`, `--curves` or `--out` if it exists.
    #[arg(long, requires = "written", help_heading = "Output")]
    pub overwrite: bool,
}

/// How labels are cut, to see what scores would say of labels with holes.
#[derive(Clone, Copy, Debug, Args)]
pub struct CutArgs {
    /// Cut this share of the labels, from 0 to 1: each of these items is known only down to a level drawn at random. The
    /// estimates and bounds can then be compared with the scores of the full labels.
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = share,
        conflicts_with_all = ["dyml", "against", "merge", "shard", "junk_column", "decomposability_gap"],
        help_heading = "Labels with holes"
    )]
    cut_labels: Option<f64>,
    /// The seed of the cuts.
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 0,
        requires = "cut_labels",
        help_heading = "Labels with holes"
    )]
    cut_seed: u64,
}

impl CutArgs {
    /// The labels of a set, with the cuts. Each set of one evaluation has its own number.
    pub fn apply(&self, labels: Labels, set: u64) -> Labels {
        match self.cut_labels {
            Some(share) => cut_at_random(&labels, share, &mut stream(self.cut_seed, "cut labels", &[set])),
            None => labels,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".into())
}
