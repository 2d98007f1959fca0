//! Every loss, one line each: the `kind` of a config, the printed lists and the tests all read it.

use std::sync::LazyLock;

use burn::module::Module;
use burn::tensor::Tensor;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::config_value::{ConfigValue, changes_kind};
use super::*;

/// Each line is a loss: the variant, its settings, and the loss they make. The variant in snake case is its name.
macro_rules! losses {
    ($($variant:ident: $settings:ty => $loss:ty,)+) => {
        /// A loss by name with its settings: the `[loss]` table of a config.
        ///
        /// `kind` is the name of an entry of the [`CATALOGUE`]. The name of a preset stands for its settings, which the
        /// other keys of the table override.
        ///
        /// ```
        /// use akin_core::losses::LossConfig;
        ///
        /// let happier: LossConfig = serde_json::from_str(r#"{ "kind": "happier", "lambda": 0.2 }"#).unwrap();
        /// assert_eq!(happier.name(), "happier");
        /// let sum = LossConfig::named("sum_norm_softmax")?;
        /// assert_eq!(sum.name(), "levels");
        /// # Ok::<(), akin_core::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
        pub enum LossConfig {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $variant($settings),)+
        }

        /// A loss that can be computed and trained.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Loss {
            $(#[doc = concat!("See [`", stringify!($loss), "`].")] $variant($loss),)+
        }

        impl LossConfig {
            /// Its entry in the catalogue.
            pub fn entry(&self) -> &'static LossEntry {
                match self {
                    $(Self::$variant(_) => const { &<$settings as BuildLoss>::ENTRY },)+
                }
            }

            /// Reads the settings of a loss by its name; none if no loss has it.
            fn read(name: &str, settings: Value) -> Option<serde_json::Result<Self>> {
                $(if name == <$settings as BuildLoss>::ENTRY.name {
                    return Some(serde_json::from_value(settings).map(Self::$variant));
                })+
                None
            }

            fn make(&self, context: &LossContext) -> Result<Loss> {
                Ok(match self {
                    $(Self::$variant(settings) => Loss::$variant(settings.init(context)?),)+
                })
            }
        }

        impl Objective for Loss {
            fn forward(&self, batch: &Batch) -> Tensor<1> {
                match self { $(Self::$variant(loss) => loss.forward(batch),)+ }
            }

            fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
                match self { $(Self::$variant(loss) => loss.on_tensors(batch),)+ }
            }

            fn before_step(&mut self, draws: Draws) {
                match self { $(Self::$variant(loss) => loss.before_step(draws),)+ }
            }

            fn after_step(&mut self, embeddings: Tensor<2>, labels: &Labels) {
                match self { $(Self::$variant(loss) => loss.after_step(embeddings, labels),)+ }
            }

            fn needs_training_set(&self, epoch: u64) -> bool {
                match self { $(Self::$variant(loss) => loss.needs_training_set(epoch),)+ }
            }

            fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
                match self { $(Self::$variant(loss) => loss.before_epoch(embeddings, labels),)+ }
            }

            fn hierarchy(&self) -> Option<&Hier> {
                match self { $(Self::$variant(loss) => loss.hierarchy(),)+ }
            }
        }

        /// Each loss with its presets.
        const LOSSES: &[(LossEntry, &[LossEntry])] =
            &[$((<$settings as BuildLoss>::ENTRY, <$settings as BuildLoss>::PRESETS)),+];
    };
}

