//! The encoder: image bytes → embedding. The same code in training, evaluation and browser.

use std::sync::Arc;

use burn::module::{Flag, Module, ModuleMapper, Param};
use burn::store::burn_pack::{self, Reader, Writer};
use burn::store::{BurnpackStore, HalfPrecisionAdapter, ModuleRecord, ModuleSnapshot};
use burn::tensor::{Bytes, DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::attribution::Cells;
use crate::bundle::EncoderEntry;
use crate::geometry::{Geometry, normalise};
use crate::image::{Pixels, Preprocessing};
use crate::models::{
    Backbone, BackboneConfig, DropPath, ForeignNetwork, Head, HeadConfig, Initial, LoraConfig, Outputs,
    Pooling, PublishedWeights,
};
use crate::random::stream;
use crate::{Error, Kind, Result};

/// The parts of an encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// Image → features at each position.
    pub backbone: BackboneConfig,
    /// Features at each position → features. Default: what the backbone was trained with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// Features → embedding. Without a head the embedding is the features, scaled to unit length.
    #[serde(default)]
    pub head: Option<HeadConfig>,
    /// Image bytes → numbers.
    pub preprocessing: Preprocessing,
}

/// A network with the preprocessing of its images.
#[derive(Module, Debug)]
pub struct Encoder {
    /// Image → features at each position.
    pub backbone: Backbone,
    /// Features → embedding.
    pub head: Option<Head>,
    #[module(skip)]
    pooling: Pooling,
    #[module(skip)]
    preprocessing: Preprocessing,
    #[module(skip)]
    dimension: usize,
    /// The precision in which the backbone computes.
    #[module(skip)]
    precision: Precision,
    /// The branches that this pass leaves out; none outside of training.
    #[module(skip)]
    drop_path: Option<DropPath>,
}

/// The precision in which a backbone computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Numbers of 32 bits.
    #[default]
    Single,
    /// Numbers of 16 bits. Normalisation computes with 32 bits.
    Half,
}

impl EncoderConfig {
    /// The parts of an encoder of a bundle.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] for an architecture that this version does not know, and an encoder without weights.
    pub fn of_bundle(entry: &EncoderEntry) -> Result<Self> {
        if entry.weights.is_none() {
            return Err(Error::new(
                Kind::Bundle,
                format!(
                    "{:?} has embeddings of its gallery alone, and no weights that embed a picture",
                    entry.name
                ),
                "search with items of the gallery on the page, or export the run of an encoder",
            ));
        }
        let unknown = |error: serde_json::Error| {
            Error::new(
                Kind::Bundle,
                format!(
                    "this version of akin does not know the architecture of encoder {:?}: {error}",
                    entry.name
                ),
                "update akin (in the browser, reload the page), or export the bundle again with this version",
            )
        };
        let mut parts = entry.architecture.clone();
        if let Some(parts) = parts.as_object_mut() {
            parts
                .insert("preprocessing".into(), serde_json::to_value(&entry.preprocessing).map_err(unknown)?);
        }
        Self::deserialize(parts).map_err(unknown)
    }

    /// d, the dimension of an embedding.
    pub fn dimension(&self) -> usize {
        self.head.as_ref().map_or(self.backbone.features(), |head| head.dimension)
    }

    /// The space of an embedding.
    pub fn geometry(&self) -> Geometry {
        self.head.as_ref().map_or(Geometry::Cosine, |head| head.geometry.clone())
    }

    /// An encoder with random weights, from the stream `initialisation` of the seed.
    ///
    /// # Errors
    ///
    /// A setting out of range, or images of a size that the backbone cannot read.
    pub fn init(&self, seed: u64, device: &Device) -> Result<Encoder> {
        let mut rng = stream(seed, "initialisation", &[]);
        let backbone = self.backbone.init(&mut rng, device)?;
        self.assemble(backbone, &mut Initial::drawn(&mut rng, device))
    }

    /// An encoder without weights, which takes no memory: to be loaded, or to be counted.
    ///
    /// # Errors
    ///
    /// As [`Self::init`].
    pub fn absent(&self, device: &Device) -> Result<Encoder> {
        self.assemble(self.backbone.absent(device)?, &mut Initial::absent(device))
    }

