//! A file of published weights: which backbone they belong to, which tensors are its weights, and which layer may be a head.
//!
//! A weight is found by its published name. All names may begin with the same prefix, such as `model.` or
//! `_orig_mod.backbone.`. Files also have what stood behind the backbone: a classifier or a projection.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use burn::module::Module;
use burn::tensor::Device;

use super::catalogue::{BACKBONES, Backbone, BackboneConfig};
use super::entry::BackboneEntry;
use super::weight_file::WeightFile;
use super::weights::{Replaced, Weight, fits};
use crate::{Error, Kind, Result};

/// How the names of layers behind a backbone begin.
const HEADS: [&str; 10] =
    ["classifier", "criterion", "embedding", "fc", "head", "last_linear", "logit", "loss", "proj", "proxies"];

/// The numbers of classes of published classifiers: those of ImageNet-1k and of the forms of ImageNet-21k.
const CLASSES: [usize; 5] = [1000, 10_450, 11_221, 21_841, 21_843];

/// The most names that an error lists of a kind.
const LISTED: usize = 3;

/// A file of weights that another program wrote.
#[derive(Clone, Debug)]
pub struct PublishedWeights {
    file: WeightFile,
    /// The file with the names of timm in place of those of open_clip, of Hugging Face and of others.
    timm: OnceLock<WeightFile>,
}

/// A linear layer of a file that maps the features of a backbone to d numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLayer {
    /// Its name in the file, such as `fc`.
    pub name: String,
    /// d, the numbers that it computes.
    pub dimension: usize,
    /// The name of the layer normalisation before it, if there is one.
    pub layer_norm: Option<String>,
    /// Whether it is a published classifier, by its number of classes.
    pub is_classifier: bool,
}

