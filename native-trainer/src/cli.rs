//! The command line: what can be asked for. What happens then is in [`commands`].

use std::path::PathBuf;

use akin_core::evaluate::{Decomposability, EvaluationConfig};
use akin_core::metrics::Metric;
use akin_core::ranking::TiePolicy;
use akin_core::relevance::Relevance;
use akin_core::similarity::Similarity;
use akin_core::statistics::Bootstrap;
use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::commands;
use crate::compare::print::Format;
use crate::config::DeviceName;

/// Train, evaluate and show image retrieval that knows a taxonomy.
///
/// akin learns image embeddings that respect a label tree, measures them with hierarchical metrics, and
/// serves a page in which you can ask a gallery with a picture. Start with `akin demo`.
///
/// Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 error, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "akin", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(DemoArgs),
    Train(TrainArgs),
    Resume(ResumeArgs),
    Compare(CompareArgs),
    /// Say what there is by name: losses, metrics, recipes, sources.
    #[command(subcommand)]
    List(ListCommand),
    Eval(EvalArgs),
    Embed(EmbedArgs),
    /// Look at a data set before training on it.
    #[command(subcommand)]
    Data(DataCommand),
    Export(ExportArgs),
    Serve(ServeArgs),
    Page(PageArgs),
    Biomorphs(BiomorphsArgs),
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> Result<()> {
        match self.command {
            Command::Demo(args) => commands::demo::run(args),
            Command::Train(args) => commands::train::run(args),
            Command::Resume(args) => commands::resume::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::List(what) => commands::list::run(what),
            Command::Eval(args) => commands::eval::run(args),
            Command::Embed(args) => commands::embed::run(args),
            Command::Data(DataCommand::Check(args)) => commands::data::check(args),
            Command::Export(args) => commands::export::run(args),
            Command::Serve(args) => commands::serve::run(args),
            Command::Page(args) => commands::page::run(args),
            Command::Biomorphs(args) => commands::biomorphs::run(args),
        }
    }
}

/// How progress is told on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// Bars on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A line now and then.
    Plain,
    /// Nothing but warnings and errors.
    None,
}

/// Draw creatures, train two models on them, and show both in the browser.
///
/// Generates biomorphs, trains the same encoder twice from the same start, with NormSoftmax on the finest
/// labels and with HAPPIER on the whole taxonomy, prints both rows of the table, puts both into one
/// bundle, and serves the page. Needs no download and no GPU.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where data, runs and bundle go.
    #[arg(long, value_name = "DIR", default_value = "akin-demo")]
    pub out: PathBuf,
    /// From this follow creatures, first weights and batches.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Stop when the bundle is written, without building and serving the page.
    #[arg(long)]
    pub no_serve: bool,
    /// Replace what an earlier demo left in DIR.
    #[arg(long)]
    pub overwrite: bool,
    /// Where tensors are computed.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Train a model as a config says.
///
/// Leaves a run directory with the resolved config, a checkpoint per epoch, a log in JSON lines and a
/// report. The first Ctrl-C finishes the step, saves a checkpoint and stops; a second one aborts.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// A TOML file, or the name of a recipe: `akin list recipes`.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The run directory, instead of run.out.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The seed, instead of run.seed.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Replace the run that an earlier training left there.
    #[arg(long)]
    pub overwrite: bool,
    /// Where tensors are computed, instead of run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Continue a training that was stopped.