    fn assemble(&self, backbone: Backbone, initial: &mut Initial) -> Result<Encoder> {
        self.check_side()?;
        let pooling = self.pooling.unwrap_or_else(|| self.backbone.pooling());
        pooling.validate(self.backbone.has_class_token())?;
        let head = match &self.head {
            Some(head) => Some(head.init(self.backbone.features(), initial)?),
            None => None,
        };
        let (preprocessing, dimension) = (self.preprocessing.clone(), self.dimension());
        Ok(Encoder {
            backbone,
            head,
            pooling,
            preprocessing,
            dimension,
            precision: Precision::Single,
            drop_path: None,
        })
    }

    /// Refuses images of a size that the backbone cannot read.
    fn check_side(&self) -> Result<()> {
        let (side, entry) = (self.preprocessing.side(), self.backbone.entry());
        if side < entry.smallest_side {
            return Err(Error::new(
                Kind::Config,
                format!(
                    "the backbone needs images of at least {0}×{0} pixels, but the preprocessing crops to {side}×{side}",
                    entry.smallest_side
                ),
                "raise `crop` (and `resize`) of the preprocessing",
            ));
        }
        match entry.patch {
            Some(patch) if !side.is_multiple_of(patch) => Err(Error::new(
                Kind::Config,
                format!(
                    "{} cuts images into patches of {patch}×{patch} pixels, but the preprocessing crops to {side}×{side}, \
                     which is no multiple of {patch}",
                    entry.title
                ),
                format!("set `crop` of the preprocessing to {}", side.next_multiple_of(patch)),
            )),
            _ => Ok(()),
        }
    }

    /// An encoder with weights that [`Encoder::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// Weights that do not fit this architecture.
    pub fn load(&self, weights: Vec<u8>, device: &Device) -> Result<Encoder> {
        self.absent(device)?.with_weights(weights)
    }
}

impl Encoder {
    /// d, the dimension of an embedding.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// This encoder with a changed backbone and head of the same shapes, such as those that an optimiser returns. They
    /// are passed by value, so that an optimiser can change their weights where they are.
    pub fn map_parts<T>(
        self,
        change: impl FnOnce(Backbone, Option<Head>) -> (Backbone, Option<Head>, T),
    ) -> (Self, T) {
        let Self { backbone, head, pooling, preprocessing, dimension, precision, drop_path } = self;
        let (backbone, head, result) = change(backbone, head);
        (Self { backbone, head, pooling, preprocessing, dimension, precision, drop_path }, result)
    }

    /// This encoder with parts of its backbone frozen.
    pub fn freeze(self, frozen: Frozen) -> Self {
        let mut mapper = Freeze { frozen, path: Vec::new() };
        Self { backbone: self.backbone.map(&mut mapper), ..self }
    }

    /// This encoder with low-rank adapters in its backbone, which alone learns by them; they are drawn from the stream
    /// `adapters` of the seed.
    ///
    /// # Errors
    ///
    /// A setting out of range, or a backbone that is no vision transformer.
    pub fn adapt(self, config: &LoraConfig, seed: u64) -> Result<Self> {
        let backbone = self.backbone.clone().adapt(config, &mut stream(seed, "adapters", &[]))?;
        Ok(Self { backbone, ..self })
    }

    /// A copy without adapters, which are added to its weights.
    pub fn merge_adapters(&self) -> Self {
        Self { backbone: self.backbone.clone().merge_adapters(), ..self.clone() }
    }

    /// A copy whose backbone computes in half precision. The weights of normalisation, the images, the features and the head
    /// stay in single precision. The gradients of the copy reach the weights of this encoder.
    pub fn in_half_precision(&self) -> Self {
        let copy = self.clone();
        Self {
            backbone: copy.backbone.map(&mut Halve { containers: Vec::new() }),
            precision: Precision::Half,
            ..copy
        }
    }

    /// A copy for one pass of training, whose backbone [drops branches](DropPath). The gradients of the copy reach the
    /// weights of this encoder.
    pub fn with_drop_path(&self, drop_path: DropPath) -> Self {
        Self { drop_path: Some(drop_path), ..self.clone() }
    }

