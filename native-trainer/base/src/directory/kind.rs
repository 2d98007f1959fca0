//! What a directory of results holds, and which files akin writes into it.

use serde::{Deserialize, Serialize};

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A training.
    Run,
    /// Files for the browser.
    Bundle,
    /// Drawn images with their labels.
    DataSet,
    /// The trainings and tables of `akin compare`.
    Comparison,
    /// The trainings and results of `akin tune`.
    Tuning,
    /// All of `akin demo`.
    Demo,
    /// An encoder for other tools.
    Encoder,
    /// The page and its bundles, to be published.
    Site,
    /// Pictures that are searched, with their embeddings. It grows, so that its own manifest lists its files, and not the
    /// mark.
    Gallery,
}

impl Kind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Bundle => "bundle",
            Kind::DataSet => "data set",
            Kind::Comparison => "comparison",
            Kind::Tuning => "tuning",
            Kind::Demo => "demo",
            Kind::Encoder => "exported encoder",
            Kind::Site => "site",
            Kind::Gallery => "gallery",
        }
    }

    /// How a user names such a directory, at the end of "choose another directory".
    pub fn option(self) -> &'static str {
        match self {
            Kind::DataSet => "",
            Kind::Site => " with `--site DIR`",
            Kind::Run
            | Kind::Bundle
            | Kind::Comparison
            | Kind::Tuning
            | Kind::Demo
            | Kind::Encoder
            | Kind::Gallery => " with `--out DIR`",
        }
    }

    /// The paths of the files that akin writes into such a directory, as patterns: `*` stands for any part of a name, and
    /// `**` for any part of a path. A pattern has one `**`, or one `*` a name. The files of a site are planned, see
    /// [`Draft::plan`](super::Draft::plan).
    fn contents(self) -> &'static [&'static str] {
        match self {
            Kind::Run => &[
                "config.toml",
                "run.json",
                "log.jsonl",
                "checkpoint.akin",
                "encoder.bpk",
                "best.akin",
                "report.json",
                "provenance.json",
                "events.out.tfevents.*",
            ],
            Kind::Bundle => &[
                "bundle.json",
                "labels.bin",
                "thumbnails-*.jpg",
                "README.md",
                "NOTICE.md",
                "*/*.bpk",
                "*/*.f16",
                "*/*.f32",
                "*/*.u32",
                "*/*.onnx",
                "parity/*.png",
                "parity/*.jpg",
            ],
            Kind::DataSet => &["labels.csv", "images/**.png"],
            // Beside each training: its config, its outcome, what it printed, and its lock.
            Kind::Comparison => &[
                "table.*",
                "features.akin",
                "figures/*.svg",
                "figures/*.png",
                "*/*.toml",
                "*/*.outcome.json",
                "*/*.stderr",
                "*/*.lock",
            ],
            Kind::Tuning => &[
                "best.toml",
                "results.*",
                "trials.csv",
                "features.akin",
                "trials/**.toml",
                "trials/**.outcome.json",
                "trials/**.stderr",
                "trials/**.lock",
                "models/**.toml",
                "models/**.json",
                "models/**.stderr",
                "models/**.lock",
            ],
            Kind::Demo => &["*.toml"],
            Kind::Encoder => &[
                "model.safetensors",
                "model.onnx",
                "encoder.py",
                "config.json",
                "preprocessor_config.json",
                "README.md",
                "LICENSE",
            ],
            Kind::Site => &[],
            Kind::Gallery => &["gallery.json", "pending.json", "segments/*/*", "encoder/*/*"],
        }
    }

    /// Whether the path of a file has the form of one that akin writes into such a directory.
    pub fn writes(self, path: &str) -> bool {
        self.contents().iter().any(|pattern| matches(path, pattern))
    }

    /// Whether directories with a mark of their own belong into such a directory.
    pub fn has_directories(self) -> bool {
        matches!(self, Kind::Comparison | Kind::Tuning | Kind::Demo)
    }
}

/// Whether a path has the form of a pattern, see [`Kind::contents`].
fn matches(path: &str, pattern: &str) -> bool {
    let surrounds = |[start, end]: [&str; 2], text: &str| {
        text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
    };
    if let Some((start, end)) = pattern.split_once("**") {
        return surrounds([start, end], path);
    }
    let names = path.split('/').zip(pattern.split('/'));
    path.split('/').count() == pattern.split('/').count()
        && names.into_iter().all(|(name, pattern)| match pattern.split_once('*') {
            None => name == pattern,
            Some((start, end)) => surrounds([start, end], name),
        })
}