losses! {
    NormSoftmax: NormSoftmaxConfig => NormSoftmax,
    ArcFace: ArcFaceConfig => ArcFace,
    CosFace: CosFaceConfig => CosFace,
    SphereFace: SphereFaceConfig => SphereFace,
    ProxyAnchor: ProxyAnchorConfig => ClassProxies,
    ProxyNca: ProxyNcaConfig => ClassProxies,
    SoftTriple: SoftTripleConfig => SoftTriple,
    Contrastive: ContrastiveConfig => Contrastive,
    TripletMargin: TripletMarginConfig => TripletMargin,
    Margin: MarginConfig => Margin,
    MultiSimilarity: MultiSimilarityConfig => MultiSimilarity,
    NtXent: NtXentConfig => NtXent,
    SupCon: SupConConfig => SupCon,
    Circle: CircleConfig => Circle,
    LiftedStructure: LiftedStructureConfig => LiftedStructure,
    NPairs: NPairsConfig => NPairs,
    Angular: AngularConfig => Angular,
    RankedList: RankedListConfig => RankedList,
    HapSurrogate: HapSurrogateConfig => HapSurrogate,
    SmoothHap: SmoothHapConfig => SmoothHap,
    SmoothAp: SmoothApConfig => SmoothAp,
    SupAp: SupApConfig => SupAp,
    SmoothNdcg: SmoothNdcgConfig => Ndcg,
    SupNdcg: SupNdcgConfig => Ndcg,
    SmoothRecall: SmoothRecallConfig => Recall,
    SupRecall: SupRecallConfig => Recall,
    FastAp: FastApConfig => FastAp,
    SoftbinAp: SoftbinApConfig => SoftbinAp,
    BlackboxAp: BlackboxApConfig => BlackboxAp,
    Calibration: CalibrationConfig => Calibration,
    Roadmap: RoadmapConfig => WeightedSum,
    Pair: PairConfig => Pair,
    Happier: HappierConfig => WeightedSum,
    Hier: HierConfig => Hier,
    HyperbolicCrossEntropy: HyperbolicCrossEntropyConfig => HyperbolicCrossEntropy,
    HyperbolicMultiSimilarity: HyperbolicMultiSimilarityConfig => HyperbolicMultiSimilarity,
    Csl: CslConfig => Csl,
    HierarchicalProxy: HierarchicalProxyConfig => HierarchicalProxy,
    Levels: LevelsConfig => Levels,
    CrossBatchMemory: CrossBatchMemoryConfig => CrossBatchMemory,
    Sum: SumConfig => WeightedSum,
    Hpdh: HpdhConfig => Hpdh,
    Dcwh: DcwhConfig => Dcwh,
    Dcdh: DcdhConfig => Dcdh,
    Csq: CsqConfig => Csq,
    Dpsh: DpshConfig => Dpsh,
    Dtsh: DtshConfig => Dtsh,
}

/// Every loss, each followed by its presets, sorted by family.
///
/// On the CPU the time of a loss of pairs or rankings grows with the batch as B² or B² log B. The summary of an entry names
/// a faster growth. On a GPU the smooth ranks take B² · K, for K positives of a query.
///
/// A training step waits for a GPU where a loss chooses on the CPU by numbers of the GPU: the miners that select pairs or
/// triplets, the rankings of `blackbox_ap`, the triplets of HIER, and the labels of `cross_batch_memory`. The other losses
/// leave the GPU at work until their value is logged.
pub static CATALOGUE: LazyLock<Vec<LossEntry>> = LazyLock::new(|| {
    let with_presets =
        |(loss, presets): &(LossEntry, &[LossEntry])| [std::slice::from_ref(loss), *presets].concat();
    let mut entries: Vec<LossEntry> = LOSSES.iter().flat_map(with_presets).collect();
    entries.sort_by_key(|entry| entry.family);
    entries
});

/// The name of every entry of the catalogue.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| CATALOGUE.iter().map(|entry| entry.name).collect());

impl LossConfig {
    /// The loss or preset of a name, with its defaults.
    ///
    /// # Errors
    ///
    /// An unknown name, or a loss with a setting that has no default (its entry is not `complete`).
    pub fn named(name: &str) -> Result<Self> {
        if !NAMES.contains(&name) {
            return Err(Error::new(
                Kind::Config,
                format!("unknown loss `{name}`"),
                "use a name from `losses::CATALOGUE`, which `akin list losses` prints",
            ));
        }
        let table = Map::from_iter([("kind".to_owned(), Value::from(name))]);
        serde_json::from_value(Value::Object(table)).map_err(|error| {
            Error::new(
                Kind::Config,
                format!("the loss `{name}` has settings without defaults: {error}"),
                "give its settings, as in the [loss] table of a config",
            )
        })
    }

