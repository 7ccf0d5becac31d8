"""DETR with random weights: our boxes and logits are those of transformers; what is broken is one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

import regard
from regard.cli.main import run as command
from regard.errors import ModelError
from regard.interop.detr import read

SHAPE = {
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 28,
    "num_queries": 7,
    "num_labels": 5,
}
SIZE = {"size": {"height": 45, "width": 61}}
NAMES = {str(n): f"kind {n}" for n in range(5)}


def written(folder: Path, kind: str = "bottleneck", **more: Any) -> torch.nn.Module:
    torch.manual_seed(3)
    backbone = ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8 if kind == "basic" else 12, 20],
        depths=[1, 2],
        layer_type=kind,
        out_features=["stage2"],
    )
    theirs = DetrForObjectDetection(
        DetrConfig(use_timm_backbone=False, backbone_config=backbone, **(SHAPE | more))
    ).eval()
    with torch.no_grad():
        for name, weight in [*theirs.named_parameters(), *theirs.named_buffers()]:
            if weight.is_floating_point() and ("norm" in name or "bias" in name or "mean" in name):
                weight.add_(torch.rand_like(weight) * 0.3)  # above 0, for some are variances
    theirs.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(SIZE))
    return theirs


def renamed(folder: Path) -> None:
    """The backbone as timm names it, as published folders have it."""
    path = folder / "model.safetensors"
    held = safetensors.torch.load_file(path)
    stem = "model.backbone.conv_encoder.model"
    found = {}
    for name, tensor in held.items():
        for stage in range(2):
            name = name.replace(f"{stem}.encoder.stages.{stage}.layers.", f"{stem}.layer{stage + 1}.")
        for step in range(3):
            name = name.replace(f".layer.{step}.convolution", f".conv{step + 1}")
            name = name.replace(f".layer.{step}.normalization", f".bn{step + 1}")
        for theirs, timm in (
            ("embedder.embedder.convolution", "conv1"),
            ("embedder.embedder.normalization", "bn1"),
            ("shortcut.convolution", "downsample.0"),
            ("shortcut.normalization", "downsample.1"),
        ):
            name = name.replace(theirs, timm)
        found[name] = tensor.clone()
    found[f"{stem}.bn1.num_batches_tracked"] = torch.tensor(3)
    safetensors.torch.save_file(found, path)


@pytest.mark.parametrize(("kind", "timm"), [("bottleneck", False), ("basic", False), ("bottleneck", True)])
def test_boxes_and_logits_are_those_of_transformers(kind: str, timm: bool, tmp_path: Path) -> None:
    theirs = written(tmp_path, kind)
    if timm:
        renamed(tmp_path)
    loaded = read(tmp_path)
    pixels = torch.randn(2, 3, 45, 61)
    with torch.no_grad():
        want, have = theirs(pixels), loaded.model(pixels)
    torch.testing.assert_close(have.classes[-1], want.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(have.boxes[-1], want.pred_boxes, atol=1e-4, rtol=1e-4)
    assert len(have.classes) == 3


def test_the_folder_is_used_like_any_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    theirs = written(tmp_path / "detr", id2label=NAMES)
    assert command(["import", str(tmp_path / "detr"), "-o", str(tmp_path / "own")]) == 0
    assert "A detector imported from" in (tmp_path / "own" / "README.md").read_text()
    picture = np.random.default_rng(1).integers(0, 256, (45, 61, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "one.png")
    detector = regard.load(tmp_path / "own")
    (seen,) = detector.detect([tmp_path / "one.png"], threshold=0.0)
    mean, spread = (torch.tensor(each)[:, None, None] for each in (detector.made.mean, detector.made.spread))
    with torch.no_grad():
        out = theirs(((torch.tensor(picture).permute(2, 0, 1) / 255 - mean) / spread)[None].float())
    chances = out.logits[0].softmax(-1)[:, :-1].max(-1).values.sort(descending=True).values
    assert [each.score for each in seen.objects] == pytest.approx(chances.tolist(), abs=1e-4)
    look = regard.look(tmp_path / "own", str(tmp_path / "one.png"))
    names = [each.name for each in look.maps]
    assert {"encoder.1.self", "decoder.2.cross", "decoder.0.self", "rollout"} <= set(names)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"activation_function": "tanh"}, "the activation tanh is not supported"),
        ({"activation_function": ["relu"]}, "the activation a list is not supported"),
        ({"backbone_config": None, "backbone": ["resnet50"]}, "the backbone a list is not supported"),
        ({"position_embedding_type": "learned"}, "position_embedding_type learned is not supported"),
        ({"dilation": True}, "dilation True is not supported"),
        ({"backbone_config": None, "backbone": "vgg"}, "the backbone vgg is not supported"),
        ({"backbone_config": {"model_type": "resnet"}}, "does not say hidden_sizes"),
        ({"d_model": 24}, "config.json asks for"),
        ({"decoder_layers": 4}, "lacks the tensor"),
        ({"encoder_layers": 1}, "holds the tensor"),
        ({"id2label": {"1": "a", "7": "b"}}, "does not number its classes from 0"),
    ],
)
def test_what_is_broken_is_one_line(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=words):
        read(tmp_path)


def test_sizes_that_are_none_are_refused(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": {"shortest_edge": "large"}}))
    with pytest.raises(ModelError, match="its size is not numbers of pixels"):
        read(tmp_path)