    /// The preprocessing of its images.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// Replaces the weights of the backbone by published ones, and those of the head, if `head` names one, by those of a
    /// linear layer. Returns the names of the tensors that are not used, without those of published classifiers.
    ///
    /// # Errors
    ///
    /// As [`PublishedWeights::load`]; [`Kind::Config`] for a layer that is not there or does not fit the head.
    pub fn load_published(&mut self, weights: &PublishedWeights, head: Option<&str>) -> Result<Vec<String>> {
        let mut unused = weights.load(&mut self.backbone)?;
        if let Some(name) = head {
            let begun = self.head.clone().ok_or_else(|| {
                Error::new(
                    Kind::Config,
                    format!("the layer {name} is to be the head, but the encoder has none"),
                    "add a head of its dimension",
                )
            })?;
            let [features, dimension] = begun.sizes();
            let layer = weights.head(name, &self.backbone, features, dimension, begun.has_layer_norm())?;
            let (weight, bias) = weights.linear(self.backbone.entry(), &layer)?;
            self.head = Some(begun.with_linear(weight, bias));
            let used = std::iter::once(&layer.name).chain(&layer.layer_norm);
            let used: Vec<String> =
                used.flat_map(|layer| ["weight", "bias"].map(|part| format!("{layer}.{part}"))).collect();
            unused.retain(|name| !used.contains(name));
        }
        Ok(unused)
    }

    /// Whether another engine runs the backbone.
    pub fn is_foreign(&self) -> bool {
        matches!(self.backbone, Backbone::Foreign(_))
    }

    /// This encoder with an engine that runs its foreign backbone. Any other backbone stays as it is.
    pub fn attach(self, network: Arc<dyn ForeignNetwork>) -> Self {
        match self.backbone {
            Backbone::Foreign(backbone) => {
                Self { backbone: Backbone::Foreign(backbone.attach(network)), ..self }
            }
            _ => self,
        }
    }

    /// Normalised images [B, 3, S, S] → embeddings [B, d].
    ///
    /// # Errors
    ///
    /// As [`Self::features`].
    pub fn forward(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        Ok(self.embed_features(self.features(images)?))
    }

    /// Normalised images [B, 3, S, S] → features of the backbone [B, F].
    ///
    /// # Errors
    ///
    /// A foreign backbone without an [engine](Self::attach), or whose engine fails; any other never fails here.
    pub fn features(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        Ok(self.pooling.pool(self.outputs(images)?))
    }

    /// Normalised images [B, 3, S, S] → the outputs of the backbone, in the precision of the images.
    ///
    /// # Errors
    ///
    /// As [`Self::features`].
    pub fn outputs(&self, images: Tensor<4>) -> Result<Outputs> {
        self.outputs_of(&self.backbone, images)
    }

    fn outputs_of(&self, backbone: &Backbone, images: Tensor<4>) -> Result<Outputs> {
        let outputs = |images| match &self.drop_path {
            Some(drop_path) => backbone.outputs_dropping(images, drop_path),
            None => backbone.outputs(images),
        };
        if self.precision == Precision::Single {
            return outputs(images);
        }
        let outer = images.dtype();
        let Outputs { maps, class_token } = outputs(images.cast(DType::F16))?;
        Ok(Outputs { maps: maps.cast(outer), class_token: class_token.map(|token| token.cast(outer)) })
    }

    /// Features of the backbone [B, F] → embeddings [B, d].
    pub fn embed_features(&self, features: Tensor<2>) -> Tensor<2> {
        match &self.head {
            Some(head) => head.forward(features),
            None => normalise(features),
        }
    }

    /// As [`Self::forward`], with a frozen backbone: it gets no gradient, and its batch normalisation keeps its
    /// statistics.
    ///
    /// # Errors
    ///
    /// As [`Self::features`].
    pub fn forward_frozen(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        let outputs = self.outputs_of(&self.backbone.valid(), images.without_autodiff())?;
        Ok(self.embed_features(self.pooling.pool(outputs).autodiff()))
    }

    /// Images of any size → preprocessed images [B, 3, S, S] on `device`.
    ///
    /// # Errors
    ///
    /// An image that cannot be resized.
    pub fn images(&self, pictures: &[Pixels], device: &Device) -> Result<Tensor<4>> {
        let views =
            pictures.iter().map(|picture| self.preprocessing.view(picture)).collect::<Result<Vec<_>>>()?;
        Ok(self.batch(&views, device))
    }

