//! Items → embeddings, and the evaluation of a data set.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use akin_base::problem::{a_few, numbers_problem, problem};
use akin_base::progress::{Bar, Progress};
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_core::embeddings::{Embeddings, Rows, are_all_equal};
use akin_core::encoder::Encoder;
use akin_core::evaluate::{
    self, EvaluationConfig, Execution, Labelled, Report, Sets, Step, evaluate_without_junk,
};
use akin_core::pair_sums::PairSums;
use akin_core::similarity::Similarity;
use anyhow::Result;
use burn::module::Module;
use burn::tensor::Device;

use super::certainty::Certainty;
use crate::config::device;
use crate::data::Dataset;
use crate::pictures::features::Features;
use crate::pictures::forward::{BATCH, forward_pictures, to_vec};
use crate::pictures::loader::Pictures;

/// The embeddings of the items whose picture could be read.
pub struct Embedded {
    /// The items, in the order asked for.
    pub items: Vec<usize>,
    /// One embedding per item.
    pub embeddings: Embeddings,
}

impl Embedded {
    fn new(items: Vec<usize>, dimension: usize, values: Vec<f32>, pictures: &Pictures) -> Result<Self> {
        if items.is_empty() {
            return Err(problem(
                "none of the pictures can be read",
                "`akin data check CONFIG` lists each with the reason",
            ));
        }
        let flawed = |row: &[f32]| row.iter().any(|number| !number.is_finite());
        let rows = values.chunks(dimension).zip(&items);
        let flawed: Vec<String> = rows
            .filter(|(row, _)| flawed(row))
            .map(|(_, &item)| pictures.path(item).display().to_string())
            .collect();
        if !flawed.is_empty() {
            return Err(numbers_problem(
                format!(
                    "the embeddings of {} of {} have NaN or infinity: {}",
                    count(flawed.len()),
                    counted(items.len(), "picture", "pictures"),
                    a_few(&flawed)
                ),
                "the weights are finite, so they are too large: train again with lower learning rates or with \
                 optimizer.clip_norm",
            ));
        }
        Ok(Self { items, embeddings: Embeddings::new(dimension, values)? })
    }
}

/// Embeds the pictures of `items`, in their order.
///
/// # Errors
///
/// No picture that can be read, or embeddings that are not finite.
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
    let (readable, values) = forward_pictures(&encoder, pictures, items, device, &bar, forward)?;
    Embedded::new(readable, encoder.dimension(), values, pictures)
}

/// Embeds `items` from their features if there are any, else from their pictures.
///
/// # Errors
///
/// As [`embed`].
pub fn embed_items(
    encoder: &Encoder,
    pictures: &Pictures,
    features: Option<&Features>,
    items: &[usize],
    device: &Device,
    progress: Progress,
) -> Result<Embedded> {
    match features {
        Some(features) => embed_features(encoder, pictures, features, items, device),
        None => embed(encoder, pictures, items, device, progress),
    }
}

fn embed_features(
    encoder: &Encoder,
    pictures: &Pictures,
    features: &Features,
    items: &[usize],
    device: &Device,
) -> Result<Embedded> {
    let encoder = encoder.valid();
    let device = device.clone().without_autodiff();
    let readable: Vec<usize> = items.iter().copied().filter(|&item| features.contains(item)).collect();
    let mut values = Vec::with_capacity(readable.len() * encoder.dimension());
    for batch in readable.chunks(BATCH) {
        values.extend(to_vec(encoder.embed_features(features.batch(batch, &device)))?);
    }
    Embedded::new(readable, encoder.dimension(), values, pictures)
}

/// The embeddings of the evaluation splits, and their report.
pub struct Evaluation {
    /// The queries. Without a gallery of its own they are the gallery too.
    pub queries: Embedded,
    /// The gallery, if it is a separate split.
    pub gallery: Option<Embedded>,
    /// The scores.
    pub report: Report,
}

