//! A bundle of a gallery: the pictures that have labels, or a sample of them, with the embeddings and the encoder that the
//! gallery keeps.

use std::path::Path;
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
use akin_core::taxonomy::{Labels, Taxonomy};
use akin_gallery::{Gallery, Row};
use anyhow::Result;

use super::encoder::{Added, Exported, add_encoder, onnx_path};
use super::{Export, require_licence, write};
use crate::commands::index::encoder::{of_gallery, parts, whole_file};
use crate::commands::index::pictures::storage;
use crate::config::{DeviceName, device};
use crate::data::Dataset;
use crate::evaluation::embedding::Embedded;
use crate::evaluation::model_card::text;
use crate::pictures::loader::Pictures;

/// A gallery to export.
pub struct GalleryExport {
    /// The pictures of the bundle.
    gallery: Gallery,
    /// The label tree of the whole gallery.
    taxonomy: Taxonomy,
    /// The labels of the pictures.
    labels: Labels,
    /// What the bundle has of the gallery, in words.
    extent: String,
    config: EncoderConfig,
    device: DeviceName,
}

impl GalleryExport {
    /// The places of the pictures that the page shows of a gallery: at most `most`, evenly spaced among those with labels, or
    /// among all if none has any, without those that are gone.
    pub fn items(gallery: &Gallery, most: usize) -> Vec<usize> {
        let mut all = gallery.labelled();
        if all.is_empty() {
            all = (0..gallery.rows().len()).collect();
        }
        let count = all.len().min(most);
        let spaced = (0..count).map(|place| all[place * all.len() / count]);
        spaced.filter(|&item| is_there(&gallery.rows()[item])).collect()
    }

    /// A gallery with the pictures at these places, which ascend: all have labels, or none has. Without labels they are of
    /// one class.
    ///
    /// # Errors
    ///
    /// Pictures that are gone; a licence that is missing.
    pub fn new(whole: Gallery, items: &[usize], device: DeviceName, licence: &str) -> Result<Self> {
        let folder = &whole.folder().to_owned();
        let place = shell::path(folder);
        let (pictures, labelled) = (whole.rows().len(), whole.labelled().len());
        let extent = match pictures - items.len() {
            0 => String::new(),
            others if items.len() == labelled => {
                format!(", without {} that have no label", counted(others, "picture", "pictures"))
            }
            _ => format!(", evenly spaced among its {}", counted(pictures, "picture", "pictures")),
        };
        let known = whole.known()?;
        // Without any label the labels have a row that no picture has.
        let row = |&item: &usize| known.rows.as_ref().map_or(item, |rows| rows[item].unwrap_or_default());
        let labels = known.labels.select(&items.iter().map(row).collect::<Vec<_>>());
        let (taxonomy, gallery) = (known.taxonomy, whole.select(items));
        let gone: Vec<String> = gallery
            .rows()
            .iter()
            .filter(|row| !is_there(row))
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
        Ok(Self { gallery, taxonomy, labels, extent, config, device })
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
        let Self { gallery, taxonomy, labels, extent, config, device } = self;
        directory::check(Kind::Bundle, export.out, export.overwrite)?;
        let settings = &gallery.manifest().settings;
        let (name, number) = (settings.encoder.name.clone(), 0);
        let levels = taxonomy.level_names().iter().map(|level| text(level)).collect::<Vec<_>>().join(", ");
        let levels = match gallery.labelled().is_empty() {
            true => "The pictures have no labels.".to_owned(),
            false => format!("Levels, coarse to fine: {levels}."),
        };
        let paths = gallery.rows().iter().map(Row::file).collect();
        let dataset = Dataset::leave_one_out(taxonomy, labels, paths, Arc::new(storage(gallery.rows())?));
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
            "## Model\n\n- **{}**\n\n## Data\n\n{} of the gallery {}{extent}.\n\n{levels}",
            text(&exported.name),
            counted(gallery.rows().len(), "picture", "pictures"),
            text(&export.title),
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

/// Whether the file of a picture is there, or the file that it is in.
fn is_there(row: &Row) -> bool {
    row.file().exists() || Path::new(&row.source).is_file()
}