    /// Its name in a config. A preset gives the name of the loss that it sets.
    pub fn name(&self) -> &'static str {
        self.entry().name
    }

    /// A short description.
    pub fn describe(&self) -> String {
        match self {
            Self::Sum(sum) => {
                let term = |term: &Term| format!("{} × {}", term.weight, term.loss.describe());
                sum.terms.iter().map(term).collect::<Vec<_>>().join(" + ")
            }
            Self::Levels(levels) => format!("{} on every level", levels.loss.describe()),
            _ => format!("{}: {}", self.entry().title, self.entry().summary),
        }
    }

    /// Whether it can compare embeddings of this space. A combination can if its parts can. In the Poincaré ball the
    /// terms of a sum may compare directions.
    pub fn supports(&self, space: Space) -> bool {
        match self {
            Self::CrossBatchMemory(memory) => memory.loss.supports(space),
            Self::Levels(levels) => levels.loss.supports(space),
            Self::Sum(sum) => sum.terms.iter().all(|term| {
                term.loss.supports(space) || (space == Space::Poincare && term.loss.supports(Space::Cosine))
            }),
            other => other.entry().spaces.contains(&space),
        }
    }

    /// Whether it compares the items of a batch with each other, or a part of it does. The others compare items only with
    /// proxies, centres or codes.
    pub fn compares_items(&self) -> bool {
        match self {
            Self::CrossBatchMemory(memory) => memory.loss.compares_items(),
            Self::Levels(levels) => levels.loss.compares_items(),
            Self::Sum(sum) => sum.terms.iter().any(|term| term.loss.compares_items()),
            Self::Csl(_)
            | Self::HierarchicalProxy(_)
            | Self::Hpdh(_)
            | Self::Dcwh(_)
            | Self::Dcdh(_)
            | Self::Csq(_) => false,
            other => other.entry().family != Family::Proxies,
        }
    }

    /// Whether it needs one known place in a tree for each item, or a part of it does: it has proxies, centres or codes of
    /// classes, or stores the classes of items. The others compare pairs, and also work with several label paths or a
    /// matrix of relevance, see [`Kinship`](crate::taxonomy::Kinship).
    pub fn needs_tree(&self) -> bool {
        match self {
            Self::CrossBatchMemory(_) => true,
            Self::Levels(levels) => levels.loss.needs_tree(),
            Self::Sum(sum) => sum.terms.iter().any(|term| term.loss.needs_tree()),
            Self::Happier(happier) => happier.lambda > 0.0,
            Self::Margin(margin) => margin.learn_beta,
            Self::Hier(hier) => hier.labels,
            Self::HyperbolicCrossEntropy(_) => true,
            other => !other.compares_items(),
        }
    }

    /// Whether it remembers the embeddings of earlier batches, or a part of it does.
    pub fn has_memory(&self) -> bool {
        match self {
            Self::CrossBatchMemory(_) => true,
            Self::Levels(levels) => levels.loss.has_memory(),
            Self::Sum(sum) => sum.terms.iter().any(|term| term.loss.has_memory()),
            _ => false,
        }
    }

    /// Checks the settings and draws the proxies.
    ///
    /// # Errors
    ///
    /// A setting is out of range or does not fit the classes; the loss cannot compare embeddings of this space.
    pub fn init(&self, context: &LossContext) -> Result<Loss> {
        let (entry, space) = (self.entry(), context.geometry.space());
        // The parts of a combination report this themselves.
        if entry.family != Family::Combinations && !self.supports(space) {
            let known: Vec<&str> = entry.spaces.iter().map(|space| space.name()).collect();
            return Err(Error::new(
                Kind::Config,
                format!("the loss {} cannot compare {} embeddings", entry.name, space.name()),
                format!("set the geometry of the head to {}, or choose another loss", known.join(" or ")),
            ));
        }
        let is_made_of_parts = matches!(self, Self::Levels(_) | Self::Sum(_));
        if self.needs_tree() && !is_made_of_parts && context.classes.kinship().is_some() {
            return Err(Error::new(
                Kind::Config,
                format!(
                    "the loss {} needs one label path for each item, and these have several, or a matrix of relevance",
                    entry.name
                ),
                "choose a loss of pairs, triplets or ranks; `akin list losses` says which work",
            ));
        }
        self.make(context)
    }
}

impl Serialize for LossConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for LossConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let ConfigValue(mut table) = Deserialize::deserialize(deserializer)?;
        let kind = |table: &Value| table.get("kind").and_then(Value::as_str).map(str::to_owned);
        let Some(name) = kind(&table) else { return Err(D::Error::missing_field("kind")) };
        let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
            return Err(D::Error::unknown_variant(&name, &NAMES));
        };
        if let Some(preset) = entry.preset {
            let mut preset: Value = serde_json::from_str(preset).map_err(D::Error::custom)?;
            table.as_object_mut().expect("a value with a key is a table").remove("kind");
            lay_over(&mut preset, table);
            table = preset;
        }
        let name = kind(&table).unwrap_or(name);
        table.as_object_mut().expect("a value with a key is a table").remove("kind");
        // Not through a derived implementation for the enum: that one copies every table into a type of its own first,
        // which makes the training ground of the page a fiftieth larger.
        let read = Self::read(&name, table).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))?;
        read.map_err(|error| D::Error::custom(error.to_string()))
    }
}