    /// Images of the encoder's size (augmented, or from [`Preprocessing::view`]) → normalised images [B, 3, S, S] on
    /// `device`.
    pub fn batch(&self, views: &[Pixels], device: &Device) -> Tensor<4> {
        let side = self.preprocessing.side() as usize;
        let values = views.iter().flat_map(|view| self.preprocessing.normalise(view)).collect();
        Tensor::from_data(TensorData::new::<f32, _>(values, [views.len(), 3, side, side]), device)
    }

    /// The weights as the bytes of a burnpack file, in their own precision. Equal weights give equal bytes.
    ///
    /// # Errors
    ///
    /// Weights that cannot be read back from the device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        with_ids_where(self.valid_bytes()?, |_| false)
    }

    /// As [`Self::to_bytes`], with the ids by which an optimiser knows the weights: for a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`Self::to_bytes`].
    pub fn to_bytes_with_ids(&self) -> Result<Vec<u8>> {
        // No optimiser knows the statistics of normalisation, whose ids are random in every process.
        let is_weight = |name: &str| !name.ends_with(".running_mean") && !name.ends_with(".running_var");
        with_ids_where(self.valid_bytes()?, is_weight)
    }

    fn valid_bytes(&self) -> Result<Vec<u8>> {
        // Without `valid` the record would lack the statistics that the last step added to the normalisation.
        let bytes = self.valid().into_record().into_bytes().map_err(|error| unwritable(&error))?;
        Ok(bytes.to_vec())
    }

    /// The weights as the bytes of a burnpack file in half precision, except those of normalisation: for the browser.
    /// Equal weights give equal bytes.
    ///
    /// # Errors
    ///
    /// Weights that cannot be read back from the device.
    pub fn to_half_bytes(&self) -> Result<Vec<u8>> {
        let mut store = BurnpackStore::from_bytes(None).with_to_adapter(HalfPrecisionAdapter::new());
        self.valid().save_into(&mut store).map_err(|error| unwritable(&error))?;
        with_ids_where(store.get_bytes().map_err(|error| unwritable(&error))?.to_vec(), |_| false)
    }

    /// The embeddings of a few images of any size, row-major.
    ///
    /// # Errors
    ///
    /// An image that cannot be resized, or a device that fails.
    pub fn embed(&self, pictures: &[Pixels], device: &Device) -> Result<Vec<f32>> {
        let images = self.images(pictures, &device.clone().without_autodiff())?;
        let rows = self.valid().forward(images)?.try_into_data().map_err(|error| failed(&error))?;
        rows.try_to_vec().map_err(|error| failed(&format!("{error:?}")))
    }

    /// What the backbone computes of normalised images, as [`Self::outputs`] or a foreign engine gives it → embeddings, row-major.
    /// For devices that can be read only asynchronously, as in a browser.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub async fn embed_outputs_async(&self, outputs: Outputs) -> Result<Vec<f32>> {
        self.read(self.embed_features(self.pooling.pool(outputs))).await
    }

    /// Whether an embedding is a sum over several cells of the backbone's last map. That of a class token is not.
    pub fn has_cells(&self, outputs: &Outputs) -> bool {
        let [_, _, rows, columns] = outputs.maps.dims();
        self.pooling != Pooling::ClassToken && rows * columns > 1
    }

    /// The embedding of one picture as a sum over the cells of the backbone's last map.
    ///
    /// # Errors
    ///
    /// An encoder that [has no cells](Self::has_cells), or a device that fails.
    pub async fn cells_async(&self, Outputs { maps, .. }: Outputs) -> Result<Cells> {
        let [_, _, rows, columns] = maps.dims();
        let cells = self.pooling.positions(maps).ok_or_else(|| {
            Error::new(
                Kind::Config,
                "the embedding of a class token is no sum over the cells of the picture",
                "cover parts of the picture instead",
            )
        })?;
        let parts = match &self.head {
            Some(head) => head.parts(cells),
            None => {
                let sum = cells.clone().sum_dim(0);
                cells / (sum.square().sum_dim(1) + f64::from(f32::MIN_POSITIVE)).sqrt()
            }
        };
        Cells::new(rows, columns, self.dimension, self.read(parts).await?)
    }

    async fn read(&self, rows: Tensor<2>) -> Result<Vec<f32>> {
        let rows = rows.into_data_async().await.map_err(|error| failed(&error))?;
        rows.try_to_vec().map_err(|error| failed(&format!("{error:?}")))
    }

    /// This encoder with other weights, which [`Self::to_bytes`] or [`Self::to_half_bytes`] wrote. They are converted
    /// to the precision of the encoder.
    ///
    /// # Errors
    ///
    /// Bytes that are not a burnpack file, or weights of another architecture.
    pub fn with_weights(self, weights: Vec<u8>) -> Result<Self> {
        let refused = |error: &dyn std::fmt::Display| {
            Error::new(
                Kind::Weights,
                format!("the weights do not fit the encoder: {error}"),
                "use the config that the weights were trained with",
            )
        };
        let record =
            ModuleRecord::from_bytes(Bytes::from_bytes_vec(weights)).map_err(|error| refused(&error))?;
        self.try_load_record(record.cast_to_module_dtype()).map_err(|error| refused(&error))
    }
}

