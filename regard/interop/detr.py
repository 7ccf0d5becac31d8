"""DETR folders of transformers become detectors of ours.

The layout that facebook/detr-resnet-50 has: a ResNet named as timm names it, or as transformers does, whose
frozen norms are folded into its convolutions; then `regard.models.detr`, tensor by tensor. Pictures are
stretched to one size, where its preprocessor keeps their proportions: boxes are shares of the sides.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config
from regard.config.detection import DetectionConfig
from regard.errors import ModelError, shown
from regard.foreign import read_json
from regard.images.picture import Fit
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.interop.tensors import Taking, read_tensors, settle
from regard.interop.vit import class_names
from regard.layers.resnet import Shape, shape_of
from regard.models.folder import Loaded

_BASIC, _NARROW = "basic 64 64x{} 128x{} 256x{} 512x{}", "bottleneck 64 256x{} 512x{} 1024x{} 2048x{}"
_RESNETS = {  # of timm
    "resnet18": _BASIC.format(2, 2, 2, 2),
    "resnet34": _BASIC.format(3, 4, 6, 3),
    "resnet50": _NARROW.format(3, 4, 6, 3),
    "resnet101": _NARROW.format(3, 4, 23, 3),
}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh"}
_SIDES, _PATCH = (800, 1333), 32  # of its preprocessor, where nothing is said; pixels that sides go by
_MEAN, _SPREAD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_EPS = 1e-5  # of the frozen norms
# What later versions of transformers call otherwise.
_RENAMED = ((".backbone.model.", ".backbone.conv_encoder.model."), (".o_proj.", ".out_proj."), (".mlp.", "."))
_BACKBONE = "model.backbone.conv_encoder.model"
_ENCODER = {
    "attention.out": "self_attn.out_proj",
    "around_attention.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "around_feed_forward.norm": "final_layer_norm",
}
_DECODER = _ENCODER | {
    "cross.out": "encoder_attn.out_proj",
    "around_cross.norm": "encoder_attn_layer_norm",
}


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    taking = Taking({_settled_name(name): each for name, each in read_tensors(folder).items()}, folder)
    for name in [name for name in taking.tensors if name.endswith("num_batches_tracked")]:
        taking.drop(name)
    if "class_labels_classifier.weight" not in taking.tensors:
        raise ModelError(f"{folder} holds no detector; one is read that says boxes (ForObjectDetection)")
    path = folder / "preprocessor_config.json"
    names, told = class_names(folder, tree), read_json(path) if path.exists() else {}
    config = _config(folder, tree, len(names), told)
    made = _preprocessing(folder, config.of(DetectionConfig), told)
    model = taking.model(config, _tensors(taking, config), "detr")
    files = {"labels.json": json.dumps(names).encode(), PREPROCESSING: made.to_json()}
    return Loaded(config, model, None, files)


def _preprocessing(folder: Path, held: DetectionConfig, told: dict[str, Any]) -> Preprocessing:
    """The size of the model's pictures, and the mean and spread of its preprocessor."""
    fit = Fit(held.height, held.width, held.channels, "stretch")
    tree = {"mean": told.get("image_mean", _MEAN), "spread": told.get("image_std", _SPREAD)}
    short = {name: each[: fit.channels] if isinstance(each, list) else each for name, each in tree.items()}
    return Preprocessing.from_json(json.dumps({"fit": vars(fit)} | short).encode(), str(folder))


def _settled_name(name: str) -> str:
    for new, old in _RENAMED:
        name = name.replace(new, old)
    return name


def _config(folder: Path, tree: dict[str, Any], classes: int, told: dict[str, Any]) -> Config:
    """Our settings of theirs."""
    activation = tree.get("activation_function")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ModelError(f"{folder}: the activation {shown(activation)} is not supported; there are {known}")
    for name, only in (("position_embedding_type", "sine"), ("dilation", False)):
        if tree.get(name, only) != only:
            raise ModelError(f"{folder}: {name} {shown(tree[name])} is not supported, {only} is")
    resnet = _resnet(folder, tree)
    height, width = _sides(folder, told)
    settings = {
        "task": "detection",
        "model.kind": "transformer",
        "model.d_model": tree.get("d_model"),
        "model.n_heads": tree.get("encoder_attention_heads"),
        "model.decoder_heads": tree.get("decoder_attention_heads"),
        "model.encoder_layers": tree.get("encoder_layers"),
        "model.decoder_layers": tree.get("decoder_layers"),
        "model.d_ff": tree.get("encoder_ffn_dim"),
        "model.decoder_d_ff": tree.get("decoder_ffn_dim"),
        "model.activation": _ACTIVATIONS[activation],
        "model.norm": "post",
        "model.dropout": tree.get("dropout", 0.1),
        "positions.kind": "sinusoidal",
        "detection.height": height,
        "detection.width": width,
        "detection.channels": tree.get("num_channels", 3),
        "detection.stride": shape_of(resnet).stride,
        "detection.backbone": "resnet",
        "detection.resnet": resnet,
        "detection.queries": tree.get("num_queries"),
        "detection.classes": classes,
        "detection.anchors": False,
        "detection.centred": False,
        "detection.denoising": 0,
    }
    return settle(settings, folder / "config.json", "DETR folder")