/// Lays the keys of one table over those of another, by the rule of [`changes_kind`].
fn lay_over(below: &mut Value, over: Value) {
    fn kind(table: &Map<String, Value>) -> Option<&str> {
        table.get("kind").and_then(Value::as_str)
    }
    match (below, over) {
        (Value::Object(below), Value::Object(over)) if !changes_kind(kind(below), kind(&over)) => {
            for (key, value) in over {
                match below.get_mut(&key) {
                    Some(old) => lay_over(old, value),
                    None => {
                        below.insert(key, value);
                    }
                }
            }
        }
        (below, over) => *below = over,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::Metric;
    use crate::relevance::Relevance;
    use crate::sources::source;

    #[test]
    fn names_are_unique_and_every_source_and_metric_is_known() {
        let names: BTreeSet<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), CATALOGUE.len());
        for entry in CATALOGUE.iter() {
            assert!(!entry.spaces.is_empty(), "{} has no space", entry.name);
            assert!(!entry.sources.is_empty() || entry.family == Family::Combinations, "{}", entry.name);
            for key in entry.sources {
                assert!(source(key).is_some(), "{}: no source {key}", entry.name);
            }
            let metric = entry.optimises.parse::<Metric>();
            assert!(metric.is_ok(), "{}: {metric:?}", entry.name);
        }
    }

    #[test]
    fn every_complete_entry_is_made_by_its_name_and_survives_json() {
        for entry in CATALOGUE.iter().filter(|entry| entry.complete) {
            let config = LossConfig::named(entry.name).unwrap();
            assert!(entry.preset.is_some() || config.name() == entry.name);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<LossConfig>(&json).unwrap(), config, "{json}");
        }
    }

    #[test]
    fn the_other_reading_of_a_paper_is_named_after_the_one_that_works() {
        let suffixes = [("_text", " (text)"), ("_published", " (code)")];
        let mut readings = 0;
        for entry in CATALOGUE
            .iter()
            .filter(|entry| ["text", "published"].iter().any(|word| entry.name.contains(word)))
        {
            let works = suffixes.iter().find_map(|(suffix, words)| {
                Some((entry.name.strip_suffix(suffix)?, entry.title.strip_suffix(words)?))
            });
            let (name, title) = works.unwrap_or_else(|| panic!("{} is not named by the rule", entry.name));
            let other = CATALOGUE.iter().find(|other| other.name == name && other.title == title);
            assert!(
                other.is_some(),
                "{} is no reading of a loss `{name}` with the title {title}",
                entry.name
            );
            assert_ne!(LossConfig::named(entry.name).unwrap(), LossConfig::named(name).unwrap());
            readings += 1;
        }
        assert!(readings > 10, "{readings}");
    }

    #[test]
    fn a_step_of_which_only_a_part_is_given_keeps_the_rest_of_its_loss() {
        let read = |json: &str| match serde_json::from_str(json).unwrap() {
            LossConfig::HapSurrogate(config) => config.upper_step,
            other => panic!("{other:?}"),
        };
        let part = read(r#"{ "kind": "hap_surrogate", "upper_step": { "temperature": 0.1 } }"#);
        assert_eq!((part.temperature, part.offset, part.slope), (0.1, Some(1.44), Some(100.0)));
        let continuous = read(r#"{ "kind": "hap_surrogate", "upper_step": { "offset": null } }"#);
        assert_eq!(continuous.offset, None);
    }

    #[test]
    fn an_unknown_name_or_setting_is_refused_with_the_known_ones() {
        let message = |json: &str| serde_json::from_str::<LossConfig>(json).unwrap_err().to_string();
        let unknown = message(r#"{ "kind": "hapier" }"#);
        assert!(unknown.starts_with("unknown variant `hapier`, expected one of "), "{unknown}");
        assert!(unknown.contains("`happier`"), "{unknown}");
        let key = message(r#"{ "kind": "norm_softmax", "temprature": 1.0 }"#);
        assert!(key.contains("unknown field `temprature`") && key.contains("`temperature`"), "{key}");
        let key = message(r#"{ "kind": "happier_f", "surrogat": {} }"#);
        assert!(key.contains("unknown field `surrogat`"), "{key}");
        assert!(message("{}").contains("missing field `kind`"));
    }

    #[test]
    fn a_config_overrides_the_settings_of_a_preset() {
        let read = |json: &str| serde_json::from_str::<LossConfig>(json).unwrap();
        let LossConfig::Happier(fine) = read(r#"{ "kind": "happier_f", "lambda": 0.5 }"#) else {
            panic!("happier_f is a preset of happier");
        };
        assert_eq!(fine.lambda, 0.5);
        assert_eq!(fine.surrogate.relevance, Relevance::HierarchicalAp { alpha: 5.0 });
        let plain = r#"{ "kind": "happier_f", "surrogate": { "relevance": { "kind": "plain" } } }"#;
        let LossConfig::Happier(plain) = read(plain) else { panic!("happier_f is a preset of happier") };
        assert_eq!(plain.surrogate.relevance, Relevance::Plain { alpha: 1.0 });
    }
}
