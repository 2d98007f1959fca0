//! A bundle of embeddings that another program made, without the weights of its encoder.

use std::path::{Path, PathBuf};

use akin_base::directory::{self, Kind};
use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_core::bundle::BundleWriter;
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::evaluate::EvaluationConfig;
use akin_core::similarity::Similarity;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::encoder::{Added, add_items, slug};
use super::{Export, write};
use crate::commands::arguments::similarity;
use crate::config::{DataConfig, TableConfig};
use crate::data::Dataset;
use crate::evaluation::embedding::{Embedded, evaluate_splits};
use crate::evaluation::model_card::text;
use crate::pictures::loader::Pictures;
use crate::runs::code_lengths::numbered;

/// Embeddings of any origin, in place of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Embeddings from files")]
pub struct EmbeddingArgs {
    /// Embeddings that another program made, in place of runs: a matrix in `.npy`, `.npz` or `.safetensors`, with one row
    /// per row of `--labels`.
    ///
    /// The page shows their map and metrics, and searches with items of the gallery. It cannot search with other pictures,
    /// because it has no encoder for them. Can be repeated, to compare several encoders of the same items.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "to"], requires_all = ["labels", "levels"])]
    pub embeddings: Vec<PathBuf>,
    /// A CSV file with a row per embedding, in the same order: the path of the picture and a column per level.
    #[arg(long, value_name = "FILE.csv", requires = "embeddings")]
    pub labels: Option<PathBuf>,
    /// The folder that the paths of the pictures are relative to [default: the folder of `--labels`].
    #[arg(long, value_name = "DIR", requires = "embeddings")]
    pub images: Option<PathBuf>,
    /// The columns of the levels, coarse to fine.
    #[arg(long, value_name = "COARSE,…,FINE", value_delimiter = ',', requires = "embeddings")]
    pub levels: Vec<String>,
    /// The column with the path of the picture.
    #[arg(long, value_name = "COLUMN", default_value = "path", requires = "embeddings")]
    pub path_column: String,
    /// Identify a class by its full label path: the same name under two parents is then two classes.
    #[arg(long, requires = "embeddings")]
    pub qualify: bool,
    /// The similarity that ranks the gallery: cosine, euclidean, dot, hamming, or `poincare:CURVATURE`.
    #[arg(long, value_name = "NAME", default_value = "cosine", value_parser = similarity, requires = "embeddings")]
    pub similarity: Similarity,
}

impl EmbeddingArgs {
    /// The labels and pictures.
    ///
    /// # Errors
    ///
    /// The working directory cannot be read.
    pub fn data(&self) -> Result<DataConfig> {
        let settings = json!({ "path": "", "levels": self.levels, "path_column": self.path_column, "qualify": self.qualify });
        let mut table: TableConfig = serde_json::from_value(settings)?;
        table.path = std::path::absolute(self.labels.clone().unwrap_or_default())?;
        table.images.clone_from(&self.images);
        Ok(DataConfig::Csv(table))
    }

    /// Writes the bundle.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, or do not fit each other.
    pub fn export(&self, export: &Export) -> Result<()> {
        directory::check(Kind::Bundle, export.out, export.overwrite)?;
        let names = self.names();
        let dataset = Dataset::load_all(self.data()?)?;
        let config = EvaluationConfig {
            similarity: self.similarity,
            bootstrap: Some(Default::default()),
            ..EvaluationConfig::default()
        };
        let mut bundle = BundleWriter::new();
        let (mut encoders, mut items) = (Vec::new(), Vec::new());
        for (index, (path, name)) in self.embeddings.iter().zip(names).enumerate() {
            let embeddings = self.read(path, dataset.paths.len())?;
            // Every item is a query, so these are all items.
            let embed =
                |items: &[usize]| Ok(Embedded { items: items.to_vec(), embeddings: embeddings.clone() });
            let evaluation = evaluate_splits(&dataset, &config, export.progress, embed)?;
            let folder = slug(&name, index);
            let Added { mut entry, gallery, .. } =
                add_items(&mut bundle, export, &dataset, evaluation, &folder, 0, None)?;
            entry.description =
                format!("Embeddings from {}", path.file_name().unwrap_or_default().to_string_lossy());
            entry.name = name;
            encoders.push(entry);
            items = gallery;
        }
        let list: String = encoders
            .iter()
            .map(|entry| format!("- **{}**: {}\n", text(&entry.name), text(&entry.description)))
            .collect();
        let card = format!(
            "## Embeddings\n\n{list}\nOther programs made them. This bundle has no weights of an encoder, so it finds \
             neighbours of its own items only."
        );
        let pictures = Pictures::of(&dataset);
        write(export, bundle, card, &dataset, &pictures, &config, encoders, (items, Vec::new()), &[])
    }

    /// The name of each encoder, which is that of its file.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for path in &self.embeddings {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            names.push(numbered(&stem, |name| names.iter().any(|other| other == name)));
        }
        names
    }

    /// The embeddings of a file, one for each of `items` items.
    fn read(&self, path: &Path, items: usize) -> Result<Embeddings> {
        let choice = Choice { name: None, packed: self.similarity == Similarity::Hamming };
        let file = EmbeddingFile::open(path, &choice)?;
        let rows = file.len();
        if rows != items {
            return Err(problem(
                format!(
                    "{} has {}, but `--labels` has {}",
                    path.display(),
                    counted(rows, "embedding", "embeddings"),
                    counted(items, "row", "rows")
                ),
                "give a row of labels for each embedding, in the same order",
            ));
        }
        let mut values = vec![0.0; rows * file.dimension()];
        file.read(0, &mut values)?;
        Ok(Embeddings::new(file.dimension(), values)?)
    }
}
