//! The models of all folds on the evaluation splits, apart and as one.
//!
//! As one, the embedding of an image is the concatenation of its embeddings by all models. Embeddings that are compared by
//! cosine are made of unit length first, so that each model counts the same (Musgrave et al., section 4.3). There is no such
//! concatenation of points of a Poincaré ball.

use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_base::progress::Progress;
use akin_core::digest::sha256;
use akin_core::embeddings::Embeddings;
use akin_core::similarity::Similarity;
use anyhow::Result;
use serde_json::json;

use super::results::SeedReports;
use crate::comparison::compare::planned_run::{PlannedRun, Provenance};
use crate::config::SplitConfig;
use crate::config::device;
use crate::data::Dataset;
use crate::evaluation::embedding::{Embedded, Evaluation, embed_items, evaluate_splits};
use crate::pictures::features::Features;
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, Which};

/// Evaluates the trained models of one seed, one for each fold, on the evaluation splits of the config. Reads the
/// evaluation from the file beside their runs if it is still right, and writes it otherwise.
///
/// # Errors
///
/// Runs, data or weights that cannot be read; a file that cannot be written.
pub fn evaluate_models(runs: &[PlannedRun], progress: Progress) -> Result<SeedReports> {
    let config = &runs[0].config;
    let mut selection = config.selection();
    selection.split = SplitConfig { fold: None, ..selection.split };
    let dataset = Dataset::load_to_evaluate(&selection)?;
    let which = if config.run.evaluate_every_epochs > 0 { Which::Best } else { Which::Last };
    let file = runs[0].directory().parent().unwrap_or(runs[0].directory()).with_extension("json");
    let key = key(runs, which, &dataset)?;
    if let Ok(bytes) = read_regular_file(&file)
        && let Ok(reports) = serde_json::from_slice::<SeedReports>(&bytes)
        && reports.key == key
    {
        return Ok(reports);
    }
    let device = device::open(config.run.device)?;
    let pictures = Pictures::of(&dataset);
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for run in runs {
        let run = Run::open(run.directory())?;
        let encoder = run.encoder(which, &device)?;
        let features = match config.model.freeze_backbone {
            true => Some(Features::load(&run.config, &encoder, &dataset, &pictures, &device, progress)?),
            false => None,
        };
        let embed =
            |items: &[usize]| embed_items(&encoder, &pictures, features.as_ref(), items, &device, progress);
        let mut evaluation = evaluate_splits(&dataset, &config.eval, progress, embed)?;
        evaluation.report.per_query.clear();
        evaluations.push(evaluation);
    }
    let concatenated = match config.eval.similarity {
        Similarity::Poincare { .. } => None,
        similarity => {
            // Without a gallery of its own, only the queries are asked for.
            let embed = |items: &[usize]| {
                let parts: Vec<&Embedded> = evaluations
                    .iter()
                    .map(|evaluation| match &evaluation.gallery {
                        Some(gallery) if items == dataset.splits.gallery => gallery,
                        _ => &evaluation.queries,
                    })
                    .collect();
                concatenate(&parts, similarity == Similarity::Cosine)
            };
            let mut report = evaluate_splits(&dataset, &config.eval, progress, embed)?.report;
            report.per_query.clear();
            Some(report)
        }
    };
    let separated = evaluations.into_iter().map(|evaluation| evaluation.report).collect();
    let reports = SeedReports { key, separated, concatenated };
    let text = serde_json::to_string_pretty(&reports)?;
    write_atomic(&file, |out| out.write_all(text.as_bytes()))?;
    Ok(reports)
}

/// What the evaluation of some models depends on.
fn key(runs: &[PlannedRun], which: Which, dataset: &Dataset) -> Result<String> {
    let name = match which {
        Which::Best => "best.akin",
        Which::Last => "encoder.bpk",
    };
    let digest = |run: &PlannedRun| -> Result<String> {
        let path = run.directory().join(name);
        let bytes = read_regular_file(&path).advise(
            || format!("the trained weights {} cannot be read", path.display()),
            "remove the folder of the run to train it again",
        )?;
        Ok(sha256(&bytes))
    };
    let models = runs.iter().map(digest).collect::<Result<Vec<_>>>()?;
    let all =
        json!({ "models": models, "eval": runs[0].config.eval, "made": Provenance::now(dataset.digest()) });
    Ok(sha256(all.to_string().as_bytes()))
}

/// Embeddings of the same items one after another, each of unit length first if `normalise` is set.
fn concatenate(parts: &[&Embedded], normalise: bool) -> Result<Embedded> {
    let items = &parts[0].items;
    if parts.iter().any(|part| part.items != *items) {
        return Err(problem(
            "some pictures could be read for one model and not for another",
            "do not change the data while models are evaluated; run the same command again",
        ));
    }
    let dimension: usize = parts.iter().map(|part| part.embeddings.dimension()).sum();
    let mut values = Vec::with_capacity(items.len() * dimension);
    for place in 0..items.len() {
        for part in parts {
            let row = part.embeddings.row(place);
            let squares: f64 = row.iter().map(|&value| f64::from(value).powi(2)).sum();
            let length = if normalise && squares > 0.0 { squares.sqrt() } else { 1.0 };
            values.extend(row.iter().map(|&value| (f64::from(value) / length) as f32));
        }
    }
    Ok(Embedded { items: items.clone(), embeddings: Embeddings::new(dimension, values)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(items: &[usize], dimension: usize, values: &[f32]) -> Embedded {
        let embeddings = Embeddings::new(dimension, values.to_vec()).unwrap();
        Embedded { items: items.to_vec(), embeddings }
    }

    #[test]
    fn each_model_counts_the_same_in_the_concatenation() {
        let one = embedded(&[4, 7], 2, &[3.0, 4.0, 0.0, 2.0]);
        let other = embedded(&[4, 7], 1, &[-5.0, 0.5]);
        let both = concatenate(&[&one, &other], true).unwrap();
        assert_eq!(both.embeddings.values(), [0.6, 0.8, -1.0, 0.0, 1.0, 1.0]);
        let both = concatenate(&[&one, &other], false).unwrap();
        assert_eq!(both.embeddings.values(), [3.0, 4.0, -5.0, 0.0, 2.0, 0.5]);
        assert!(concatenate(&[&one, &embedded(&[4, 8], 1, &[1.0, 1.0])], true).is_err());
    }
}
