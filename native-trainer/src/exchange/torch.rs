//! Weights and code for PyTorch: the names of the package that published a backbone, and the lines that load them.
//!
//! The head takes the place of the package's classifier, so that the package's own network holds all weights. A layer norm
//! without weights is put before it once they are loaded.

use std::collections::HashMap;

use akin_base::problem::problem;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::geometry::Geometry;
use akin_core::image::{Channels, Filter, Preprocessing};
use akin_core::models::{HeadConfig, Pooling, dinov2_positions};
use anyhow::{Result, anyhow, ensure};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

/// The file of weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The side of the images of DINOv2's published positions.
const DINOV2_SIDE: u32 = 518;
/// The lines that read weights for which no package has a network.
pub const READ: &str =
    "from safetensors.torch import load_file\n\nweights = load_file(\"model.safetensors\")\n";

/// Arguments of a Python function by name.
type Arguments = Vec<(&'static str, Value)>;

/// The network of a package that holds a backbone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// A ResNet of torchvision, which timm has too, with the same names.
    Resnet(&'static str),
    /// torchvision's SqueezeNet.
    Squeezenet,
    /// A vision transformer of timm, with the side of its images.
    Transformer(&'static str, u32),
    /// The same with a distillation token, which has a head of its own.
    Distilled(&'static str, u32),
    /// DINOv2 without registers in timm, which resamples positions otherwise than its published code does. So its file has
    /// the positions for the size of the images.
    Dinov2(&'static str),
    /// A tower of CLIP in timm, whose own head is the projection, with the side of its images.
    Tower(&'static str, u32),
    /// A transformer of timm with attention pooling, with the side of its images.
    AttentionPooled(&'static str, u32),
    /// A transformer of timm with rotations in place of learned positions.
    Rotary(&'static str),
    /// timm's ConvNeXt.
    Convnext(&'static str),
}

impl Package {
    /// The network that holds a backbone of this name, if there is one.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "resnet18" => Self::Resnet("resnet18"),
            "resnet34" => Self::Resnet("resnet34"),
            "resnet50" => Self::Resnet("resnet50"),
            "squeezenet" => Self::Squeezenet,
            "vit_s16" | "dino_s16" => Self::Transformer("vit_small_patch16_224", 224),
            "deit_s16" => Self::Transformer("deit_small_patch16_224", 224),
            "deit_s16_distilled" => Self::Distilled("deit_small_distilled_patch16_224", 224),
            "vit_b16" => Self::Transformer("vit_base_patch16_224", 224),
            "vit_l16" => Self::Transformer("vit_large_patch16_224", 224),
            "dinov2_s14" => Self::Transformer("vit_small_patch14_reg4_dinov2", 518),
            "dinov2_b14_reg4" => Self::Transformer("vit_base_patch14_reg4_dinov2", 518),
            "dinov2_l14_reg4" => Self::Transformer("vit_large_patch14_reg4_dinov2", 518),
            "dinov2_b14" => Self::Dinov2("vit_base_patch14_dinov2"),
            "dinov2_l14" => Self::Dinov2("vit_large_patch14_dinov2"),
            "dinov3_s16" => Self::Rotary("vit_small_patch16_dinov3_qkvb"),
            "dinov3_s16_plus" => Self::Rotary("vit_small_plus_patch16_dinov3_qkvb"),
            "dinov3_b16" => Self::Rotary("vit_base_patch16_dinov3_qkvb"),
            "dinov3_l16" => Self::Rotary("vit_large_patch16_dinov3_qkvb"),
            "clip_b16" => Self::Tower("vit_base_patch16_clip_quickgelu_224", 224),
            "open_clip_b16" => Self::Tower("vit_base_patch16_clip_224", 224),
            "bioclip2" => Self::Tower("vit_large_patch14_clip_224", 224),
            "siglip2_b16" => Self::AttentionPooled("vit_base_patch16_siglip_224", 224),
            "convnext_t" => Self::Convnext("convnext_tiny"),
            "convnext_b" => Self::Convnext("convnext_base"),
            _ => return None,
        })
    }

    /// The names of the layers that hold the weights of the head.
    fn heads(self, head: &HeadConfig) -> Vec<String> {
        match self {
            Self::Resnet(_) => vec!["fc".into()],
            // Behind the pooling, the flattening and the layer norm.
            Self::Squeezenet => vec![format!("classifier.{}", 2 + usize::from(head.layer_norm))],
            Self::Transformer(..) | Self::Dinov2(_) | Self::AttentionPooled(..) | Self::Rotary(_) => {
                vec!["head".into()]
            }
            Self::Distilled(..) => vec!["head".into(), "head_dist".into()],
            Self::Tower(..) => vec!["projection".into()],
            Self::Convnext(_) => vec!["head.fc".into()],
        }
    }

    /// timm's arguments for a pooling.
    fn pooling(self, pooling: Pooling) -> Option<Arguments> {
        Some(match (self, pooling) {
            (Self::Rotary(_), Pooling::ClassToken) => vec![("global_pool", json!("token"))],
            (Self::Rotary(_), Pooling::Average) => vec![("global_pool", json!("avg"))],
            (Self::Rotary(_), Pooling::Max) => vec![("global_pool", json!("max"))],
            (_, Pooling::ClassToken) => vec![],
            (Self::Transformer(..) | Self::Dinov2(_), Pooling::Average) => {
                vec![("global_pool", json!("avg")), ("fc_norm", json!(false))]
            }
            (Self::Transformer(..) | Self::Dinov2(_), Pooling::Max) => {
                vec![("global_pool", json!("max")), ("fc_norm", json!(false))]
            }
            _ => return None,
        })
    }

    /// timm's arguments for its activation: SigLIP was trained with the approximation of GELU, and timm has the exact one.
    fn activation(self) -> Arguments {
        match self {
            Self::AttentionPooled(..) => vec![("act_layer", json!("gelu_tanh"))],
            _ => vec![],
        }
    }

    /// timm's arguments for images of a side.
    fn size(self, side: u32) -> Arguments {
        match self {
            Self::Transformer(_, native)
            | Self::Distilled(_, native)
            | Self::Tower(_, native)
            | Self::AttentionPooled(_, native)
                if side != native =>
            {
                vec![("dynamic_img_size", json!(true))]
            }
            Self::Dinov2(_) if side != DINOV2_SIDE => vec![("img_size", json!(side))],
            _ => vec![],
        }
    }
}

/// The weights of an encoder as a safetensors file, with the names of the package.
///
/// # Errors
///
/// Weights that cannot be read from the device.
pub fn weights(encoder: &Encoder, config: &EncoderConfig) -> Result<Vec<u8>> {
    let mut tensors = Vec::new();
    let package = Package::of(config.backbone.entry().name);
    let side = config.preprocessing.side();
    let names = encoder.backbone.weight_names();
    let is_gated = names.iter().any(|name| name.ends_with(".fc1_g.weight"));
    for (name, mut tensor) in names.into_iter().zip(collect(&encoder.backbone)?) {
        if let (Some(Package::Dinov2(_)), "pos_embed") = (package, name.as_str()) {
            tensor = tensor.resampled(side as usize)?;
        }
        if let Some(norm) = name.strip_suffix("running_mean") {
            // torch counts the batches that a normalisation has seen, and wants the count.
            let count = Stored { kind: Dtype::I64, shape: vec![], bytes: vec![0; 8] };
            tensors.push((format!("{norm}num_batches_tracked"), count));
        }
        match package {
            Some(Package::Rotary(_)) => tensors.extend(tensor.renamed_for_rotary(name, is_gated)),
            _ => tensors.push((name, tensor)),
        }
    }
    if let (Some(head), Some(settings)) = (&encoder.head, &config.head) {
        let layers = package.map_or_else(|| vec!["head".into()], |package| package.heads(settings));
        let weights = collect(head)?;
        for layer in layers {
            let names = ["weight", "bias"].map(|name| format!("{layer}.{name}"));
            tensors.extend(names.into_iter().zip(weights.iter().cloned()));
        }
    }
    let views = tensors
        .iter()
        .map(|(name, tensor)| Ok((name, TensorView::new(tensor.kind, tensor.shape.clone(), &tensor.bytes)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(safetensors::serialize(views, Some(HashMap::from([("format".into(), "pt".into())])))?)
}

/// A tensor as the file holds it.
#[derive(Clone)]
struct Stored {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Stored {
    fn new<const D: usize>(value: Tensor<D>) -> Result<Self> {
        let shape = value.dims().to_vec();
        let data = value.try_into_data().map_err(|error| anyhow!("the weights cannot be read: {error}"))?;
        ensure!(data.dtype() == DType::F32, "the weights are of the type {:?} instead of F32", data.dtype());
        Ok(Self { kind: Dtype::F32, shape, bytes: data.as_bytes().to_vec() })
    }

    /// This tensor by the names that timm has in a network with rotations, where the keys have no bias.
    fn renamed_for_rotary(self, name: String, is_gated: bool) -> Vec<(String, Self)> {
        if let Some(attention) = name.strip_suffix("qkv.bias") {
            let third = self.bytes.len() / 3;
            let part = |start: usize| {
                let bytes = self.bytes[start..start + third].to_vec();
                Self { kind: self.kind, shape: vec![self.shape[0] / 3], bytes }
            };
            return vec![
                (format!("{attention}q_bias"), part(0)),
                (format!("{attention}v_bias"), part(2 * third)),
            ];
        }
        let mut name = name.replace("ls1.gamma", "gamma_1").replace("ls2.gamma", "gamma_2");
        if is_gated {
            name = name.replace(".mlp.fc1.", ".mlp.fc1_x.");
        }
        vec![(name, self)]
    }

    /// The positions of DINOv2 for images of a side.
    fn resampled(&self, side: usize) -> Result<Self> {
        let data = TensorData::from_bytes_vec(self.bytes.clone(), self.shape.clone(), DType::F32);
        Self::new(dinov2_positions(Tensor::from_data(data, &Device::flex()), side))
    }
}

/// The weights of a module in the order of a visitor, as torch keeps them.
fn collect(module: &impl Module) -> Result<Vec<Stored>> {
    let mut collect = Collect { path: Vec::new(), tensors: Ok(Vec::new()) };
    module.visit(&mut collect);
    collect.tensors
}

struct Collect {
    /// The fields and the types on the way to a weight.
    path: Vec<(String, String)>,
    tensors: Result<Vec<Stored>>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push((name.to_owned(), container_type.to_owned()));
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // torch has the outputs of a linear layer first, and Burn the inputs.
        let is_linear =
            self.path.last().is_some_and(|(name, kind)| name == "weight" && kind == "Struct:Linear");
        let value = if is_linear { param.val().swap_dims(0, 1) } else { param.val() };
        match (&mut self.tensors, Stored::new(value)) {
            (Ok(tensors), Ok(stored)) => tensors.push(stored),
            (tensors @ Ok(_), Err(error)) => *tensors = Err(error),
            (Err(_), _) => {}
        }
    }
}

/// How Python builds and loads an encoder.
pub struct Recipe {
    /// The network.
    pub package: Package,
    /// What timm makes the network with, beside its name and the number of its outputs.
    pub arguments: Arguments,
    imports: Vec<&'static str>,
    lines: Vec<String>,
    /// The statements from `x`, what the network gives, to the embeddings.
    embed: Vec<String>,
}

impl Recipe {
    /// The recipe of an encoder.
    ///
    /// # Errors
    ///
    /// A backbone that no package of PyTorch has, or a pooling that its network lacks.
    pub fn new(config: &EncoderConfig) -> Result<Self> {
        let entry = config.backbone.entry();
        let package = Package::of(entry.name).ok_or_else(|| {
            problem(
                format!("neither torchvision nor timm has a network for the weights of {}", entry.title),
                "export it with `--to onnx`, which holds the network too, or with `--to safetensors` for the weights \
                 alone",
            )
        })?;
        let pooling = config.pooling.unwrap_or_else(|| config.backbone.pooling());
        let features = config.backbone.features();
        let dimension = config.head.as_ref().map_or(0, |head| head.dimension);
        let norm = config
            .head
            .as_ref()
            .filter(|head| head.layer_norm)
            .map(|_| format!("torch.nn.LayerNorm({features}, elementwise_affine=False)"));
        let load = format!("model.load_state_dict(load_file(\"{WEIGHTS}\"))");
        let (mut lines, mut arguments) = (Vec::new(), Arguments::new());
        let import = match package {
            Package::Resnet(name) => {
                match &config.head {
                    Some(_) => {
                        lines.push(format!("model = torchvision.models.{name}(num_classes={dimension})"))
                    }
                    None => {
                        lines.push(format!("model = torchvision.models.{name}()"));
                        lines.push("model.fc = torch.nn.Identity()".into());
                    }
                }
                lines.push(load);
                if pooling != Pooling::Average {
                    lines.push(format!("model.avgpool = {}", pool(pooling)));
                }
                if let Some(norm) = norm {
                    lines.push(format!("model.fc = torch.nn.Sequential({norm}, model.fc)"));
                }
                "import torchvision"
            }
            Package::Squeezenet => {
                let mut layers = vec![pool(pooling), "torch.nn.Flatten()".into()];
                layers.extend(norm);
                layers.extend(
                    config.head.as_ref().map(|_| format!("torch.nn.Linear({features}, {dimension})")),
                );
                lines.push("model = torchvision.models.squeezenet1_1()".into());
                lines.push(format!("model.classifier = torch.nn.Sequential({})", layers.join(", ")));
                lines.push(load);
                "import torchvision"
            }
            Package::Transformer(name, _)
            | Package::Distilled(name, _)
            | Package::Dinov2(name)
            | Package::Tower(name, _)
            | Package::AttentionPooled(name, _)
            | Package::Rotary(name)
            | Package::Convnext(name) => {
                let pooling = package.pooling(pooling).ok_or_else(|| {
                    problem(
                        format!("timm's {name} has no pooling like that of the encoder"),
                        "export it with `--to onnx`, which holds the pooling too",
                    )
                })?;
                let is_tower = matches!(package, Package::Tower(..));
                arguments.extend(pooling);
                arguments.extend(package.activation());
                arguments.extend(package.size(config.preprocessing.side()));
                let outputs = if is_tower { features } else { dimension };
                let given: String = arguments.iter().map(|(key, value)| python(key, value)).collect();
                lines.push(format!("model = timm.create_model(\"{name}\", num_classes={outputs}{given})"));
                if is_tower {
                    lines.push("model.head.bias = None".into());
                    if config.head.is_some() {
                        lines.push(format!("model.projection = torch.nn.Linear({features}, {dimension})"));
                    }
                }
                lines.push(load);
                let head =
                    if matches!(package, Package::Convnext(_)) { "model.head.fc" } else { "model.head" };
                match norm {
                    norm if is_tower && config.head.is_some() => {
                        let layers = [Some(head.into()), norm, Some("model.projection".into())];
                        let layers: Vec<String> = layers.into_iter().flatten().collect();
                        lines.push(format!("{head} = torch.nn.Sequential({})", layers.join(", ")));
                    }
                    Some(norm) if matches!(package, Package::Distilled(..)) => {
                        lines.push("head, model.head, model.head_dist = model.head, torch.nn.Identity(), torch.nn.Identity()".into());
                        lines.push(format!("model = torch.nn.Sequential(model, {norm}, head)"));
                    }
                    Some(norm) => lines.push(format!("{head} = torch.nn.Sequential({norm}, {head})")),
                    None => {}
                }
                "import timm"
            }
        };
        Ok(Self {
            package,
            arguments,
            imports: vec![import, "import torch", "from safetensors.torch import load_file"],
            lines,
            embed: embed(&config.geometry()),
        })
    }

    /// The lines that load the weights, and make embeddings of normalised `images`.
    pub fn lines(&self) -> String {
        format!(
            "{}\n\n{}\n\nx = model.eval()(images)\n{}\n",
            self.imports.join("\n"),
            self.lines.join("\n"),
            self.embed.join("\n")
        )
    }

    /// A Python file with the functions `load`, `preprocess` and `embed`.
    pub fn module(&self, preprocessing: &Preprocessing) -> String {
        let path = format!("load_file(\"{WEIGHTS}\")");
        let lines: Vec<String> =
            self.lines.iter().map(|line| line.replace(&path, "load_file(folder / WEIGHTS)")).collect();
        format!(
            "\"\"\"Loads an encoder that akin exported, and embeds pictures with it.\n\n    \
             python encoder.py PICTURE…\n\"\"\"\n\nimport pathlib\nimport sys\n\n{}\nfrom PIL import Image\n\n\
             WEIGHTS = \"{WEIGHTS}\"\n\n\n\
             def load(folder=pathlib.Path(__file__).parent):\n    \"\"\"The network without the geometry of its \
             embeddings.\"\"\"\n    {}\n    return model.eval()\n\n\n\
             def preprocess(picture):\n    \"\"\"A picture of Pillow as the network reads it, [3, S, S].\"\"\"\n{}\n\n\
             def embed(model, images):\n    \"\"\"Preprocessed images [N, 3, S, S] as embeddings [N, d].\"\"\"\n    \
             x = model(images)\n    {}\n    return embeddings\n\n\n\
             if __name__ == \"__main__\":\n    with torch.inference_mode():\n        \
             images = torch.stack([preprocess(Image.open(path)) for path in sys.argv[1:]])\n        \
             print(embed(load(), images))\n",
            self.imports.join("\n"),
            lines.join("\n    "),
            preprocess(preprocessing),
            self.embed.join("\n    ")
        )
    }
}

/// An argument of a Python function after others.
fn python(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => format!(", {key}=True"),
        Value::Bool(false) => format!(", {key}=False"),
        value => format!(", {key}={value}"),
    }
}

/// A layer [N, F, H, W] → [N, F, 1, 1] of a pooling over positions.
fn pool(pooling: Pooling) -> String {
    match pooling {
        Pooling::Average | Pooling::ClassToken => "torch.nn.AdaptiveAvgPool2d(1)".into(),
        Pooling::Max => "torch.nn.AdaptiveMaxPool2d(1)".into(),
        Pooling::AverageMax => lambda("x.mean((2, 3), keepdim=True) + x.amax((2, 3), keepdim=True)"),
        Pooling::Gem { exponent } => lambda(&format!(
            "x.clamp(min=1e-6).pow({exponent:?}).mean((2, 3), keepdim=True).pow(1 / {exponent:?})"
        )),
    }
}

/// A layer without weights of an expression in `x`.
fn lambda(expression: &str) -> String {
    format!("type(\"Pool\", (torch.nn.Module,), {{\"forward\": lambda self, x: {expression}}})()")
}

/// The statements from `x` to the embeddings.
fn embed(geometry: &Geometry) -> Vec<String> {
    match geometry {
        Geometry::Cosine => vec!["embeddings = torch.nn.functional.normalize(x)".into()],
        // Their signs are the code.
        Geometry::Binary => vec!["embeddings = x".into()],
        Geometry::Poincare { curvature, clip_radius, .. } => vec![
            format!("root = {:?} ** 0.5", curvature.value()),
            format!("x = x * ({clip_radius:?} / x.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)"),
            "length = root * x.norm(dim=1, keepdim=True).clamp(min=1e-12)".into(),
            "x = x * (length.tanh() / length)".into(),
            "embeddings = x * (0.999 / root / x.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)"
                .into(),
        ],
    }
}

/// The body of `preprocess`.
fn preprocess(preprocessing: &Preprocessing) -> String {
    let numbers = preprocessing.numbers();
    let (resize, crop) = (numbers.resize, numbers.crop);
    let size = if numbers.squeeze { format!("({resize}, {resize})") } else { resize.to_string() };
    let filter = match numbers.filter {
        Filter::Bilinear => "BILINEAR",
        Filter::Bicubic => "BICUBIC",
        Filter::Lanczos => "LANCZOS",
    };
    let order = match numbers.channels {
        Channels::Rgb => "",
        Channels::Bgr => ".flip(0)",
    };
    format!(
        "    from torchvision.transforms import functional as transforms\n\n    \
         picture = transforms.resize(picture.convert(\"RGB\"), {size}, transforms.InterpolationMode.{filter})\n    \
         picture = transforms.center_crop(picture, {crop})\n    \
         planes = transforms.pil_to_tensor(picture){order} * {:?}\n    \
         return transforms.normalize(planes, {:?}, {:?})\n",
        numbers.scale, numbers.mean, numbers.deviation
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use akin_core::image::Normalisation;
    use akin_core::models::{BACKBONES, BackboneConfig};
    use safetensors::SafeTensors;

    use super::*;

    /// An encoder with a head of eight dimensions. A large one has no weights, because drawing them takes long.
    fn encoder(name: &str) -> (Encoder, EncoderConfig) {
        let config = config_of(name);
        let device = Device::flex();
        let absent = config.absent(&device).unwrap();
        let is_small = absent.backbone.parameters() < 2_000_000;
        (if is_small { config.init(0, &device).unwrap() } else { absent }, config)
    }

    fn config_of(name: &str) -> EncoderConfig {
        let backbone = BackboneConfig::named(name).unwrap();
        let preprocessing = backbone.preprocessing();
        let head = serde_json::from_value(json!({ "dimension": 8 })).unwrap();
        EncoderConfig { backbone, pooling: None, head: Some(head), preprocessing }
    }

    fn assert_contains(lines: &str, parts: &[&str]) {
        for part in parts {
            assert!(lines.contains(part), "{part} is not in {lines}");
        }
    }

    /// What a published implementation computed; the largest ones have none.
    fn fixture(name: &str) -> std::path::PathBuf {
        format!("{}/../core/tests/backbones/{name}.json", env!("CARGO_MANIFEST_DIR")).into()
    }

    /// The names and shapes that the published implementation has.
    fn published(name: &str) -> BTreeMap<String, Vec<usize>> {
        let fixture: Value = serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap();
        serde_json::from_value(fixture["weights"].clone()).unwrap()
    }

    #[test]
    fn weights_go_out_by_the_names_of_torch_and_come_back_as_they_were() {
        for entry in BACKBONES.iter().filter(|entry| entry.weights.is_some() && fixture(entry.name).exists())
        {
            let (encoder, config) = encoder(entry.name);
            let bytes = weights(&encoder, &config).unwrap();
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let heads: Vec<String> = Package::of(entry.name)
                .map_or_else(|| vec!["head".into()], |package| package.heads(config.head.as_ref().unwrap()));
            let is_head = |name: &str| heads.iter().any(|head| name.starts_with(&format!("{head}.")));
            let backbone: BTreeMap<String, Vec<usize>> = file
                .iter()
                .filter(|(name, _)| !is_head(name))
                .map(|(name, tensor)| (name.to_owned(), tensor.shape().to_vec()))
                .collect();
            let is_classifier =
                |name: &String| entry.classifier.iter().any(|prefix| name.starts_with(prefix));
            let mut expected = published(entry.name);
            expected.retain(|name, _| !is_classifier(name));
            assert_eq!(backbone, expected, "{}", entry.name);
            for head in &heads {
                let features = config.backbone.features();
                assert_eq!(file.tensor(&format!("{head}.weight")).unwrap().shape(), [8, features]);
                assert_eq!(file.tensor(&format!("{head}.bias")).unwrap().shape(), [8]);
            }

            // The head has the place of the classifier, which a backbone leaves out.
            let mut back = config.backbone.absent(&Device::flex()).unwrap();
            let is_left_out = |head: &String| is_classifier(&format!("{head}."));
            if heads.iter().all(is_left_out) {
                back.load_pretrained(bytes).unwrap();
                let (ours, theirs) = (collect(&encoder.backbone).unwrap(), collect(&back).unwrap());
                assert!(ours.iter().zip(&theirs).all(|(a, b)| a.bytes == b.bytes), "{}", entry.name);
            }
        }
    }

    #[test]
    fn every_backbone_with_published_weights_of_torchvision_or_timm_has_lines() {
        for entry in BACKBONES.iter().filter(|entry| matches!(entry.weights, Some("timm" | "torchvision"))) {
            let lines = Recipe::new(&config_of(entry.name)).unwrap().lines();
            assert!(lines.contains("LayerNorm") && lines.contains("normalize(x)"), "{}: {lines}", entry.name);
        }
    }

    #[test]
    fn the_projection_of_clip_stands_before_the_head() {
        let mut config = config_of("clip_b16");
        config.preprocessing = Preprocessing::new(Normalisation::Clip, 160).unwrap();
        let lines = Recipe::new(&config).unwrap().lines();
        let parts = [
            "\"vit_base_patch16_clip_quickgelu_224\", num_classes=512, dynamic_img_size=True)",
            "model.projection = torch.nn.Linear(512, 8)",
            "Sequential(model.head, torch.nn.LayerNorm(512, elementwise_affine=False), model.projection)",
        ];
        assert_contains(&lines, &parts);
    }

    #[test]
    fn dinov2_goes_out_with_the_positions_of_its_images() {
        let cells = (0..37 * 37).map(|cell| (cell % 37) as f32);
        let bytes: Vec<u8> = std::iter::once(-1.0).chain(cells).flat_map(f32::to_le_bytes).collect();
        let stored = Stored { kind: Dtype::F32, shape: vec![1, 1370, 1], bytes };
        assert_eq!(stored.resampled(518).unwrap().bytes, stored.bytes);
        let small = stored.resampled(70).unwrap();
        assert_eq!(small.shape, [1, 26, 1]);
        let numbers: Vec<f32> =
            small.bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(numbers[0], -1.0);
        // Columns of a ramp lie where the published code has them: 37 / 5.1 · (i + ½) − ½.
        for (i, number) in numbers[1..6].iter().enumerate() {
            let place = 37.0 / 5.1 * (i as f32 + 0.5) - 0.5;
            assert!((number - place).abs() < 0.1, "{number} instead of {place}");
        }
    }

    #[test]
    fn lines_say_what_the_encoder_computes() {
        let (_, mut config) = encoder("resnet18");
        let lines = Recipe::new(&config).unwrap().lines();
        let parts = [
            "torchvision.models.resnet18(num_classes=8)",
            "torch.nn.Sequential(torch.nn.LayerNorm(512, elementwise_affine=False), model.fc)",
            "functional.normalize(x)",
        ];
        assert_contains(&lines, &parts);
        config.pooling = Some(Pooling::Gem { exponent: 3.0 });
        config.head = None;
        let lines = Recipe::new(&config).unwrap().lines();
        assert!(lines.contains("pow(3.0)") && lines.contains("model.fc = torch.nn.Identity()"), "{lines}");

        let (_, mut config) = encoder("vit_s16");
        config.pooling = Some(Pooling::AverageMax);
        let error = Recipe::new(&config).err().unwrap();
        assert!(error.to_string().contains("vit_small_patch16_224 has no pooling"), "{error}");
        let error = Recipe::new(&encoder("bn_inception").1).err().unwrap();
        assert!(error.to_string().contains("has a network for the weights of BN-Inception"), "{error}");
    }
}
