"""Writes ten published architectures as ONNX files, with random weights and a dynamic batch.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/onnx_models.py models [NAME…]

Beside each file stands what its library says of preprocessing, as `config.json` (timm) or `preprocessor_config.json`
(transformers). `onnx_engines.py` sets akin beside ONNX Runtime on these files.
"""

import argparse
import json
import pathlib

import torch

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Visual(torch.nn.Module):
    """The image tower of a transformers model with two towers: pixels to the projected embedding."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).image_embeds


class Tokens(torch.nn.Module):
    """The tokens of a transformer of timm, after its last norm."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model.forward_features(pixel_values)


def torchvision_model(name):
    import torchvision

    model = torchvision.models.get_model(name, weights=None)
    model.fc = torch.nn.Identity()
    return model, None


def timm_model(name, tokens=False, **settings):
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=0, **settings)
    config = {"architecture": name, "pretrained_cfg": timm.data.resolve_data_config({"img_size": 224}, model=model)}
    return (Tokens(model) if tokens else model), {"config.json": config}


def clip_model():
    from transformers import CLIPImageProcessor, CLIPVisionConfig, CLIPVisionModelWithProjection

    # The published sizes of ViT-B/16.
    config = CLIPVisionConfig(patch_size=16, projection_dim=512)
    return Visual(CLIPVisionModelWithProjection(config)), {"preprocessor_config.json": CLIPImageProcessor().to_dict()}


MODELS = {
    "resnet50": lambda: torchvision_model("resnet50"),
    "convnext_tiny": lambda: timm_model("convnext_tiny"),
    "vit_base_patch16": lambda: timm_model("vit_base_patch16_224"),
    "dinov2_s14_registers": lambda: timm_model("vit_small_patch14_reg4_dinov2", tokens=True, img_size=224),
    "dinov3_s16": lambda: timm_model("vit_small_patch16_dinov3", tokens=True, img_size=224),
    "siglip2_b16": lambda: timm_model("vit_base_patch16_siglip_224"),
    "clip_vit_b16": clip_model,
    "efficientnet_b0": lambda: timm_model("efficientnet_b0"),
    "mobilenetv4_small": lambda: timm_model("mobilenetv4_conv_small"),
    "swin_tiny": lambda: timm_model("swin_tiny_patch4_window7_224"),
}


def disturb(model):
    """Gives what a fresh network leaves at 0 or 1 (biases, norms, statistics, layer scales) random values, so that a
    mistake in it shows."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() <= 1:
                scale = 0.3 if "gamma" in name else 1.0
                parameter.mul_(0.0 if parameter.abs().max() < 1e-3 else 1.0)
                parameter.add_(0.05 * scale * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            if name.endswith("running_var"):
                buffer.uniform_(0.7, 1.3)


def export(name, folder):
    torch.manual_seed(0)
    model, files = MODELS[name]()
    disturb(model)
    model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    image = torch.randn(2, 3, 224, 224)
    torch.onnx.export(
        model,
        (image,),
        str(folder / "model.onnx"),
        input_names=["pixel_values"],
        output_names=["features"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        dynamo=True,
        external_data=False,
    )
    for file, content in (files or {}).items():
        (folder / file).write_text(json.dumps(content, indent=1, default=list))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="the folder for the files, one folder a network")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="networks (all)")
    arguments = parser.parse_args()
    for name in arguments.names:
        export(name, arguments.out / name)
        print(name, flush=True)
