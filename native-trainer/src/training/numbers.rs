//! The numbers of a step, all of which have to be finite.

use akin_base::problem::numbers_problem;
use akin_core::encoder::{Encoder, Precision};
use akin_core::losses::Loss;
use anyhow::{Result, anyhow};
use burn::tensor::{Device, Tensor};

use crate::pictures::forward::to_vec;
use crate::pictures::loader::Pictures;
use crate::runs::magnitude::{Weights, weight_magnitude};
use crate::training::optimizer::GradientMagnitudes;

/// What a step computed. It stays on the device, so that the device can begin the next step before these numbers are
/// read.
pub(super) struct StepNumbers {
    /// The step, counted from 1.
    step: u64,
    /// The items of the batch.
    items: Vec<usize>,
    /// Their embeddings, [B, d].
    embeddings: Tensor<2>,
    names: Vec<&'static str>,
    /// The loss, and the magnitudes of `names`.
    sums: Tensor<1>,
}

impl StepNumbers {
    /// The numbers of a step. `encoder` and `loss_module` are those after it.
    pub(super) fn new(
        step: u64,
        items: Vec<usize>,
        embeddings: Tensor<2>,
        loss: Tensor<1>,
        gradients: GradientMagnitudes,
        encoder: &Encoder,
        loss_module: &Loss,
    ) -> Self {
        // A frozen backbone has no gradient, and its weights do not change.
        let backbone =
            gradients.backbone.is_some().then(|| weight_magnitude(&encoder.backbone, Weights::All));
        let sums = [
            ("the gradient of the backbone", gradients.backbone),
            ("the gradient of the head", gradients.head),
            ("the gradient of the proxies", gradients.proxies),
            ("the weights of the backbone", backbone.flatten()),
            ("the weights of the head", weight_magnitude(&encoder.head, Weights::All)),
            ("the proxies", weight_magnitude(loss_module, Weights::Learning)),
        ];
        let (names, mut values): (Vec<_>, Vec<_>) =
            sums.into_iter().filter_map(|(name, sum)| Some((name, sum?))).unzip();
        values.insert(0, loss);
        Self { step, items, embeddings, names, sums: Tensor::cat(values, 0) }
    }

    /// The numbers of a step without a picture that could be read.
    pub(super) fn none(step: u64, device: &Device) -> Self {
        let (embeddings, sums) = (Tensor::zeros([0, 1], device), Tensor::zeros([1], device));
        Self { step, items: Vec::new(), embeddings, names: Vec::new(), sums }
    }

    /// The loss. Waits until the device has done the step.
    ///
    /// # Errors
    ///
    /// A number that is NaN or infinite. The message names the step, what is not finite, and the pictures. `saved` is the
    /// step of the last checkpoint, which is kept.
    pub(super) fn check(self, pictures: &Pictures, precision: Precision, saved: Option<u64>) -> Result<f64> {
        let Self { step, items, embeddings, names, sums } = self;
        let sums = to_vec(sums)?;
        let (loss, sums) = sums.split_first().ok_or_else(|| anyhow!("a step has no loss"))?;
        if loss.is_finite() && sums.iter().all(|sum| sum.is_finite()) {
            return Ok(f64::from(*loss));
        }
        let rows = to_vec(embeddings)?;
        let dimension = (rows.len() / items.len().max(1)).max(1);
        let flawed = |row: &[f32]| row.iter().any(|number| !number.is_finite());
        let flawed: Vec<usize> = rows
            .chunks(dimension)
            .zip(&items)
            .filter(|(row, _)| flawed(row))
            .map(|(_, &item)| item)
            .collect();
        let mut what = Vec::new();
        if !flawed.is_empty() {
            what.push(format!("the embeddings of {} of {} pictures", flawed.len(), items.len()));
        }
        let others = names.iter().zip(sums).filter(|(_, sum)| !sum.is_finite());
        what.extend(others.map(|(name, _)| (*name).to_owned()));
        let named = if flawed.is_empty() { &items } else { &flawed };
        let paths: Vec<String> =
            named.iter().map(|&item| pictures.path(item).display().to_string()).collect();
        let what = match &what[..] {
            [] => String::new(),
            what => format!("\nNaN or infinite: {}", what.join(", ")),
        };
        let kept = match saved {
            Some(step) => format!("; the checkpoint after step {step} is kept"),
            None => String::new(),
        };
        let hint = if step == 1 && (!loss.is_finite() || !flawed.is_empty()) {
            "no weight has changed yet: check the numbers in [loss] and model.weights"
        } else if !flawed.is_empty() && flawed.len() < items.len() {
            "lower the learning rates or set optimizer.clip_norm, and look at these pictures"
        } else {
            "lower the learning rates, or set optimizer.clip_norm, and check the numbers in [loss]"
        };
        let reach = match precision {
            Precision::Single => "",
            Precision::Half => "; or set run.precision to single, since half precision ends at 65,504",
        };
        Err(numbers_problem(
            format!("the loss is {loss} at step {step}{what}\npictures of the step:\n{}", listed(&paths)),
            format!("{hint}{reach}{kept}"),
        ))
    }
}

/// The first three paths and the number of the others, a line each.
fn listed(paths: &[String]) -> String {
    const LISTED: usize = 3;
    let more = paths.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("and {more} more"));
    paths.iter().take(LISTED).cloned().chain(more).collect::<Vec<_>>().join("\n")
}
