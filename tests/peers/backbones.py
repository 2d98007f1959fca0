"""Writes what timm, transformers and open_clip compute of small random networks: fixtures of core's tests of backbones.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/backbones.py

The networks are the published classes with few features and blocks. Each weight is a function of its name
(`core/tests/backbones/fixtures.py`), so that no weights are stored. A fixture holds the names and shapes of all weights
as their files have them, and, at the native size and at others, the features and samples of the gradient of a fixed sum
of them.
"""

import functools
import importlib
import json
import math
import pathlib
import sys
import types

import numpy as np
import open_clip
import timm
import torch
import transformers
from torch import nn
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "core/src/models"
WIDTH, HEADS, HIDDEN, PROJECTED = 48, 4, 96, 20
SAMPLES = 24


def load_formula():
    """The formula of weights, without the packages that the other fixtures need."""
    for name in ("torchvision", "safetensors.torch", "safetensors"):
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    text = (ROOT / "core/tests/backbones/fixtures.py").read_text()
    start, end = text.index("def formula("), text.index("    return torch.from_numpy(numbers")
    scope = {"np": np, "torch": torch, "hashlib": __import__("hashlib")}
    exec(text[start:end] + "    return torch.from_numpy(numbers.astype(np.float32)).double()\n", scope)
    return scope["formula"], scope["weight"]


formula, weight = load_formula()