impl PublishedWeights {
    /// Reads the bytes of a file: `.safetensors`, or `.pth` as torch writes it, which is read as data and never executed.
    ///
    /// # Errors
    ///
    /// As [`WeightFile::parse`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        Ok(Self { file: WeightFile::parse(bytes)?, timm: OnceLock::new() })
    }

    /// The number of tensors of the file.
    pub fn count(&self) -> usize {
        self.file.tensors().len()
    }

    /// The file as a backbone names its weights.
    fn file(&self, entry: &BackboneEntry) -> &WeightFile {
        match entry.weights {
            Some("timm") => {
                self.timm.get_or_init(|| self.file.clone().without_common_prefix().with_timm_names())
            }
            _ => &self.file,
        }
    }

    /// The backbones whose weights all stand in the file, each with its shape. Of those the ones with the most weights:
    /// several if they differ only in how they were trained.
    pub fn backbones(&self, device: &Device) -> Vec<&'static BackboneEntry> {
        let mut found = Vec::new();
        for entry in BACKBONES.iter().filter(|entry| entry.weights.is_some()) {
            let config = BackboneConfig::named(entry.name).expect("each entry has its variant's name");
            let weights = config.absent(device).expect("the defaults are in range").list_weights();
            let file = self.file(entry);
            let prefix = prefix(file, &weights);
            if weights.iter().all(|weight| has(file, &prefix, weight)) {
                found.push((weights.len(), entry));
            }
        }
        let most = found.iter().map(|&(count, _)| count).max();
        found.into_iter().filter(|&(count, _)| Some(count) == most).map(|(_, entry)| entry).collect()
    }

    /// Replaces the weights of a backbone by those of the file. Returns the names of the tensors that are not used, without
    /// those of published classifiers.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a backbone that has no published weights; [`Kind::Weights`] for tensors that are missing,
    /// unknown, of another shape or type, or not finite.
    pub fn load(&self, backbone: &mut Backbone) -> Result<Vec<String>> {
        let entry = backbone.entry();
        if entry.weights.is_none() {
            return Err(without_weights(entry));
        }
        let (file, weights) = (self.file(entry), backbone.list_weights());
        let prefix = prefix(file, &weights);
        let Replaced { network, used, missing, wrong, infinite } =
            backbone.clone().replace_weights(file, &prefix);
        let own: BTreeSet<&str> = weights.iter().map(|weight| first_part(&weight.name)).collect();
        let (unknown, unused): (Vec<&str>, Vec<&str>) =
            unused(file, &used).partition(|name| match name.strip_prefix(prefix.as_str()) {
                Some(name) => {
                    let first = first_part(name);
                    let stands_behind =
                        HEADS.iter().any(|head| first.starts_with(head)) && !own.contains(first);
                    !stands_behind && !is_classifier(entry, name)
                }
                None => false,
            });
        let faults: Vec<(&str, Vec<&str>)> = [
            ("missing", missing.iter().map(String::as_str).collect()),
            ("unknown", unknown),
            ("of another shape or type", wrong.iter().map(String::as_str).collect()),
        ]
        .into_iter()
        .filter(|(_, names): &(&str, Vec<&str>)| !names.is_empty())
        .collect();
        if !faults.is_empty() {
            let device = backbone.devices().pop().expect("a network has weights");
            let others = self.backbones(&device).into_iter().map(|other| other.name);
            return Err(misfit(
                entry,
                &faults,
                &others.filter(|name| *name != entry.name).collect::<Vec<_>>(),
            ));
        }
        if let Some(name) = infinite.first() {
            return Err(infinite_weights(name));
        }
        let is_published = |name: &str| {
            is_classifier(entry, name.strip_prefix(prefix.as_str()).unwrap_or(name))
                && file.tensors()[name].shape.first().is_some_and(|count| CLASSES.contains(count))
        };
        let unused = unused.into_iter().filter(|name| !is_published(name)).map(str::to_owned).collect();
        *backbone = network;
        Ok(unused)
    }

    /// The linear layers behind a backbone: those that take its F features.
    pub fn heads(&self, backbone: &Backbone, features: usize) -> Vec<LinearLayer> {
        let (file, weights) = (self.file(backbone.entry()), backbone.list_weights());
        let prefix = prefix(file, &weights);
        let used: BTreeSet<String> =
            weights.iter().map(|weight| format!("{prefix}{}", weight.name)).collect();
        let shape = |name: &str| file.tensors().get(name).map(|tensor| tensor.shape.as_slice());
        let layer_of = |name: &'_ str| name.strip_suffix(".weight").map(str::to_owned);
        let norms: Vec<String> = unused(file, &used)
            .filter_map(layer_of)
            .filter(|layer| {
                let is_vector = |part: &str| shape(&format!("{layer}.{part}")) == Some(&[features]);
                is_vector("weight") && is_vector("bias") && !is_vector("running_mean")
            })
            .collect();
        let parent = |layer: &str| layer.rsplit_once('.').map_or("", |(parent, _)| parent).to_owned();
        unused(file, &used)
            .filter_map(layer_of)
            .filter_map(|name| match shape(&format!("{name}.weight")) {
                Some(&[dimension, inputs]) if inputs == features => Some(LinearLayer {
                    dimension,
                    layer_norm: norms.iter().find(|norm| parent(norm) == parent(&name)).cloned(),
                    is_classifier: CLASSES.contains(&dimension),
                    name,
                }),
                _ => None,
            })
            .collect()
    }

    /// The linear layer of this name, as a head of `dimension` numbers, with or without layer normalisation.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a layer that is not there, or of another form.
    pub fn head(
        &self,
        name: &str,
        backbone: &Backbone,
        features: usize,
        dimension: usize,
        layer_norm: bool,
    ) -> Result<LinearLayer> {
        let heads = self.heads(backbone, features);
        let Some(layer) = heads.iter().find(|layer| layer.name == name) else {
            let names: Vec<&str> = heads.iter().map(|layer| layer.name.as_str()).collect();
            return Err(Error::new(
                Kind::Config,
                format!("the weights have no linear layer {name} that takes {features} features"),
                match names.as_slice() {
                    [] => "leave it out: the weights have no layer that could be the head".to_owned(),
                    names => format!("name one of these: {}", names.join(", ")),
                },
            ));
        };
        if (layer.dimension, layer.layer_norm.is_some()) != (dimension, layer_norm) {
            let norm =
                layer.layer_norm.as_ref().map_or("no layer normalisation", |_| "a layer normalisation");
            return Err(Error::new(
                Kind::Config,
                format!("the layer {name} computes {} numbers, with {norm} before it", layer.dimension),
                format!(
                    "set model.head to {{ dimension = {}, layer_norm = {} }}",
                    layer.dimension,
                    layer.layer_norm.is_some()
                ),
            ));
        }
        Ok(layer.clone())
    }

    /// W [d, F] and b [d] of a linear layer, with the scale γ and the shift β of its layer normalisation taken into them:
    /// W·diag(γ) and b + Wβ.
    ///
    /// # Errors
    ///
    /// [`Kind::Weights`] for numbers that are not floats or not finite.
    pub fn linear(&self, entry: &BackboneEntry, layer: &LinearLayer) -> Result<(Vec<f32>, Vec<f32>)> {
        let file = self.file(entry);
        let values = |name: String| match file.tensors().get(&name) {
            None => Ok(None),
            Some(tensor) => match file.values(tensor) {
                Some(values) if values.iter().all(|value| value.is_finite()) => Ok(Some(values)),
                _ => Err(infinite_weights(&name)),
            },
        };
        let mut weight = values(format!("{}.weight", layer.name))?.unwrap_or_default();
        let bias = values(format!("{}.bias", layer.name))?.filter(|bias| bias.len() == layer.dimension);
        let mut bias = bias.unwrap_or_else(|| vec![0.0; layer.dimension]);
        if let Some(norm) = &layer.layer_norm {
            let scale = values(format!("{norm}.weight"))?.unwrap_or_default();
            let shift = values(format!("{norm}.bias"))?.unwrap_or_default();
            for (row, bias) in weight.chunks_exact_mut(scale.len()).zip(&mut bias) {
                *bias += row.iter().zip(&shift).map(|(weight, shift)| weight * shift).sum::<f32>();
                row.iter_mut().zip(&scale).for_each(|(weight, scale)| *weight *= scale);
            }
        }
        Ok((weight, bias))
    }
}