impl Evaluation {
    /// How far the answers of the gallery hold. `None` for a gallery of fewer than two items, and with junk, which only some
    /// queries leave out.
    ///
    /// # Errors
    ///
    /// Embeddings that the similarity is not defined for.
    pub fn certainty(&self, dataset: &Dataset) -> Result<Option<Certainty>> {
        if !dataset.junk.is_empty() {
            return Ok(None);
        }
        let levels = dataset.taxonomy.level_names();
        let similarity = self.report.config.similarity;
        let labels = dataset.labels.select(&self.queries.items);
        let queries = Labelled { embeddings: &self.queries.embeddings, labels: &labels };
        let Some(gallery) = &self.gallery else {
            return Certainty::measure(levels, None, queries, similarity);
        };
        let labels = dataset.labels.select(&gallery.items);
        let gallery = Labelled { embeddings: &gallery.embeddings, labels: &labels };
        Certainty::measure(levels, Some(queries), gallery, similarity)
    }
}

/// Embeds the evaluation splits of a data set from their pictures and scores them. If the device is a GPU, it adds up for the
/// scores.
///
/// # Errors
///
/// As [`embed`], a config that does not fit the data, and a device that fails.
pub fn evaluate_dataset(
    encoder: &Encoder,
    dataset: &Dataset,
    pictures: &Pictures,
    config: &EvaluationConfig,
    device: &Device,
    progress: Progress,
) -> Result<Evaluation> {
    let splits = embed_splits(dataset, |items| embed(encoder, pictures, items, device, progress))?;
    score(dataset, config, progress, splits, device::pair_sums(device).as_deref())
}

/// Warns if everything that is ranked has the same embedding.
///
/// # Errors
///
/// The embeddings cannot be read.
pub fn warn_if_equal(ranked: &dyn Rows) -> Result<()> {
    if are_all_equal(ranked)? {
        terminal::warn(format_args!(
            "all {} embeddings that are ranked are equal, so that every ranking is one of ties and no metric says \
             anything about the model",
            count(ranked.len())
        ));
    }
    Ok(())
}