def sample(tensor):
    values = tensor.detach().double().flatten()
    places = [i * len(values) // min(SAMPLES, len(values)) for i in range(min(SAMPLES, len(values)))]
    return {
        "largest": values.abs().max().item(),
        "norm": values.norm().item(),
        "values": [float(f"{values[place].item():.7g}") for place in places],
    }


def read_interpolated(self, embeddings, height, width):
    """The positions of DINOv2's published code without registers: an offset of 0.1, and no wider window."""
    positions, patch = self.position_embeddings, 14
    side = math.isqrt(positions.shape[1] - 1)
    rows, columns = height // patch, width // patch
    if rows == columns == side:
        return positions
    grid = positions[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    grid = functional.interpolate(grid, scale_factor=((rows + 0.1) / side, (columns + 0.1) / side), mode="bicubic")
    assert grid.shape[-2:] == (rows, columns)
    return torch.cat([positions[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)


HUGGING_FACE = dict(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, layer_norm_eps=1e-6)
TIMM = dict(embed_dim=WIDTH, depth=2, num_heads=HEADS, mlp_ratio=HIDDEN / WIDTH, num_classes=0, dynamic_img_size=True)


def joined(parameters, prefix, names, kind):
    return torch.cat([parameters[f"{prefix}.{name}.{kind}"].grad for name in names])


def vit_timm():
    model = timm.models.vision_transformer.VisionTransformer(img_size=64, patch_size=16, **TIMM)

    def features(images):
        x = model.forward_features(images)
        return x[:, 0], x[:, 1:]

    names = ["pos_embed", "blocks.0.attn.qkv.weight", "blocks.1.mlp.fc1.bias", "norm.weight"]
    return model, features, lambda p: {name: p[name].grad for name in names}


def vit_hugging_face():
    config = transformers.ViTConfig(intermediate_size=HIDDEN, image_size=64, patch_size=16, **{**HUGGING_FACE, "layer_norm_eps": 1e-6})
    model = transformers.ViTModel(config, add_pooling_layer=False)

    def features(images):
        x = model(images).last_hidden_state
        return x[:, 0], x[:, 1:]

    return model, features, lambda p: {}


def dinov2(registers):
    kinds = {False: (transformers.Dinov2Config, transformers.Dinov2Model),
             True: (transformers.Dinov2WithRegistersConfig, transformers.Dinov2WithRegistersModel)}
    make, network = kinds[registers]
    model = network(make(mlp_ratio=HIDDEN // WIDTH, image_size=56, patch_size=14, **HUGGING_FACE))
    if not registers:
        model.embeddings.interpolate_pos_encoding = types.MethodType(read_interpolated, model.embeddings)
    first = 5 if registers else 1

    def features(images):
        x = model(images).last_hidden_state
        return x[:, 0], x[:, first:]

    def gradients(p):
        positions = p["embeddings.position_embeddings"].grad
        return {
            "pos_embed": positions[:, 1:] if registers else positions,
            "blocks.0.mlp.fc2.weight": by_suffix(p, "0.mlp.fc2.weight").grad,
            "blocks.1.ls2.gamma": by_suffix(p, "1.layer_scale2.lambda1").grad,
        }

    return model, features, gradients


def by_suffix(parameters, suffix):
    [found] = [value for name, value in parameters.items() if name.endswith("." + suffix)]
    return found


def clip_hugging_face():
    config = transformers.CLIPVisionConfig(
        intermediate_size=HIDDEN, image_size=64, patch_size=16, projection_dim=PROJECTED, hidden_act="quick_gelu",
        **{**HUGGING_FACE, "layer_norm_eps": 1e-5})
    model = transformers.CLIPVisionModelWithProjection(config)

    def gradients(p):
        return {"norm_pre.weight": by_suffix(p, "pre_layrnorm.weight").grad, "head.weight": p["visual_projection.weight"].grad}

    return model, lambda images: (model(images).image_embeds, None), gradients


def clip_open_clip(side):
    """The tower of ViT-L/14 with GELU. Its positions are interpolated when weights are loaded at another size."""
    def tower(side):
        return open_clip.transformer.VisionTransformer(
            image_size=side, patch_size=14, width=WIDTH, layers=2, heads=HEADS, mlp_ratio=HIDDEN / WIDTH, output_dim=PROJECTED)

    class Clip(nn.Module):
        def __init__(self):
            super().__init__()
            self.visual = tower(56)
            self.text_projection = nn.Parameter(torch.zeros(3, 3))

    model = Clip()

    def features(images):
        if images.shape[-1] == 56:
            return model.visual(images), None
        # The same weights in a tower of this size, in the same graph.
        other = types.SimpleNamespace(visual=tower(images.shape[-1]).double())
        state = {name: value for name, value in model.named_parameters()}
        open_clip.model.resize_pos_embed(state, other)
        state = {name.removeprefix("visual."): value for name, value in state.items() if name.startswith("visual.")}
        return torch.func.functional_call(other.visual, state, images), None

    def gradients(p):
        return {
            "pos_embed": p["visual.positional_embedding"].grad,
            "blocks.0.attn.qkv.weight": p["visual.transformer.resblocks.0.attn.in_proj_weight"].grad,
            "head.weight": p["visual.proj"].grad.T,
        }

    return model, features, gradients


def siglip_timm():
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, class_token=False, global_pool="map", act_layer="gelu_tanh", **TIMM)

    def features(images):
        x = model.forward_features(images)
        return model.forward_head(x, pre_logits=True), x

    names = ["pos_embed", "attn_pool.latent", "attn_pool.kv.weight", "attn_pool.mlp.fc1.weight"]
    return model, features, lambda p: {name: p[name].grad for name in names}


def siglip_hugging_face():
    config = transformers.SiglipVisionConfig(intermediate_size=HIDDEN, image_size=64, patch_size=16, **HUGGING_FACE)

    class Siglip(nn.Module):
        def __init__(self):
            super().__init__()
            self.vision_model = transformers.SiglipVisionModel(config)

    model = Siglip()
    return model, lambda images: (model.vision_model(images).pooler_output, None), lambda p: {}


def dinov3_hugging_face():
    config = transformers.DINOv3ViTConfig(
        intermediate_size=HIDDEN, num_register_tokens=4, patch_size=16, **{**HUGGING_FACE, "layer_norm_eps": 1e-5})
    model = transformers.DINOv3ViTModel(config)

    def features(images):
        x = model(images).last_hidden_state
        return x[:, 0], x[:, 5:]

    def gradients(p):
        prefix = "model.layer.0.attention"
        # There is no bias of the keys.
        return {"blocks.0.attn.qkv.weight": joined(p, prefix, ["q_proj", "k_proj", "v_proj"], "weight"),
                "reg_token": p["embeddings.register_tokens"].grad}

    return model, features, gradients


def dinov3_plus_timm():
    model = timm.models.eva.Eva(
        img_size=64, patch_size=16, qkv_bias=False, init_values=1e-5, rope_type="dinov3", rope_temperature=100,
        rope_rotate_half=True, use_rot_pos_emb=True, use_abs_pos_emb=False, swiglu_mlp=True, swiglu_align_to=8,
        num_reg_tokens=4, use_fc_norm=False, norm_layer=functools.partial(timm.layers.LayerNorm, eps=1e-5),
        global_pool="token", **TIMM)

    def features(images):
        x = model.forward_features(images)
        return x[:, 0], x[:, 5:]

    names = {"blocks.0.attn.qkv.weight": None, "blocks.1.mlp.fc1_g.weight": None, "blocks.0.ls1.gamma": "blocks.0.gamma_1"}
    return model, features, lambda p: {name: p[other or name].grad for name, other in names.items()}


def stored_names(model):
    """The names of a file of Hugging Face, which its library translates when it reads and writes."""
    if not isinstance(model, transformers.PreTrainedModel):
        return {name: name for name in model.state_dict()}
    import tempfile
    from safetensors import safe_open
    for i, (name, parameter) in enumerate(model.named_parameters()):
        with torch.no_grad():
            parameter.fill_(i + 1)
    by_number = {i + 1: name for i, (name, _) in enumerate(model.named_parameters())}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            return {by_number[int(file.get_tensor(name).flatten()[0].item())]: name for name in file.keys()}


TRANSFORMERS = [
    # The backbone, whose names, the network, and the sides of its images.
    ("vit_b16", "timm", vit_timm, [64, 96, 32]),
    ("vit_b16", "hugging face", vit_hugging_face, [64]),
    ("dinov2_b14", "hugging face", lambda: dinov2(False), [56, 84, 42]),
    ("dinov2_b14_reg4", "hugging face", lambda: dinov2(True), [56, 84, 42]),
    ("clip_b16", "hugging face", clip_hugging_face, [64]),
    ("bioclip2", "open_clip", lambda: clip_open_clip(56), [56, 84, 42]),
    ("siglip2_b16", "timm", siglip_timm, [64, 96]),
    ("siglip2_b16", "hugging face", siglip_hugging_face, [64]),
    ("dinov3_s16", "hugging face", dinov3_hugging_face, [64, 96]),
    ("dinov3_s16_plus", "timm", dinov3_plus_timm, [64, 96]),
]


def measure(kind, names, build, sides):
    model, features, gradients = build()
    model.double().eval()
    stored = stored_names(model)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weight(stored[name], tuple(parameter.shape)))
    fixture = {"backbone": kind, "names": names, "weights": {stored[n]: list(p.shape) for n, p in parameters.items()}, "sizes": []}
    for side in sides:
        model.zero_grad()
        images = torch.from_numpy(formula("images", (2, 3, side, side)))
        images.requires_grad_()
        pooled, patches = features(images)
        output = pooled if patches is None else torch.cat([pooled, patches.mean(1)], 1)
        (output * torch.from_numpy(formula("factors", tuple(output.shape)))).sum().backward()
        found = {**gradients(parameters), "images": images.grad}
        fixture["sizes"].append({
            "side": side, "has_patches": patches is not None, "features": sample(output),
            "gradients": {name: sample(gradient) for name, gradient in found.items()}})
        print(kind, names, side, output.norm().item())
    return fixture


def write(name, networks):
    versions = f"timm {timm.__version__}, transformers {transformers.__version__}, open_clip {open_clip.__version__}, torch {torch.__version__}"
    fixtures = [measure(*network) for network in networks]
    text = json.dumps({"versions": versions, "networks": fixtures}, separators=(",", ":"))
    (OUT / name).write_text(text.replace('"sizes"', '\n"sizes"').replace('{"side"', '\n{"side"') + "\n")


def count_weights():
    """The numbers of weights of the networks at full size, without classifiers."""
    def of_timm(name, **settings):
        return lambda: timm.create_model(name, num_classes=0, **settings)

    def of_open_clip(name):
        return lambda: open_clip.create_model(name, device="meta").visual

    networks = {
        "vit_b16": of_timm("vit_base_patch16_224"),
        "vit_l16": of_timm("vit_large_patch16_224"),
        "dinov2_b14": of_timm("vit_base_patch14_dinov2"),
        "dinov2_l14": of_timm("vit_large_patch14_dinov2"),
        "dinov2_b14_reg4": of_timm("vit_base_patch14_reg4_dinov2"),
        "dinov2_l14_reg4": of_timm("vit_large_patch14_reg4_dinov2"),
        "clip_b16": of_open_clip("ViT-B-16-quickgelu"),
        "open_clip_b16": of_open_clip("ViT-B-16"),
        "bioclip2": of_open_clip("ViT-L-14"),
        "siglip2_b16": of_timm("vit_base_patch16_siglip_224"),
        "dinov3_s16": of_timm("vit_small_patch16_dinov3"),
        "dinov3_s16_plus": of_timm("vit_small_plus_patch16_dinov3"),
        "dinov3_b16": of_timm("vit_base_patch16_dinov3"),
        "dinov3_l16": of_timm("vit_large_patch16_dinov3"),
        "convnext_t": of_timm("convnext_tiny"),
        "convnext_b": of_timm("convnext_base"),
    }
    counts = {}
    with torch.device("meta"):
        for name, build in networks.items():
            model = build()
            counts[name] = sum(p.numel() for p in model.parameters())
            # akin has a bias of queries, keys and values that timm's DINOv3 leaves out.
            if name.startswith("dinov3"):
                counts[name] += sum(3 * block.attn.proj.in_features for block in model.blocks)
            print(name, counts[name])
    (ROOT / "core/tests/backbones/large.json").write_text(json.dumps(counts, indent=1) + "\n")


def convnext_timm():
    model = timm.models.convnext.ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 12, 16, 24), num_classes=0)

    def features(images):
        return model(images), None

    names = ["stem.0.weight", "stages.0.blocks.0.gamma", "stages.1.downsample.1.weight", "stages.2.blocks.0.conv_dw.weight",
             "stages.3.blocks.0.mlp.fc1.weight", "head.norm.weight"]
    return model, features, lambda p: {name: p[name].grad for name in names}


def convnext_hugging_face():
    config = transformers.ConvNextConfig(depths=[1, 2, 1, 1], hidden_sizes=[8, 12, 16, 24], layer_norm_eps=1e-6)
    model = transformers.ConvNextModel(config)
    return model, lambda images: (model(images).pooler_output, None), lambda p: {}


CONVNEXTS = [
    ("convnext_t", "timm", convnext_timm, [64, 96]),
    ("convnext_t", "hugging face", convnext_hugging_face, [64]),
]

if __name__ == "__main__":
    torch.manual_seed(0)
    count_weights()
    write("vision_transformer/published.json", TRANSFORMERS)
    write("convnext/published.json", CONVNEXTS)