/// Which parts of a backbone keep their weights in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// What batch normalisation does.
    pub batch_norm: BatchNormMode,
    /// Whether the map from the pixels of a transformer's patch to its token keeps its weights.
    pub patch_embedding: bool,
}

/// What batch normalisation does in training. Elsewhere it always uses its running statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BatchNormMode {
    /// Normalises by the statistics of the batch, follows them with its running statistics, and learns scale and shift.
    #[default]
    Live,
    /// Normalises by its running statistics, which stay as they are, and learns scale and shift.
    FixedStatistics,
    /// Stays as it is.
    Frozen,
}

struct Freeze {
    frozen: Frozen,
    /// The fields and the types on the way to a weight.
    path: Vec<(String, String)>,
}

impl Freeze {
    fn keeps_weights(&self) -> bool {
        let is_inside = |name: &str| self.path.iter().any(|(field, _)| field == name);
        let is_batch_norm = self.path.last().is_some_and(|(_, container)| container == "Struct:BatchNorm");
        (is_batch_norm && self.frozen.batch_norm == BatchNormMode::Frozen)
            || (is_inside("patch_embed") && self.frozen.patch_embedding)
    }
}

impl ModuleMapper for Freeze {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push((name.to_owned(), container_type.to_owned()));
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.keeps_weights() { param.set_require_grad(false) } else { param }
    }

    /// Only batch normalisation has a flag, which says whether it uses the statistics of the batch.
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        if self.frozen.batch_norm == BatchNormMode::Live { flag } else { flag.with_value(false) }
    }
}

/// Casts the weights of a network to half precision. The weights of normalisation stay in single precision.
struct Halve {
    /// The types on the way to a weight.
    containers: Vec<String>,
}

impl ModuleMapper for Halve {
    fn enter_module(&mut self, _: &str, container_type: &str) {
        self.containers.push(container_type.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.containers.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let container = self.containers.last().map_or("", String::as_str);
        if ["Struct:BatchNorm", "Struct:LayerNorm"].contains(&container) {
            return param;
        }
        let (id, weight, mapper) = param.consume();
        Param::from_mapped_value(id, weight.cast(DType::F16), mapper)
    }
}

/// A burnpack file with the ids of those tensors alone whose names are chosen.
fn with_ids_where(weights: Vec<u8>, keeps_id: impl Fn(&str) -> bool) -> Result<Vec<u8>> {
    let strip = || -> std::result::Result<Vec<u8>, burn_pack::Error> {
        let mut tensors = Reader::from_bytes(Bytes::from_bytes_vec(weights))?.into_tensors()?;
        for tensor in tensors.iter_mut().filter(|tensor| !keeps_id(&tensor.name)) {
            tensor.param_id = None;
        }
        Ok(Writer::new(tensors).into_bytes()?.to_vec())
    };
    strip().map_err(|error| unwritable(&error))
}

fn unwritable(error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Weights, format!("the weights cannot be written: {error}"), "report this as a bug")
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(
        Kind::Device,
        format!("the embedding could not be read from the device: {error}"),
        "try again, or use the CPU",
    )
}