def _resnet(folder: Path, tree: dict[str, Any]) -> str:
    """Which ResNet it is, in our words."""
    held = tree.get("backbone_config")
    held = held if isinstance(held, dict) else {}
    if held.get("model_type") != "resnet":
        name = held.get("backbone") or tree.get("backbone")
        if not isinstance(name, str) or name not in _RESNETS:
            raise ModelError(
                f"{folder}: the backbone {shown(name)} is not supported; there are {', '.join(_RESNETS)}"
            )
        return _RESNETS[name]
    if held.get("downsample_in_bottleneck") or held.get("downsample_in_first_stage"):
        raise ModelError(f"{folder}: a ResNet that halves its maps elsewhere is not supported")
    sizes, depths = held.get("hidden_sizes"), held.get("depths")
    if not isinstance(sizes, list) or not isinstance(depths, list) or len(sizes) != len(depths):
        raise ModelError(f"{folder / 'config.json'} does not say hidden_sizes and depths of its backbone")
    stages = [f"{size}x{depth}" for size, depth in zip(sizes, depths, strict=True)]
    return " ".join([str(held.get("layer_type")), str(held.get("embedding_size")), *stages])


def _sides(folder: Path, told: dict[str, Any]) -> tuple[int, int]:
    """One height and width for all: those that are said, or the shorter side and four thirds of it."""
    size = told.get("size")
    size = {"shortest_edge": size} if isinstance(size, int) else size if isinstance(size, dict) else {}
    short = size.get("shortest_edge", _SIDES[0])
    most = size.get("longest_edge", told.get("max_size", _SIDES[1]))
    sides = size.get("height", short), size.get("width")
    if not all(type(side) is int and side > 0 for side in (short, most, sides[0], sides[1] or 1)):
        raise ModelError(f"{folder / 'preprocessor_config.json'}: its size is not numbers of pixels")
    if sides[1]:
        return sides[0], sides[1]
    return short, max(_PATCH, min(most, short * 4 // 3) // _PATCH * _PATCH)


def _tensors(taking: Taking, config: Config) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    yield from _backbone(taking, shape_of(config.of(DetectionConfig).resnet))
    yield "query", taking.take("model.query_position_embeddings.weight")
    for part in ("weight", "bias"):
        yield f"backbone.out.{part}", taking.take(f"model.input_projection.{part}")
        for i in range(config.model.encoder_layers):
            yield from _layer(taking, "encoder", i, part, {"attention": "self_attn"}, _ENCODER)
        looks = {"attention": "self_attn", "cross": "encoder_attn"}
        for i in range(config.model.decoder_layers):
            yield from _layer(taking, "decoder", i, part, looks, _DECODER)
        yield f"decoder_norm.{part}", taking.take(f"model.decoder.layernorm.{part}")
        yield f"output.{part}", taking.take(f"class_labels_classifier.{part}")
        for i, own in enumerate(("inner.0", "inner.1", "outer")):
            yield f"boxes.{own}.{part}", taking.take(f"bbox_predictor.layers.{i}.{part}")


def _layer(
    taking: Taking, stack: str, number: int, part: str, looks: dict[str, str], others: dict[str, str]
) -> Iterator[tuple[str, Tensor]]:
    """One layer: its attentions, and what else it has."""
    there, own = f"model.{stack}.layers.{number}", f"{stack}.{number}"
    for ours, theirs in looks.items():
        yield f"{own}.{ours}.query.{part}", taking.take(f"{there}.{theirs}.q_proj.{part}")
        both = [f"{there}.{theirs}.{which}_proj.{part}" for which in ("k", "v")]
        yield f"{own}.{ours}.key_value.{part}", taking.join(both)
    for ours, theirs in others.items():
        yield f"{own}.{ours}.{part}", taking.take(f"{there}.{theirs}.{part}")


def _backbone(taking: Taking, shape: Shape) -> Iterator[tuple[str, Tensor]]:
    """The convolutions, with the frozen norm behind each folded in."""
    timm = f"{_BACKBONE}.conv1.weight" in taking.tensors
    steps = 2 if shape.kind == "basic" else 3
    stem = ("conv1", "bn1") if timm else _pair("embedder.embedder")
    yield from _folded(taking, "backbone.stem", *stem)
    number, at = 0, shape.stem
    for stage, (to, count) in enumerate(shape.stages):
        for block in range(count):
            there = f"layer{stage + 1}.{block}" if timm else f"encoder.stages.{stage}.layers.{block}"
            own = f"backbone.blocks.{number}"
            for i in range(steps):
                pair = (f"{there}.conv{i + 1}", f"{there}.bn{i + 1}") if timm else _pair(f"{there}.layer.{i}")
                yield from _folded(taking, f"{own}.steps.{i}", *pair)
            if (stage and not block) or at != to:
                short = f"{there}.downsample"
                pair = (f"{short}.0", f"{short}.1") if timm else _pair(f"{there}.shortcut")
                yield from _folded(taking, f"{own}.shortcut", *pair)
            number, at = number + 1, to


def _pair(there: str) -> tuple[str, str]:
    return f"{there}.convolution", f"{there}.normalization"


def _folded(taking: Taking, own: str, kernel: str, norm: str) -> Iterator[tuple[str, Tensor]]:
    """gain (W x - mean) / deviation + bias as one product with a bias."""
    weight = taking.take(f"{_BACKBONE}.{kernel}.weight")
    gain, bias, mean, variance = (
        taking.take(f"{_BACKBONE}.{norm}.{part}")
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    if weight.dim() != 4 or not len(weight) == len(gain) == len(bias) == len(mean) == len(variance):
        raise ModelError(f"{taking.folder}: {norm} does not fit {kernel}")
    scale = gain * (variance + _EPS).rsqrt()
    yield f"{own}.weight", weight * scale[:, None, None, None]
    yield f"{own}.bias", bias - mean * scale
