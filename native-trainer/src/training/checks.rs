//! What can be said of a training from its config, before a step: settings without effect, batches without positives, and
//! a loss that cannot be made.

use akin_core::losses::{Batch, Draws, Loss, LossContext, Objective};
use akin_core::random::normal;
use akin_core::taxonomy::Labels;
use anyhow::Result;
use burn::tensor::{Device, Tensor, TensorData};

use crate::config::{Config, OptimizerConfig, SamplerConfig};
use crate::data::Dataset;
use crate::runs::run::encoder_config;
use crate::training::optimizer::has_proxies;

/// A sentence for each setting of a config that can never take effect, as [`Config::unused_settings`], for the learning rate
/// of proxies if the loss has none, and for batches whose labels have no effect on the loss.
pub fn unused_settings(config: &Config, steps_per_epoch: Option<u64>) -> Vec<String> {
    let mut sentences = config.unused_settings(steps_per_epoch);
    let rate = config.optimizer.lr_proxies;
    if rate != OptimizerConfig::default().lr_proxies && config.why_unused(PROXIES_RATE).is_none() {
        sentences.extend(
            why_unused(config, PROXIES_RATE).map(|why| format!("{PROXIES_RATE} is {rate}, but {why}")),
        );
    }
    sentences.extend(useless_batches(config));
    sentences
}

/// Which images the batches of a config lack, if the loss tells classes apart only by these.
fn useless_batches(config: &Config) -> Option<String> {
    let (setting, lacking, classes): (_, _, &[u32]) = match &config.sampler {
        SamplerConfig::Random { batch_size: Some(1) } => ("sampler.batch_size is 1", "two images", &[0]),
        SamplerConfig::Random { .. } | SamplerConfig::WholeSet {} => return None,
        SamplerConfig::Classes { classes_per_batch, images_per_class, level }
        | SamplerConfig::ClassPairs { classes_per_batch, images_per_class, level, .. } => {
            let draws_finest = level.is_none() || level.as_ref() == config.data.levels().last();
            match (classes_per_batch, images_per_class) {
                (Some(1), 1) => {
                    ("sampler.classes_per_batch and sampler.images_per_class are 1", "two images", &[0])
                }
                (_, 1) => ("sampler.images_per_class is 1", "two images of one class", &[0, 1, 2, 3]),
                (Some(1), _) if draws_finest => {
                    ("sampler.classes_per_batch is 1", "images of two classes", &[0, 0, 0, 0])
                }
                _ => return None,
            }
        }
    };
    let ignores_labels = ignores_labels(config, classes).unwrap_or(false);
    ignores_labels.then(|| {
        let loss = config.loss.name();
        format!("{setting}, so no batch has {lacking}, and the labels have no effect on the loss {loss}")
    })
}