///
/// Goes on from the last checkpoint with the very same sequence of batches.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run directory.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Where tensors are computed, instead of the run's run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Train many losses on the same data and set them side by side.
///
/// Every loss has the same data, encoder, budget and start. Each training is a process of its own; what
/// is done is kept, so that the same command continues after Ctrl-C. Prints mean ± deviation over the
/// seeds, and leaves the table in Markdown, LaTeX, CSV and JSON.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A TOML file with a section [compare], or the name of a recipe.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The rows, instead of those of the config; `all` stands for every loss. One that does not fit the
    /// head of the config has a head of its own kind.
    #[arg(long, value_name = "LOSS,…", value_delimiter = ',')]
    pub losses: Vec<String>,
    /// The seeds, instead of those of the config.
    #[arg(long, value_name = "SEED,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seeds: Vec<u64>,
    #[command(flatten)]
    pub sets: SetArgs,
    /// Where runs and tables go [default: compare/NAME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Train anew what is there with another config.
    #[arg(long)]
    pub overwrite: bool,
    /// End with 1 unless every loss beats the untrained encoder by the metric that it optimises.
    #[arg(long)]
    pub check: bool,
    /// How the table is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Where tensors are computed, instead of run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// What training can minimise: the `kind` of [loss].
    Losses(ListArgs),
    /// What picks pairs and triplets for a loss: its `miner`.
    Miners(ListArgs),
    /// What evaluation can report.
    Metrics(ListArgs),
    /// Configs that are built in.
    Recipes(ListRecipesArgs),
    /// The papers that losses and metrics come from.
    Sources(ListSourcesArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ListRecipesArgs {
    /// Print this recipe, to make your own of it.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub struct ListSourcesArgs {
    /// Print a BibTeX entry for each.
    #[arg(long, conflicts_with = "json")]
    pub bibtex: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

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

/// How rankings are made and scored; what is not given is as in the run, or the default.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricArgs {
    /// What to report, as `akin list metrics` names it [default: h_ap,ndcg,asi,ap,map_at_r,recall@1;
    /// with --dyml: asi,ap,recall@1,recall@10,recall@20].
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    pub metrics: Vec<Metric>,
    /// Print 95 % intervals: percentiles of the means of this many bootstrap resamples of the queries (of
    /// the batches, for the decomposability gap); 1000 is usual.
    #[arg(long, value_name = "RESAMPLES")]
    pub bootstrap: Option<usize>,
    /// Print how much better AP looks in random batches of this many items than over the whole set.
    #[arg(long, value_name = "BATCH")]
    pub decomposability_gap: Option<usize>,
    /// What ranks the gallery: cosine, euclidean, dot, hamming, or `poincare:CURVATURE`
    /// [default: the run's own, or cosine].
    #[arg(long, value_name = "NAME", value_parser = similarity)]
    pub similarity: Option<Similarity>,
    /// Equal scores: in gallery order, not counted against each other, best case, worst case
    /// [default: stable].
    #[arg(long, value_parser = one_of::<TiePolicy>(&["stable", "strict", "optimistic", "pessimistic"]))]
    pub ties: Option<TiePolicy>,
    /// Count the query itself among the items of its class, as most published figures do.
    #[arg(long)]
    pub count_query: bool,
    /// How much a shared level is worth: `hierarchical_ap` or `plain`, with an exponent if it is not 1
    /// (`plain:2`), or `weighted_ap:W1,…,WL` [default: hierarchical_ap].
    #[arg(long, value_name = "KIND[:NUMBERS]", value_parser = relevance)]
    pub relevance: Option<Relevance>,
}

fn similarity(text: &str) -> Result<Similarity, String> {
    let curvature = text.strip_prefix("poincare:").and_then(|number| number.parse::<f64>().ok());
    match (text, curvature) {
        ("cosine", _) => Ok(Similarity::Cosine),
        ("euclidean", _) => Ok(Similarity::Euclidean),
        ("dot", _) => Ok(Similarity::Dot),
        ("hamming", _) => Ok(Similarity::Hamming),
        (_, Some(curvature)) if curvature > 0.0 && curvature.is_finite() => {
            Ok(Similarity::Poincare { curvature })
        }
        _ => {
            Err("write cosine, euclidean, dot, hamming or poincare:CURVATURE, for example poincare:0.1"
                .into())
        }
    }
}

impl MetricArgs {
    /// Puts what was given over a config.
    pub fn apply(&self, config: &mut EvaluationConfig) {
        if !self.metrics.is_empty() {
            config.metrics.clone_from(&self.metrics);
        }
        if let Some(resamples) = self.bootstrap {
            config.bootstrap = Some(Bootstrap { resamples, ..config.bootstrap.unwrap_or_default() });
        }
        if let Some(batch) = self.decomposability_gap {
            let seed = config.decomposability_gap.map_or(0, |settings| settings.seed);
            config.decomposability_gap = Some(Decomposability { batch, seed });
        }
        config.similarity = self.similarity.unwrap_or(config.similarity);
        config.ties = self.ties.unwrap_or(config.ties);
        config.count_query |= self.count_query;
        if let Some(relevance) = &self.relevance {
            config.relevance = relevance.clone();
        }
    }
}

/// Reads one of the names that serde knows a unit variant by.
fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &'static [&str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(|name| T::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name)))
}

/// `plain`, `plain:2`, `weighted_ap:0.2,0.3,0.5`.
fn relevance(text: &str) -> Result<Relevance, String> {
    let (kind, numbers) = text.split_once(':').unwrap_or((text, ""));
    let numbers: Vec<f64> = numbers
        .split(',')
        .filter(|number| !number.is_empty())
        .map(|number| number.trim().parse().map_err(|_| format!("`{number}` is not a number")))
        .collect::<Result<_, _>>()?;
    match (kind, &numbers[..]) {
        ("hierarchical_ap", []) => Ok(Relevance::HierarchicalAp { alpha: 1.0 }),
        ("hierarchical_ap", &[alpha]) => Ok(Relevance::HierarchicalAp { alpha }),
        ("plain", []) => Ok(Relevance::Plain { alpha: 1.0 }),
        ("plain", &[alpha]) => Ok(Relevance::Plain { alpha }),
        ("weighted_ap", [_, ..]) => Ok(Relevance::WeightedAp { weights: numbers }),
        _ => {
            Err("write hierarchical_ap, hierarchical_ap:ALPHA, plain, plain:ALPHA or weighted_ap:W1,…,WL"
                .into())
        }
    }
}

