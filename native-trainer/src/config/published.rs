//! `[published]`: what a paper reports for a training with these settings.

use std::collections::BTreeMap;
use std::fmt;

use akin_base::problem::{did_you_mean, problem};
use akin_core::metrics::Metric;
use akin_core::sources::{SOURCES, source};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;
use super::{DataConfig, DataKind, Difficulty, setting_name};

/// The name of the mean over levels where the protocol of DyML stands for all levels together.
pub const AVERAGE: &str = "average";

/// `[published]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedConfig {
    /// The paper, by a key of `akin list sources`.
    pub paper: String,
    /// Its results. Default: none.
    #[serde(default)]
    pub results: Vec<PublishedResult>,
}

/// Scores from one row of a table: an item of `results`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedResult {
    /// Where they stand in the paper, for example `Table 1`.
    pub place: String,
    /// The name of the row there.
    pub row: String,
    /// The level at which they are measured, or `average` for the mean over levels that DyML's protocol reports. Default:
    /// none; a metric per level counts at the finest. Not together with `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The data set that they are measured on, if it is not the data set of the training. `akin eval RUN --data CONFIG`
    /// measures them. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<OtherData>,
    /// The scores as akin prints them, shares in percent, for example `{ h_ap = 59.4, "recall@1" = 81.0 }`.
    /// Empty if the paper prints no score of this row.
    pub scores: BTreeMap<Metric, f64>,
}

/// A data set that is only evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherData {
    /// Its kind, as in `[data]`.
    #[schemars(with = "String")]
    pub kind: DataKind,
    /// Its difficulty, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<Difficulty>,
}

impl OtherData {
    /// Whether these data are that data set.
    pub fn is(self, data: &DataConfig) -> bool {
        self.kind == data.kind() && self.difficulty == data.difficulty()
    }
}

impl fmt::Display for OtherData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.name())?;
        self.difficulty.map_or(Ok(()), |difficulty| write!(f, ", {}", setting_name(difficulty)))
    }
}

impl PublishedConfig {
    pub(super) fn validate(&self, levels: &[String]) -> Result<()> {
        if source(&self.paper).is_none() {
            let keys = SOURCES.iter().map(|source| source.key);
            return Err(problem(
                format!("published.paper is `{}`, which is no source", self.paper),
                format!("{}`akin list sources` lists all of them", did_you_mean(&self.paper, keys)),
            ));
        }
        for result in &self.results {
            let known = |level: &String| level == AVERAGE || levels.contains(level);
            ensure(result.level.as_ref().is_none_or(known), || {
                let level = result.level.as_deref().unwrap_or_default();
                (
                    format!("published.results names the level `{level}`, which the data do not have"),
                    "name a level of [data], or `average`",
                )
            })?;
            if let Some(on) = result.on {
                ensure(result.level.is_none(), || {
                    (
                        format!("published.results names the data set `{}` and a level", on.kind.name()),
                        "remove `level`; on another data set a metric per level counts at the finest",
                    )
                })?;
                let has_several = matches!(on.kind, DataKind::Roxford5k | DataKind::Rparis6k);
                ensure(has_several == on.difficulty.is_some(), || {
                    let fault = if has_several {
                        "without a difficulty"
                    } else {
                        "with a difficulty, and it has none"
                    };
                    (
                        format!("published.results names the data set `{}` {fault}", on.kind.name()),
                        "give one for the revisited sets alone, for example \
                         on = { kind = \"roxford5k\", difficulty = \"hard\" }",
                    )
                })?;
            }
            ensure(result.scores.values().all(|score| score.is_finite()), || {
                (
                    format!("published.results has a score of {} that is not finite", result.row),
                    "give the number as the paper prints it, shares in percent",
                )
            })?;
        }
        Ok(())
    }
}