/// Whether a loss without proxies keeps its value when the images of a batch get other classes. `classes` has the class of
/// each image, one of four invented classes.
fn ignores_labels(config: &Config, classes: &[u32]) -> Result<bool> {
    let mut losses = [loss_of_invented_classes(config, 4)?, loss_of_invented_classes(config, 4)?];
    if has_proxies(&losses[0]) || (0..3).any(|epoch| losses[0].needs_training_set(epoch)) {
        return Ok(false);
    }
    let (levels, dimension) = (config.data.levels().len(), encoder_config(config).dimension());
    // Embeddings that lie apart, and ever closer together, since margins leave out pairs. A memory compares several batches.
    for (place, common) in [0.0, 0.5, 2.0, 8.0].into_iter().enumerate() {
        // Memories begin late.
        let draws = Draws { seed: 0, step: (1 << 32) + place as u64 };
        let mut values = normal(&mut draws.stream("embeddings"), classes.len() * dimension, 1.0);
        for row in values.chunks_mut(dimension) {
            row[0] += common * (dimension as f32).sqrt();
            let norm = row.iter().map(|value| value * value).sum::<f32>().sqrt();
            // Inside the Poincaré ball.
            row.iter_mut().for_each(|value| *value *= 0.9 / norm);
        }
        let data = TensorData::new(values, [classes.len(), dimension]);
        let embeddings = Tensor::<2>::from_data(data, &Device::flex().autodiff());
        let value_of = |loss: &mut Loss, shift: usize| -> Result<f32> {
            let rows = classes.iter().flat_map(|class| invented_class((class + shift as u32) % 4, levels));
            let labels = Labels::new(levels, rows.collect())?;
            loss.before_step(draws);
            let value = loss.forward(&Batch::new(embeddings.clone(), &labels).with_draws(draws));
            loss.after_step(embeddings.clone(), &labels);
            Ok(value.into_scalar::<f32>())
        };
        let [loss, other] = &mut losses;
        let (value, shifted) = (value_of(loss, 0)?, value_of(other, place + 1)?);
        let is_same = (value - shifted).abs() <= 1e-5 * value.abs().max(1.0);
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Why a setting has no effect, as [`Config::why_unused`]; also the learning rate of proxies if the loss has none.
pub fn why_unused(config: &Config, key: &str) -> Option<String> {
    let unused = || {
        (key == PROXIES_RATE && !may_have_proxies(config))
            .then(|| format!("the loss {} has no proxies", config.loss.name()))
    };
    config.why_unused(key).or_else(unused)
}

/// The setting that only proxies have a use for.
pub const PROXIES_RATE: &str = "optimizer.lr_proxies";

/// Whether the loss of a config has proxies. Whether it has does not depend on the classes, so that a few invented ones do.
/// A loss that cannot be made of them may have proxies.
fn may_have_proxies(config: &Config) -> bool {
    loss_of_invented_classes(config, 4).map_or(true, |loss| has_proxies(&loss))
}

/// Checks the settings of a loss without any data.
///
/// # Errors
///
/// A setting that is wrong for any number of classes.
pub fn check_loss_settings(config: &Config) -> Result<()> {
    let loss_of = |classes| loss_of_invented_classes(config, classes);
    match (loss_of(4), loss_of(8)) {
        (Err(error), Err(other)) if error.to_string() == other.to_string() => Err(error),
        _ => Ok(()),
    }
}

/// The loss of a config for some invented classes, in pairs.
fn loss_of_invented_classes(config: &Config, classes: u32) -> Result<Loss> {
    let levels = config.data.levels().len();
    let rows = (0..classes).flat_map(|class| invented_class(class, levels));
    let classes = Labels::new(levels, rows.collect())?;
    // Only a device that differentiates tells which weights learn.
    let (encoder, device) = (encoder_config(config), Device::flex().autodiff());
    let geometry = encoder.geometry();
    let context = LossContext::new(&classes, encoder.dimension(), &geometry, 0, &device);
    Ok(config.loss.init(&context)?)
}

/// The labels of an invented fine class, coarse to fine.
fn invented_class(class: u32, levels: usize) -> impl Iterator<Item = u32> {
    (1..=levels).map(move |level| if level == levels { class } else { class / 2 })
}

/// A sentence for each setting of which only the data tell that it can never take effect: by the number of steps in an
/// epoch, and by the images of the data set.
pub fn late_settings(config: &Config, dataset: &Dataset, steps_per_epoch: usize) -> Vec<String> {
    let known = config.unused_settings(None);
    let mut late = config.unused_settings(Some(steps_per_epoch as u64));
    late.retain(|sentence| !known.contains(sentence));
    late.extend(dataset.unused_settings(&config.selection()));
    late
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Table;

    use super::*;
    use crate::config::Source;

    #[test]
    fn batches_without_positives_are_named_unless_the_loss_has_other_uses_of_the_labels() {
        let text = "[run]\nepochs = 10\n[data]\nkind = 'csv'\npath = 'x'\nlevels = ['a', 'b']\n[model]\n\
                    backbone = { kind = 'small_resnet' }\nhead = { dimension = 8 }\n[loss]\nkind = 'smooth_ap'\n";
        let warnings = |loss: &str, sampler: &str| {
            let sets = [format!("loss={{kind='{loss}'}}"), format!("sampler={{{sampler}}}")];
            let source = Source::from_text(Path::new("x.toml"), text.into(), None, &sets).unwrap();
            unused_settings(&source.config(&Table::new()).unwrap(), None)
        };
        let none = Vec::<String>::new();
        for loss in
            ["smooth_ap", "triplet_margin", "multi_similarity", "fast_ap", "contrastive", "roadmap", "margin"]
        {
            let [one_image] = &warnings(loss, "images_per_class=1")[..] else { panic!("{loss}") };
            assert!(
                one_image.ends_with(&format!("the labels have no effect on the loss {loss}")),
                "{one_image}"
            );
            let [one_class] = &warnings(loss, "classes_per_batch=1")[..] else { panic!("{loss}") };
            assert!(one_class.starts_with("sampler.classes_per_batch is 1, so no batch has images of two"));
            assert_eq!(warnings(loss, "kind='random',batch_size=1").len(), 1, "{loss}");
            assert_eq!(warnings(loss, "images_per_class=2,classes_per_batch=2"), none);
        }
        // Classes of a common parent are positives, proxies belong to classes, and a memory has images of other batches.
        for loss in ["hap_surrogate", "proxy_anchor", "norm_softmax", "cross_batch_memory"] {
            assert_eq!(warnings(loss, "images_per_class=1"), none);
        }
    }
}