/// The names of the tensors beside those that are used, without the counters of batch normalisation.
fn unused<'a>(file: &'a WeightFile, used: &'a BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    let names = file.tensors().keys().map(String::as_str);
    names.filter(|name| !used.contains(*name) && !name.ends_with("num_batches_tracked"))
}

/// The prefix with which the names of the most weights stand in a file; of several the shortest.
fn prefix(file: &WeightFile, weights: &[Weight]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for weight in weights {
        for name in file.tensors().keys() {
            match name.strip_suffix(&weight.name) {
                Some(prefix) if prefix.is_empty() || prefix.ends_with('.') => {
                    *counts.entry(prefix).or_default() += 1;
                }
                _ => {}
            }
        }
    }
    let best = counts.into_iter().max_by_key(|&(prefix, count)| (count, Reverse(prefix.len())));
    best.map(|(prefix, _)| prefix.to_owned()).unwrap_or_default()
}

/// Whether a file has a weight with its shape.
fn has(file: &WeightFile, prefix: &str, weight: &Weight) -> bool {
    let name = format!("{prefix}{}", weight.name);
    file.tensors().get(&name).is_some_and(|tensor| fits(tensor, &name, &weight.shape))
}

fn first_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn is_classifier(entry: &BackboneEntry, name: &str) -> bool {
    entry.classifier.iter().any(|classifier| name.starts_with(classifier))
}

fn published(entry: &BackboneEntry) -> String {
    let package = entry.weights.unwrap_or("another package");
    format!("{} with {package}'s names, as .safetensors or .pth", entry.title)
}

fn infinite_weights(name: &str) -> Error {
    Error::new(
        Kind::Weights,
        format!("the weights of {name} are not all finite numbers"),
        "the file is damaged; get it again",
    )
}

fn without_weights(entry: &BackboneEntry) -> Error {
    let others: Vec<&str> =
        BACKBONES.iter().filter(|entry| entry.weights.is_some()).map(|entry| entry.name).collect();
    Error::new(
        Kind::Config,
        format!("weights are given for a backbone that has no published weights, such as {}", entry.name),
        format!(
            "remove the weights to start from random ones, or choose another backbone: {}",
            others.join(", ")
        ),
    )
}

/// The error of weights that do not fit a backbone. If they belong to other known ones, it names these instead.
fn misfit(entry: &BackboneEntry, faults: &[(&str, Vec<&str>)], others: &[&str]) -> Error {
    if let [first, ..] = others {
        return Error::new(
            Kind::Weights,
            format!("these look like weights of {}, but the backbone is {}", others.join(" or "), entry.name),
            format!(
                "set model.backbone to {{ kind = \"{first}\" }}, or give the weights of {}",
                published(entry)
            ),
        );
    }
    let listed = |(what, names): &(&str, Vec<&str>)| {
        let more = match names.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{} {what}: {}{more}", names.len(), names[..names.len().min(LISTED)].join(", "))
    };
    Error::new(
        Kind::Weights,
        format!(
            "the weights do not fit {} ({})",
            entry.title,
            faults.iter().map(listed).collect::<Vec<_>>().join("; ")
        ),
        format!("give the weights of {}", published(entry)),
    )
}
