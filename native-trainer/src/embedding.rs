//! Pictures → embeddings with a trained encoder, in batches.

use akin_core::embeddings::Embeddings;
use akin_core::encoder::Encoder;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate};
use akin_core::image::Pixels;
use anyhow::{Context, Result, anyhow};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use crate::data::Dataset;
use crate::features::Features;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::{Bar, Progress};

/// Pictures in one forward pass.
const BATCH: usize = 64;

/// The embeddings of some items, without those whose picture cannot be read.
pub struct Embedded {
    /// The items that were read.
    pub items: Vec<usize>,
    /// A row each.
    pub embeddings: Embeddings,
}

impl Embedded {
    fn new(items: Vec<usize>, dimension: usize, values: Vec<f32>) -> Result<Self> {
        if items.is_empty() {
            return Err(problem(
                "none of the pictures could be read",
                "`akin data check CONFIG` lists each with the reason",
            ));
        }
        let embeddings = Embeddings::new(dimension, values)
            .context("the encoder gave numbers that are not finite; train with smaller learning rates")?;
        Ok(Self { items, embeddings })
    }
}

/// Embeds the pictures of `items`, in their order.
pub fn embed(
    encoder: &Encoder,
    pictures: &Pictures,
    items: &[usize],
    device: &Device,
    progress: Progress,
) -> Result<Embedded> {
    let bar = progress.bar("Embedding", items.len() as u64);
    let encoder = encoder.valid();
    let forward = |images| encoder.forward(images);
    let (read, values) = rows(&encoder, pictures, items, device, &bar, forward)?;
    Embedded::new(read, encoder.dimension(), values)
}

/// Embeds `items` from their features, where those are there already, or else from their pictures.
pub fn embed_items(
    encoder: &Encoder,
    pictures: &Pictures,
    features: Option<&Features>,
    items: &[usize],
    device: &Device,
    progress: Progress,
) -> Result<Embedded> {
    match features {
        Some(features) => embed_features(encoder, features, items, device),
        None => embed(encoder, pictures, items, device, progress),
    }
}

fn embed_features(
    encoder: &Encoder,
    features: &Features,
    items: &[usize],
    device: &Device,
) -> Result<Embedded> {
    let encoder = encoder.valid();
    let device = device.clone().without_autodiff();
    let read: Vec<usize> = items.iter().copied().filter(|&item| features.has(item)).collect();
    let mut values = Vec::with_capacity(read.len() * encoder.dimension());
    for batch in read.chunks(BATCH) {
        values.extend(numbers(encoder.embed_features(features.batch(batch, &device)))?);
    }
    Embedded::new(read, encoder.dimension(), values)
}

/// What `forward` makes of the pictures of `items`, row after row, and the items that could be read.
/// `encoder` is one that does not train.
pub fn rows(
    encoder: &Encoder,
    pictures: &Pictures,
    items: &[usize],
    device: &Device,
    bar: &Bar,
    forward: impl Fn(Tensor<4>) -> Tensor<2>,
) -> Result<(Vec<usize>, Vec<f32>)> {
    let device = device.clone().without_autodiff();
    let (mut read, mut values) = (Vec::with_capacity(items.len()), Vec::new());
    for batch in items.chunks(BATCH) {
        let (kept, views): (Vec<usize>, Vec<Pixels>) =
            batch.par_iter().filter_map(|&item| Some((item, view(encoder, pictures, item)?))).unzip();
        if !views.is_empty() {
            values.extend(numbers(forward(encoder.batch(&views, &device)))?);
        }
        read.extend(kept);
        bar.advance(batch.len() as u64);
    }
    Ok((read, values))
}

/// What the encoder sees of an item; none if its picture cannot be read, or not be brought to size.
pub fn view(encoder: &Encoder, pictures: &Pictures, item: usize) -> Option<Pixels> {
    encoder.preprocessing().view(&*pictures.get(item)?).ok()
}

fn numbers(rows: Tensor<2>) -> Result<Vec<f32>> {
    rows.into_data().try_to_vec::<f32>().map_err(|error| anyhow!("{error:?}"))
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
    evaluate_splits(dataset, config, |items| embed(encoder, pictures, items, device, progress))
}

/// The queries of a data set, and the gallery where it is another set, which `embed` embeds.
pub fn embed_splits(
    dataset: &Dataset,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<(Embedded, Option<Embedded>)> {
    let queries = embed(&dataset.splits.query)?;
    let gallery = if dataset.splits.leave_one_out() { None } else { Some(embed(&dataset.splits.gallery)?) };
    Ok((queries, gallery))
}

/// Scores the evaluation splits of a data set, which `embed` embeds.
pub fn evaluate_splits(
    dataset: &Dataset,
    config: &EvaluationConfig,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<Evaluation> {
    let (queries, gallery) = embed_splits(dataset, embed)?;
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