/// Write the embeddings of images to a .npy file.
///
/// Together with a CSV of labels, `akin eval --queries` measures such files.
#[derive(Debug, Args)]
pub struct EmbedArgs {
    /// The run directory whose model embeds them.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Image files, or folders of them; rows come in this order, and sorted inside a folder.
    #[arg(value_name = "IMAGES", required = true)]
    pub images: Vec<PathBuf>,
    /// The file to write: float32, a row per image.
    #[arg(long, value_name = "FILE.npy")]
    pub out: PathBuf,
    /// Where tensors are computed, instead of the run's run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    Check(DataCheckArgs),
}

/// Count a data set and look for mistakes in it.
///
/// Counts images and classes per split and level, looks for oddities of the taxonomy, reads every image,
/// and lists unreadable files and duplicates across splits. Needs only [data] of the config. Exits with 1
/// if a file cannot be read.
#[derive(Debug, Args)]
pub struct DataCheckArgs {
    /// A TOML file with a section [data].
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Put runs into a bundle for the browser.
///
/// A bundle is a folder of static files: encoders, gallery embeddings, taxonomy, thumbnails and results.
/// Several runs over the same data stand side by side in it.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Run directories over the same data; the first is what the page shows first.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The folder to write.
    #[arg(long, value_name = "BUNDLE")]
    pub out: PathBuf,
    /// Replace the bundle that is there.
    #[arg(long)]
    pub overwrite: bool,
    /// What the page calls the gallery. Default: the name of the data folder.
    #[arg(long)]
    pub title: Option<String>,
    /// A sentence about it.
    #[arg(long, default_value = "")]
    pub description: String,
    /// The licence of the images.
    #[arg(long, default_value = "")]
    pub licence: String,
    /// Where tensors are computed, instead of the runs' run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Serve the page with a bundle, on this machine only.
///
/// Builds the page first if need be. Browsers give WebGPU only to pages from localhost or over HTTPS; that
/// is why opening the files directly will not do. To publish, copy the page and, as its folder `bundle`,
/// the bundle to any web server with HTTPS.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Where the page is, and where it is served.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// The port to serve at; 0 takes any that is free.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// A page built before, instead of building it.
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
}

/// Build the page, if it is not up to date, and print where it is.
///
/// Needs the source tree, Rust and Node. What else it needs (the wasm target, trunk, wasm-bindgen, npm
/// packages) it installs, saying so; tools go to $AKIN_CACHE or the user's cache folder.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Build it even if it is up to date.
    #[arg(long)]
    pub force: bool,
}

/// Draw a data set of creatures that descend from one another.
///
/// Writes pictures and labels.csv. The finest classes of the test split are never in the training split.
#[derive(Debug, Args)]
pub struct BiomorphsArgs {
    /// Where they go.
    #[arg(value_name = "DIR")]
    pub out: PathBuf,
    /// From this follow all creatures and pictures.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Children of each class, level by level, coarse to fine.
    #[arg(long, value_name = "N,…,N", value_delimiter = ',', default_value = "4,4,6")]
    pub branching: Vec<usize>,
    /// Pictures of each finest class.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub images_per_class: usize,
    /// Width and height of a picture, in pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 64)]
    pub side: u32,
    /// The part of the finest classes that is kept for the test, from 0 up to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0)]
    pub held_out: f64,
    /// Replace what is there.
    #[arg(long)]
    pub overwrite: bool,
}

/// Values over those of a config.
#[derive(Clone, Debug, Default, Args)]
pub struct SetArgs {
    /// Set a value of the config, for example `--set optimizer.lr_head=1e-3`; can be repeated.
    ///
    /// The value is TOML; what is not is taken as text. A relative path counts from the current directory.
    /// Another `kind` begins with its defaults, without the keys of the one before; those of [data], [optimizer]
    /// and [schedule] stay.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_relevance_is_a_kind_with_numbers() {
        assert_eq!(relevance("plain"), Ok(Relevance::Plain { alpha: 1.0 }));
        assert_eq!(relevance("hierarchical_ap:2"), Ok(Relevance::HierarchicalAp { alpha: 2.0 }));
        assert_eq!(relevance("weighted_ap:0.5,0.5"), Ok(Relevance::WeightedAp { weights: vec![0.5, 0.5] }));
        for wrong in ["fancy", "plain:1,2", "weighted_ap", "plain:x"] {
            assert!(relevance(wrong).is_err(), "{wrong}");
        }
    }
}
