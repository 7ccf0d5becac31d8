"""ViT and DeiT folders of transformers become classifiers of pictures of ours.

A patch is one product, a place in front sums up (DeiT has a second one, which learned from a teacher and is
looked at like any other), positions are learned, norms stand before their sub-layers. Pictures are stretched
to the model's size, as its preprocessor does; mean and spread are what preprocessor_config.json says.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import read_json
from regard.images.picture import Fit
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu"}
_LAYER = {
    "attention.out": "attention.output.dense",
    "around_attention.norm": "layernorm_before",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "around_feed_forward.norm": "layernorm_after",
}
_UNUSED = ("pooler.dense.weight", "pooler.dense.bias", "embeddings.mask_token")
_MIDDLE = [0.5, 0.5, 0.5]  # what its preprocessor takes where nothing is said


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    kind = str(tree.get("model_type"))
    theirs = read_tensors(folder)
    taking = Taking({name.removeprefix(f"{kind}."): each for name, each in theirs.items()}, folder)
    for name in _UNUSED:
        taking.drop(name)
    if "classifier.weight" not in taking.tensors:
        what = (
            "a teacher's pupil with two outputs" if "cls_classifier.weight" in taking.tensors else "no output"
        )
        raise ModelError(f"{folder} holds {what}; a classifier (ForImageClassification) is read")
    config = _config(folder, tree, front=1 + ("embeddings.distillation_token" in taking.tensors))
    names = class_names(folder, tree)
    made = _preprocessing(folder, config)
    model = taking.model(config, _tensors(taking, config), kind)
    files = {"labels.json": json.dumps(names).encode(), PREPROCESSING: made.to_json()}
    return Loaded(config, model, None, files)


def _config(folder: Path, tree: dict[str, Any], *, front: int) -> Config:
    """Our settings of theirs."""
    activation = tree.get("hidden_act")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ModelError(f"{folder}: the activation {shown(activation)} is not supported; there are {known}")
    if tree.get("qkv_bias", True) is not True:
        raise ModelError(f"{folder}: qkv_bias {shown(tree['qkv_bias'])} is not supported")
    sizes = {name: _sides(folder, tree, name) for name in ("image_size", "patch_size")}
    if sizes["patch_size"][0] != sizes["patch_size"][1]:
        raise ModelError(f"{folder}: a patch must be a square, not {sizes['patch_size']}")
    labels = tree.get("id2label")
    settings = {
        "task": "image",
        "model.kind": "encoder",
        "model.d_model": tree.get("hidden_size"),
        "model.n_heads": tree.get("num_attention_heads"),
        "model.encoder_layers": tree.get("num_hidden_layers"),
        "model.decoder_layers": 0,
        "model.d_ff": tree.get("intermediate_size"),
        "model.activation": _ACTIVATIONS[activation],
        "model.norm": "pre",
        "model.norm_eps": tree.get("layer_norm_eps", 1e-12),
        "model.dropout": tree.get("hidden_dropout_prob", 0.0),
        "positions.kind": "learned",
        "image.height": sizes["image_size"][0],
        "image.width": sizes["image_size"][1],
        "image.channels": tree.get("num_channels", 3),
        "image.fit": "stretch",
        "image.patch": sizes["patch_size"][0],
        "image.stem": "patches",
        "image.pooling": "first",
        "image.front": front,
        "image.classes": len(labels) if isinstance(labels, dict) else 2,
    }
    return settle(settings, folder / "config.json", "ViT folder")


def _sides(folder: Path, tree: dict[str, Any], name: str) -> tuple[int, int]:
    """Height and width; one number is both."""
    given = tree.get(name)
    pair = [given, given] if isinstance(given, int) else given
    if (
        not isinstance(pair, list)
        or len(pair) != 2
        or not all(type(side) is int and side > 0 for side in pair)
    ):
        raise ModelError(f"{folder / 'config.json'} does not say {name}; it is no whole ViT folder")
    return pair[0], pair[1]


def class_names(folder: Path, tree: dict[str, Any]) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    held = tree.get("id2label") or {"0": "0", "1": "1"}
    try:
        numbered = {int(number): str(name) for number, name in held.items()}
        names = [numbered[number] for number in range(len(numbered))]
    except (ValueError, KeyError, AttributeError) as error:
        raise ModelError(f"{folder / 'config.json'}: id2label does not number its classes from 0") from error
    # Two classes of ImageNet share a name; a label must be one.
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names)]


def _preprocessing(folder: Path, config: Config) -> Preprocessing:
    """The size of the model's pictures, and the mean and spread of its preprocessor."""
    from regard.config.image import ImageConfig

    image, path = config.of(ImageConfig), folder / "preprocessor_config.json"
    tree = read_json(path) if path.exists() else {}
    fit = Fit(image.height, image.width, image.channels, image.fit)
    tree = {
        "fit": vars(fit),
        "mean": tree.get("image_mean", _MIDDLE),
        "spread": tree.get("image_std", _MIDDLE),
    }
    for name in ("mean", "spread"):
        tree[name] = tree[name][: fit.channels] if isinstance(tree[name], list) else tree[name]
    return Preprocessing.from_json(json.dumps(tree).encode(), str(folder))


def _tensors(taking: Taking, config: Config) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    from regard.config.image import ImageConfig

    front = ["embeddings.cls_token", "embeddings.distillation_token"][: config.of(ImageConfig).front]
    yield "whole", taking.join(front).view(1, len(front), -1)
    yield "positions.table", taking.take("embeddings.position_embeddings").flatten(0, 1)
    for part in ("weight", "bias"):
        yield f"stem.read.{part}", taking.take(f"embeddings.patch_embeddings.projection.{part}")
        for i in range(config.model.encoder_layers):
            there = f"encoder.layer.{i}"
            own = f"encoder.{i}.attention"
            yield f"{own}.query.{part}", taking.take(f"{there}.attention.attention.query.{part}")
            both = [f"{there}.attention.attention.{which}.{part}" for which in ("key", "value")]
            yield f"{own}.key_value.{part}", taking.join(both)
            for ours, name in _LAYER.items():
                yield f"encoder.{i}.{ours}.{part}", taking.take(f"{there}.{name}.{part}")
        yield f"encoder_norm.{part}", taking.take(f"layernorm.{part}")
        yield f"output.{part}", taking.take(f"classifier.{part}")