/// Embeds the queries and, if it is a separate split, the gallery, with `embed`.
///
/// # Errors
///
/// The errors of `embed`.
pub fn embed_splits(
    dataset: &Dataset,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<(Embedded, Option<Embedded>)> {
    let queries = embed(&dataset.splits.query)?;
    let gallery = if dataset.splits.leave_one_out() { None } else { Some(embed(&dataset.splits.gallery)?) };
    Ok((queries, gallery))
}

/// Embeds the evaluation splits of a data set with `embed` and scores them.
///
/// # Errors
///
/// The errors of `embed`, and a config that does not fit the data.
pub fn evaluate_splits(
    dataset: &Dataset,
    config: &EvaluationConfig,
    progress: Progress,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<Evaluation> {
    score(dataset, config, progress, embed_splits(dataset, embed)?, None)
}

/// Scores the embeddings of the queries and, if it is a separate split, the gallery.
fn score(
    dataset: &Dataset,
    config: &EvaluationConfig,
    progress: Progress,
    (queries, gallery): (Embedded, Option<Embedded>),
    device: Option<&dyn PairSums>,
) -> Result<Evaluation> {
    warn_if_equal(&gallery.as_ref().unwrap_or(&queries).embeddings)?;
    let query_labels = dataset.labels.select(&queries.items);
    let gallery_labels = gallery.as_ref().map(|gallery| dataset.labels.select(&gallery.items));
    if !dataset.junk.is_empty()
        && let Some((ranked, gallery_labels)) = gallery.as_ref().zip(gallery_labels.as_ref())
    {
        let bar = progress.bar("Ranking", queries.items.len() as u64);
        let junk: Vec<&[u32]> = ranked.items.iter().map(|&item| dataset.junk[item].as_slice()).collect();
        let sets = Sets {
            queries: &queries.embeddings,
            query_labels: &query_labels,
            gallery: &ranked.embeddings,
            gallery_labels,
            junk: &junk,
        };
        let levels = dataset.taxonomy.level_names();
        let advance = |step| {
            if let Step::Ranked(queries) = step {
                bar.advance(queries as u64);
            }
        };
        let execution = Execution { progress: &advance, ..Execution::default() };
        let report = evaluate_without_junk(levels, &sets, config, &execution)?;
        drop(bar);
        return Ok(Evaluation { report, queries, gallery });
    }
    let bars = EvaluationBars::new(
        progress,
        [
            queries.items.len() + gallery.as_ref().map_or(0, |gallery| gallery.items.len()),
            queries.items.len(),
        ],
        config,
    );
    let report = evaluate::Evaluation {
        levels: dataset.taxonomy.level_names(),
        queries: Labelled { embeddings: &queries.embeddings, labels: &query_labels },
        gallery: gallery
            .as_ref()
            .zip(gallery_labels.as_ref())
            .map(|(gallery, labels)| Labelled { embeddings: &gallery.embeddings, labels }.into()),
        places: None,
        config,
        execution: Execution { progress: &|step| bars.advance(step), device, ..Execution::default() },
    }
    .report()?;
    bars.say_device(device, config);
    Ok(Evaluation { queries, gallery, report })
}

/// The progress of an evaluation.
pub struct EvaluationBars {
    progress: Progress,
    queries: usize,
    /// None once the first query is ranked.
    checking: Mutex<Option<Bar>>,
    ranking: OnceLock<Bar>,
    left_to_cpu: AtomicU64,
}

impl EvaluationBars {
    /// Bars for these numbers of embeddings to check and of queries to rank.
    pub fn new(progress: Progress, [embeddings, queries]: [usize; 2], config: &EvaluationConfig) -> Self {
        let checking = Mutex::new(Some(progress.bar("Checking", embeddings as u64)));
        // The gap ranks every query once over the whole set, and once over the batches together.
        let rankings = if config.decomposability_gap.is_some() { 3 } else { 1 };
        Self {
            progress,
            queries: rankings * queries,
            checking,
            ranking: OnceLock::new(),
            left_to_cpu: AtomicU64::new(0),
        }
    }

    /// Shows what is done.
    pub fn advance(&self, step: Step) {
        match step {
            Step::Checked(embeddings) => {
                self.checking().iter().for_each(|bar| bar.advance(embeddings as u64));
            }
            Step::Ranked(queries) => self.ranking().advance(queries as u64),
            Step::LeftToProcessor(pairs) => {
                self.left_to_cpu.fetch_add(pairs, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Says that the device, if there is one, has added up, and how many pairs it has left to the CPU. Bits are counted on
    /// the CPU.
    pub fn say_device(&self, device: Option<&dyn PairSums>, config: &EvaluationConfig) {
        let Some(device) = device.filter(|_| config.similarity != Similarity::Hamming) else { return };
        let name = device.name();
        let left = counted(self.left_to_cpu.load(Ordering::Relaxed) as usize, "pair", "pairs");
        self.progress.say("Added up", &format!("on {name}, which left {left} to the CPU"));
    }

    fn checking(&self) -> MutexGuard<'_, Option<Bar>> {
        self.checking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second bar, which takes the place of the first.
    fn ranking(&self) -> &Bar {
        self.ranking.get_or_init(|| {
            *self.checking() = None;
            self.progress.bar("Ranking", self.queries as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_whose_embeddings_are_not_finite_are_named() {
        let pictures = Pictures::new(["a.png", "b.png", "c.png"].map(Into::into).to_vec());
        let embed = |values: Vec<f32>| Embedded::new(vec![2, 0, 1], 2, values, &pictures);
        assert!(embed(vec![0.0; 6]).is_ok());
        let error = embed(vec![0.0, f32::NAN, 0.0, 0.0, f32::INFINITY, 0.0]).err().unwrap();
        let message = "the embeddings of 2 of 3 pictures have NaN or infinity: c.png, b.png";
        assert_eq!(error.to_string(), message);
    }
}
