//! Published weights: which tensor of a file belongs to which weight of a network.
//!
//! A weight is found by its published name. An error lists all names of weights that are missing, unknown or of another
//! shape. If the weights belong to another known backbone, the error names that one instead.

use std::collections::BTreeSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use super::entry::BackboneEntry;
use super::weight_file::{StoredTensor, WeightFile};
use crate::{Error, Kind, Result};

/// A weight of a network, with the name and the shape that it has in files.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    pub name: String,
    pub shape: Vec<usize>,
    /// Whether training changes it by a gradient. The statistics of batch normalisation have no gradient.
    pub learns: bool,
}

impl Weight {
    /// The count of its numbers.
    pub(super) fn count(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64
    }
}

/// Every weight of a network, in its order.
pub(super) fn list(network: &impl Module, published_name: fn(&str) -> String) -> Vec<Weight> {
    let mut list = List { place: Place::new(published_name), weights: Vec::new() };
    network.visit(&mut list);
    list.weights
}

struct List {
    place: Place,
    weights: Vec<Weight>,
}

impl ModuleVisitor for List {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.place.enter(name, container_type);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.place.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = self.place.published_shape(param.lazy_shape().to_vec());
        let name = self.place.published_name();
        let learns = !is_statistic(&name);
        self.weights.push(Weight { name, shape, learns });
    }
}

/// Whether a weight is a statistic of batch normalisation.
fn is_statistic(name: &str) -> bool {
    name.ends_with("running_mean") || name.ends_with("running_var")
}

/// Where a walk through a network is.
struct Place {
    path: Vec<String>,
    containers: Vec<String>,
    published_name: fn(&str) -> String,
}

impl Place {
    fn new(published_name: fn(&str) -> String) -> Self {
        Self { path: Vec::new(), containers: Vec::new(), published_name }
    }

    fn enter(&mut self, name: &str, container: &str) {
        self.path.push(name.to_owned());
        self.containers.push(container.to_owned());
    }

    fn exit(&mut self) {
        self.path.pop();
        self.containers.pop();
    }

    fn container(&self) -> &str {
        self.containers.last().map_or("", |name| name.trim_start_matches("Struct:"))
    }

    /// The name in a file. Burn calls the scale and the shift of a normalisation `gamma` and `beta`.
    fn published_name(&self) -> String {
        let mut path = self.path.join(".");
        if matches!(self.container(), "BatchNorm" | "LayerNorm") {
            for (burn, file) in [(".gamma", ".weight"), (".beta", ".bias")] {
                if let Some(norm) = path.strip_suffix(burn) {
                    path = format!("{norm}{file}");
                }
            }
        }
        (self.published_name)(&path)
    }

    /// Whether files hold the transpose of the weight: for a linear layer, files have the outputs first and Burn the inputs.
    fn is_transposed(&self) -> bool {
        self.container() == "Linear" && self.path.last().is_some_and(|name| name == "weight")
    }

    fn published_shape(&self, mut shape: Vec<usize>) -> Vec<usize> {
        if self.is_transposed() {
            shape.reverse();
        }
        shape
    }
}

/// A file of weights for a backbone.
pub(super) struct Published {
    file: WeightFile,
    entry: &'static BackboneEntry,
}

impl Published {
    pub(super) fn new(bytes: Vec<u8>, entry: &'static BackboneEntry) -> Result<Self> {
        let file = WeightFile::parse(bytes)?;
        Ok(Self { file: if entry.weights == Some("timm") { file.with_timm_names() } else { file }, entry })
    }

