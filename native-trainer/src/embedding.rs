//! Pictures → embeddings with a trained encoder, in batches.

use akin_core::cosine::Embeddings;
use akin_core::encoder::Encoder;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate};
use akin_core::image::Pixels;
use anyhow::{Context, Result, anyhow};
use burn::module::Module;
use burn::tensor::Device;
use rayon::prelude::*;

use crate::data::Dataset;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::Progress;

/// Pictures in one forward pass.
const BATCH: usize = 64;

/// The embeddings of some items, without those whose picture cannot be read.
pub struct Embedded {
    /// The items that were read.
    pub items: Vec<usize>,
    /// A row each.
    pub embeddings: Embeddings,
}

/// Embeds the pictures of `items`, in their order.
pub fn embed(
    encoder: &Encoder,
    pictures: &Pictures,
    items: &[usize],
    device: &Device,
    progress: Progress,
) -> Result<Embedded> {
    let encoder = encoder.valid();
    let device = device.clone().without_autodiff();
    let bar = progress.bar("Embedding", items.len() as u64);
    let mut read = Vec::with_capacity(items.len());
    let mut values = Vec::with_capacity(items.len() * encoder.dimension());
    for batch in items.chunks(BATCH) {
        let (kept, views): (Vec<usize>, Vec<Pixels>) = batch
            .par_iter()
            .filter_map(|&item| Some((item, encoder.preprocessing().view(&*pictures.get(item)?).ok()?)))
            .unzip();
        if !views.is_empty() {
            let rows = encoder.forward(encoder.batch(&views, &device)).into_data();
            values.extend(rows.try_to_vec::<f32>().map_err(|error| anyhow!("{error:?}"))?);
        }
        read.extend(kept);
        bar.advance(batch.len() as u64);
    }
    if read.is_empty() {
        return Err(problem(
            "none of the pictures could be read",
            "`akin data check CONFIG` lists each with the reason",
        ));
    }
    let embeddings = Embeddings::new(encoder.dimension(), values)
        .context("the encoder gave numbers that are not finite; train with smaller learning rates")?;
    Ok(Embedded { items: read, embeddings })
}

/// The embeddings of the evaluation splits of a data set, and the report over them.
pub struct Evaluation {
    /// The queries, which are the gallery too when that is none.
    pub queries: Embedded,
    /// The gallery, where it is another set.
    pub gallery: Option<Embedded>,
    /// The scores.
    pub report: Report,
}

/// Embeds the evaluation splits of a data set and scores them.
pub fn evaluate_dataset(
    encoder: &Encoder,
    dataset: &Dataset,
    pictures: &Pictures,
    config: &EvaluationConfig,
    device: &Device,
    progress: Progress,
) -> Result<Evaluation> {
    let queries = embed(encoder, pictures, &dataset.splits.query, device, progress)?;
    let gallery = if dataset.splits.leave_one_out() {
        None
    } else {
        Some(embed(encoder, pictures, &dataset.splits.gallery, device, progress)?)
    };
    let query_labels = dataset.labels(&queries.items);
    let gallery_labels = gallery.as_ref().map(|gallery| dataset.labels(&gallery.items));
    let report = evaluate(
        dataset.taxonomy.level_names(),
        Labelled { embeddings: &queries.embeddings, labels: &query_labels },
        gallery
            .as_ref()
            .zip(gallery_labels.as_ref())
            .map(|(gallery, labels)| Labelled { embeddings: &gallery.embeddings, labels }),
        config,
    )?;
    Ok(Evaluation { queries, gallery, report })
}
