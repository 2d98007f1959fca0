//! Arguments that several commands share.

use std::path::PathBuf;

use akin_base::progress::Progress;
use akin_core::evaluate::{Decomposability, EvaluationConfig, TreeLikeness};
use akin_core::metrics::Metric;
use akin_core::ranking::TiePolicy;
use akin_core::relevance::Relevance;
use akin_core::similarity::Similarity;
use akin_core::statistics::Bootstrap;
use akin_server::serve::{Host, Hosts};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::config::DeviceName;
use crate::runs::run::Which;

/// Changes to a config.
#[derive(Clone, Debug, Default, Args)]
pub struct SetArgs {
    /// Set a value of the config, for example `--set optimizer.lr_head=1e-3`; can be repeated.
    ///
    /// The value is TOML, or a text without quotes. A relative path starts at the current directory. A table that
    /// gets another `kind` starts from the defaults of that kind.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
}

/// The page to serve, the port, and who may ask.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// The port to serve on; 0 chooses a free port.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Serve under this name or address, too; can be repeated. By default only browsers on this machine are answered.
    ///
    /// An address of this machine, such as 192.168.1.5, is listened on; 0.0.0.0 stands for all of them. A name, such as
    /// akin.example.org, is one under which a proxy passes requests on. Everybody who can reach it sees the galleries.
    #[arg(long, value_name = "HOST")]
    pub host: Vec<Host>,
    /// The folder of a page that is already built, instead of building it.
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
}

impl ServerArgs {
    /// The names under which the server answers.
    pub fn hosts(&self) -> anyhow::Result<Hosts> {
        Hosts::new(self.host.clone())
    }
}

/// Which encoder of a run computes, and where.
#[derive(Clone, Copy, Debug, Args)]
pub struct ComputeArgs {
    /// The encoder of a run.
    #[arg(long, value_enum, default_value_t)]
    pub which: Which,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// How rankings are made and scored. Without an option, the setting of the run or the default applies.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricArgs {
    /// The metrics to report, which `akin list metrics` explains, with those whose names mean something else in other tools:
    /// recall@k is the hit rate here, and true_recall@k the share of the positives found. By default those of the run; for
    /// files `h_ap,ndcg,asi,ap,map_at_r,recall@1`; with `--dyml` `asi,ap,recall@1,recall@10,recall@20`.
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',', value_parser = metric)]
    pub metrics: Vec<Metric>,
    /// Print 95 % intervals from this many bootstrap resamples of the queries; 1000 is common.
    #[arg(long, value_name = "RESAMPLES")]
    pub bootstrap: Option<usize>,
    /// Print how much higher AP is in batches of this many items than over the whole set.
    #[arg(long, value_name = "BATCH")]
    pub decomposability_gap: Option<usize>,
    /// Print how tree-like the distances of the ranked items are: their δ-hyperbolicity, from 10 draws of this many items.
    #[arg(long, value_name = "ITEMS")]
    pub hyperbolicity: Option<usize>,
    /// The similarity that ranks the gallery: cosine, euclidean, dot, hamming, or `poincare:CURVATURE`
    /// [default: the run's own, or cosine].
    #[arg(long, value_name = "NAME", value_parser = similarity)]
    pub similarity: Option<Similarity>,
    /// How items with equal scores are ranked: in gallery order (stable), without counting against each other
    /// (strict), in the best order (optimistic), in the worst (pessimistic), or all at the last rank of their tie, as
    /// scikit-learn has it (shared) [default: stable].
    #[arg(long, value_parser = one_of::<TiePolicy>(&["stable", "strict", "optimistic", "pessimistic", "shared"]))]
    pub ties: Option<TiePolicy>,
    /// Count the query itself among the items of its class, as most published results do.
    #[arg(long)]
    pub count_query: bool,
    /// The relevance of each shared level: `hierarchical_ap` or `plain`, with an exponent if it is not 1
    /// (`plain:2`), or `weighted_ap:W1,…,WL` [default: hierarchical_ap].
    #[arg(long, value_name = "KIND[:NUMBERS]", value_parser = relevance)]
    pub relevance: Option<Relevance>,
}

impl MetricArgs {
    /// Applies the options to a config.
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
        if let Some(points) = self.hyperbolicity {
            let (draws, seed) =
                config.hyperbolicity.map_or((10, 0), |settings| (settings.draws, settings.seed));
            config.hyperbolicity = Some(TreeLikeness { points, draws, seed });
        }
        config.similarity = self.similarity.unwrap_or(config.similarity);
        config.ties = self.ties.unwrap_or(config.ties);
        config.count_query |= self.count_query;
        if let Some(relevance) = &self.relevance {
            config.relevance = relevance.clone();
        }
    }
}

fn metric(text: &str) -> Result<Metric, String> {
    text.parse().map_err(|error: akin_core::Error| format!("{error} (`akin list metrics` lists all of them)"))
}

/// `cosine`, `poincare:0.1`.
pub fn similarity(text: &str) -> Result<Similarity, String> {
    text.parse().map_err(hint)
}

/// `plain`, `plain:2`, `weighted_ap:0.2,0.3,0.5`.
fn relevance(text: &str) -> Result<Relevance, String> {
    text.parse().map_err(hint)
}

/// The parser of arguments names the text itself.
fn hint(error: akin_core::Error) -> String {
    error.hint().to_owned()
}

/// Parses the name of a unit variant, as serde spells it.
fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &'static [&str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(|name| T::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relevance_is_parsed_from_a_kind_and_numbers() {
        assert_eq!(relevance("plain"), Ok(Relevance::Plain { alpha: 1.0 }));
        assert_eq!(relevance("hierarchical_ap:2"), Ok(Relevance::HierarchicalAp { alpha: 2.0 }));
        assert_eq!(relevance("weighted_ap:0.5,0.5"), Ok(Relevance::WeightedAp { weights: vec![0.5, 0.5] }));
        for wrong in ["fancy", "plain:1,2", "weighted_ap", "plain:x"] {
            assert!(relevance(wrong).is_err(), "{wrong}");
        }
    }
}