    /// The network with the weights of the file.
    pub(super) fn load<M: Module>(&self, network: M) -> Result<M> {
        let mut load = Load {
            file: &self.file,
            place: Place::new(self.entry.published_name),
            used: BTreeSet::new(),
            missing: Vec::new(),
            wrong: Vec::new(),
            infinite: Vec::new(),
        };
        let network = network.map(&mut load);
        let Load { used, missing, wrong, infinite, .. } = load;
        let unknown: Vec<String> = self
            .file
            .tensors()
            .keys()
            .filter(|name| !used.contains(*name) && !self.is_ignored(name))
            .cloned()
            .collect();
        let faults: Vec<(&str, Vec<String>)> =
            [("missing", missing), ("unknown", unknown), ("of another shape or type", wrong)]
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .collect();
        if !faults.is_empty() {
            // The counts come first, because the lists may be long.
            let counts: Vec<String> =
                faults.iter().map(|(what, names)| format!("{} {what}", names.len())).collect();
            let lists: Vec<String> =
                faults.iter().map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
            let (counts, lists) = (counts.join(", "), lists.join("; "));
            return Err(Error::new(
                Kind::Weights,
                format!("the weights do not fit {}, with {counts} ({lists})", self.entry.title),
                format!("give the weights of {}", self.published()),
            ));
        }
        match infinite.first() {
            Some(name) => Err(Error::new(
                Kind::Weights,
                format!("the weights of {name} are not all finite numbers"),
                "the file is damaged; get it again",
            )),
            None => Ok(network),
        }
    }

    /// Whether a tensor of the file is left out: the classifier, and the counters of batch normalisation.
    fn is_ignored(&self, name: &str) -> bool {
        name.ends_with("num_batches_tracked")
            || self.entry.classifier.iter().any(|prefix| name.starts_with(prefix))
    }

    fn published(&self) -> String {
        let package = self.entry.weights.unwrap_or("another package");
        format!("{} with {package}'s names, as .safetensors or .pth", self.entry.title)
    }

    /// Whether the file has a weight with its shape.
    pub(super) fn has(&self, weight: &Weight) -> bool {
        self.file.tensors().get(&weight.name).is_some_and(|tensor| fits(tensor, &weight.shape))
    }

    /// An error that names the backbones whose weights these look like, or else `error`.
    pub(super) fn explain(&self, error: Error, backbones: &[&str]) -> Error {
        match backbones {
            [] => error,
            names => Error::new(
                error.kind(),
                format!(
                    "these look like weights of {}, but the backbone is {}",
                    names.join(" or "),
                    self.entry.name
                ),
                format!(
                    "set model.backbone to {{ kind = \"{}\" }}, or give the weights of {}",
                    names[0],
                    self.published()
                ),
            ),
        }
    }
}

/// Whether a tensor has a shape. Old conversions from Caffe keep vectors as matrices of one row.
fn fits(tensor: &StoredTensor, shape: &[usize]) -> bool {
    tensor.shape == shape || matches!((&tensor.shape[..], shape), ([1, rest @ ..], [_]) if rest == shape)
}

struct Load<'a> {
    file: &'a WeightFile,
    place: Place,
    used: BTreeSet<String>,
    missing: Vec<String>,
    wrong: Vec<String>,
    infinite: Vec<String>,
}

impl Load<'_> {
    /// The numbers of the weight at this place, in the order of the file.
    fn values(&mut self, shape: &[usize]) -> Option<Vec<f32>> {
        let name = self.place.published_name();
        let Some(tensor) = self.file.tensors().get(&name) else {
            self.missing.push(name);
            return None;
        };
        self.used.insert(name.clone());
        if !fits(tensor, shape) {
            self.wrong.push(format!("{name} is {:?} instead of {shape:?}", tensor.shape));
            return None;
        }
        let Some(values) = self.file.values(tensor) else {
            self.wrong.push(format!("{name} is {} instead of F32", tensor.numbers));
            return None;
        };
        if !values.iter().all(|value| value.is_finite()) {
            self.infinite.push(name.rsplit_once('.').map_or(name.as_str(), |(layer, _)| layer).to_owned());
        }
        Some(values)
    }
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.place.enter(name, container_type);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.place.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let transposed = self.place.is_transposed();
        let shape = self.place.published_shape(param.lazy_shape().to_vec());
        let Some(values) = self.values(&shape) else { return param };
        let device = param.lazy_device();
        param.map(|old| {
            let learns = old.is_require_grad();
            let tensor = Tensor::<D>::from_data(TensorData::new(values, shape), &device);
            let tensor = if transposed { tensor.swap_dims(0, 1) } else { tensor };
            tensor.set_require_grad(learns)
        })
    }
}
