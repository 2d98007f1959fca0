//! The weights of a network by their published names: their list, and their replacement by the tensors of a file.

use std::collections::BTreeSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use super::vision_transformer::antialiased;
use super::weight_file::{StoredTensor, WeightFile};

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

/// A network with the weights of a file, and what the file lacks or has beside them.
pub(super) struct Replaced<M> {
    pub network: M,
    /// The names of the tensors that became weights.
    pub used: BTreeSet<String>,
    /// The names that the file lacks.
    pub missing: Vec<String>,
    /// Tensors of another shape or type, and how.
    pub wrong: Vec<String>,
    /// Layers whose weights are not all finite.
    pub infinite: Vec<String>,
}

/// Replaces the weights of a network by the tensors of a file whose names begin with `prefix`.
pub(super) fn replace<M: Module>(
    network: M,
    file: &WeightFile,
    prefix: &str,
    published_name: fn(&str) -> String,
) -> Replaced<M> {
    let mut load = Load {
        file,
        prefix,
        place: Place::new(published_name),
        used: BTreeSet::new(),
        missing: Vec::new(),
        wrong: Vec::new(),
        infinite: Vec::new(),
    };
    let network = network.map(&mut load);
    let Load { used, missing, wrong, infinite, .. } = load;
    Replaced { network, used, missing, wrong, infinite }
}

/// Whether a tensor can become a weight of this name and shape. Old conversions from Caffe keep vectors as matrices of
/// one row. Embeddings of positions may be those of another grid.
pub(super) fn fits(tensor: &StoredTensor, name: &str, shape: &[usize]) -> bool {
    tensor.shape == shape
        || matches!((&tensor.shape[..], shape), ([1, rest @ ..], [_]) if rest == shape)
        || Grids::new(name, &tensor.shape, shape).is_some()
}

/// The largest side of a grid of embeddings of positions that is read.
const MAX_GRID: usize = 256;

/// Embeddings of positions [1, P + g², F], of P tokens and a grid of patches, that are to become those of another grid.
struct Grids {
    /// P, the tokens before the patches.
    prefix: usize,
    /// The sides of the grids.
    from: usize,
    to: usize,
    features: usize,
}

impl Grids {
    fn new(name: &str, stored: &[usize], wanted: &[usize]) -> Option<Self> {
        let (&[1, tokens, features], &[1, count, same]) = (stored, wanted) else { return None };
        let to = count.isqrt();
        let prefix = count - to * to;
        let from = tokens.checked_sub(prefix)?.isqrt();
        let is_grid = (1..=MAX_GRID).contains(&from) && from * from + prefix == tokens && features == same;
        (name.ends_with("pos_embed") && is_grid).then_some(Self { prefix, from, to, features })
    }

    /// Interpolates the embeddings of the patches as timm does: bicubically, with the wider window of a smaller grid.
    fn resample(&self, values: &[f32]) -> Vec<f32> {
        let &Self { prefix, from, to, features } = self;
        let (first, grid) = values.split_at(prefix * features);
        let matrix = antialiased(from, to);
        // The sum of some rows of `length` values, each with its weight.
        let mix = |rows: &[f32], weights: &[f32], length: usize| {
            let mut sum = vec![0.0; length];
            for (row, &weight) in rows.chunks_exact(length).zip(weights) {
                sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * value);
            }
            sum
        };
        let mut all = first.to_vec();
        for row in matrix.chunks_exact(from) {
            let cells = mix(grid, row, from * features);
            matrix.chunks_exact(from).for_each(|column| all.extend(mix(&cells, column, features)));
        }
        all
    }
}

struct Load<'a> {
    file: &'a WeightFile,
    prefix: &'a str,
    place: Place,
    used: BTreeSet<String>,
    missing: Vec<String>,
    wrong: Vec<String>,
    infinite: Vec<String>,
}

impl Load<'_> {
    /// The numbers of the weight at this place, in the order of the file.
    fn values(&mut self, shape: &[usize]) -> Option<Vec<f32>> {
        let name = format!("{}{}", self.prefix, self.place.published_name());
        let Some(tensor) = self.file.tensors().get(&name) else {
            self.missing.push(name);
            return None;
        };
        self.used.insert(name.clone());
        if !fits(tensor, &name, shape) {
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
        Some(match Grids::new(&name, &tensor.shape, shape) {
            Some(grids) if tensor.shape != shape => grids.resample(&values),
            _ => values,
        })
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
