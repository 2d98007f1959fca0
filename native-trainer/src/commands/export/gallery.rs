//! A bundle of a gallery: the pictures that have labels, with the embeddings and the encoder that the gallery keeps.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_base::directory::{self, Kind};
use akin_base::problem::{a_few, problem};
use akin_base::quantities::counted;
use akin_base::shell;
use akin_core::bundle::BundleWriter;
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::encoder::EncoderConfig;
use akin_core::evaluate::EvaluationConfig;
use akin_core::models::BackboneConfig;
use akin_gallery::{Gallery, Row};
use anyhow::Result;

use super::encoder::{Added, Exported, add_encoder, onnx_path};
use super::{Export, require_licence, write};
use crate::commands::index::encoder::{of_gallery, parts, whole_file};
use crate::commands::index::pictures::Listed;
use crate::config::{DeviceName, device};
use crate::data::{Dataset, Storage};
use crate::evaluation::embedding::Embedded;
use crate::evaluation::model_card::text;
use crate::pictures::loader::Pictures;

/// A gallery to export.
pub struct GalleryExport {
    /// The pictures that have labels.
    gallery: Gallery,
    /// The number of those that have none.
    unlabelled: usize,
    config: EncoderConfig,
    device: DeviceName,
}

impl GalleryExport {
    /// Opens a gallery.
    ///
    /// # Errors
    ///
    /// A gallery without labels or with pictures that are gone; a licence that is missing.
    pub fn open(folder: &Path, device: DeviceName, licence: &str) -> Result<Self> {
        let place = shell::path(folder);
        let whole = Gallery::open(folder)?;
        let pictures = whole.rows().len();
        let gallery = whole.labelled();
        let labelled = gallery.rows().len();
        if labelled == 0 {
            return Err(problem(
                format!("no picture of the gallery {} has a label", folder.display()),
                format!("give it labels with `akin index {place} --relabel TABLE --levels COARSE,…,FINE`"),
            ));
        }
        let gone: Vec<String> = gallery
            .rows()
            .iter()
            .filter(|row| !row.file().exists() && !Path::new(&row.source).is_file())
            .map(|row| row.file().display().to_string())
            .collect();
        if !gone.is_empty() {
            return Err(problem(
                format!("{} gone: {}", counted(gone.len(), "picture is", "pictures are"), a_few(&gone)),
                format!("put them back, or take them out with `akin index {place} --refresh`"),
            ));
        }
        let (config, onnx) = parts(folder, &gallery.manifest().settings.encoder)?;
        require_licence(config.backbone.entry(), licence)?;
        if onnx.is_some() && licence.is_empty() {
            return Err(problem(
                format!(
                    "{} embeds with an ONNX file, which the bundle contains, and its licence is not known",
                    folder.display()
                ),
                "say under which licence its weights are, for example `--licence Apache-2.0`",
            ));
        }
        let unlabelled = pictures - labelled;
        Ok(Self { gallery, unlabelled, config, device })
    }

    /// The name of its folder.
    pub fn title(&self) -> String {
        let folder = self.gallery.folder();
        let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        whole.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Writes the bundle.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, or an encoder that is too large for a browser.
    pub fn export(self, export: &Export) -> Result<()> {
        let Self { gallery, unlabelled, config, device } = self;
        directory::check(Kind::Bundle, export.out, export.overwrite)?;
        let settings = &gallery.manifest().settings;
        let (name, number) = (settings.encoder.name.clone(), 0);
        let dataset = dataset(&gallery)?;
        let pictures = Pictures::of(&dataset);
        let device = device::open(device)?;
        let eval = EvaluationConfig { similarity: settings.similarity, ..EvaluationConfig::default() };
        let whole = match &config.backbone {
            BackboneConfig::Onnx(_) => {
                Some(whole_file(gallery.folder(), &settings.encoder, &onnx_path(&name, number))?)
            }
            _ => None,
        };
        let exported = Exported {
            description: format!("The encoder of the gallery {}", export.title),
            encoder: of_gallery(gallery.folder(), &settings.encoder, &device)?,
            config,
            whole,
            licence: None,
            device,
            eval: eval.clone(),
            seed: 0,
            proxies: None,
            name,
        };
        let card = format!(
            "## Model\n\n- **{}**\n\n## Data\n\n{} of the gallery {}{}.\n\nLevels, coarse to fine: {}.",
            text(&exported.name),
            counted(gallery.rows().len(), "picture", "pictures"),
            text(&export.title),
            match unlabelled {
                0 => String::new(),
                _ => format!(", without {} that have no label", counted(unlabelled, "picture", "pictures")),
            },
            gallery.levels().iter().map(|level| text(level)).collect::<Vec<_>>().join(", "),
        );
        let embed = |items: &[usize]| {
            let d = gallery.vectors().dimension();
            let mut values = vec![0.0; items.len() * d];
            for (&item, row) in items.iter().zip(values.chunks_mut(d)) {
                gallery.vectors().read(item, row)?;
            }
            Ok(Embedded { items: items.to_vec(), embeddings: Embeddings::new(d, values)? })
        };
        let mut bundle = BundleWriter::new();
        let Added { entry, gallery: items, .. } =
            add_encoder(&mut bundle, export, exported, number, &dataset, &pictures, embed)?;
        write(export, bundle, card, &dataset, &pictures, &eval, vec![entry], (items, Vec::new()), &[])
    }
}

/// The pictures of a gallery, each of which is a query.
fn dataset(gallery: &Gallery) -> Result<Dataset> {
    let known = gallery.known()?;
    let paths = gallery.rows().iter().map(Row::file).collect();
    let storage = Arc::new(storage(gallery.rows())?);
    Ok(Dataset::leave_one_out(known.taxonomy, known.labels, paths, storage))
}

/// Where pictures are that a larger file holds.
fn storage(rows: &[Row]) -> Result<Storage> {
    let mut sources: Vec<&Path> = rows.iter().map(|row| Path::new(&row.source)).collect();
    sources.sort_unstable();
    sources.dedup();
    if sources.iter().all(|source| !source.is_file()) {
        return Ok(Storage::default());
    }
    let [source] = sources[..] else {
        return Err(problem(
            "some pictures of the gallery are inside a Parquet file, and others are not",
            "make a gallery of each, and export them to separate bundles",
        ));
    };
    let listed = Listed::read(&[source.to_owned()], &[])?;
    let places: HashMap<PathBuf, usize> = listed.rows.iter().map(Row::file).zip(0..).collect();
    let place = |row: &Row| {
        places.get(&row.file()).copied().ok_or_else(|| {
            problem(
                format!("{} is no longer in {}", row.path, source.display()),
                "follow the file with `akin index GALLERY --refresh`",
            )
        })
    };
    let items = rows.iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok(listed.storage.map(|storage| storage.select(&items)).unwrap_or_default())
}
