"""ViT and DeiT with random weights: our logits are those of transformers; what is broken is one line."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import DeiTConfig, DeiTForImageClassification, ViTConfig, ViTForImageClassification

import regard
from regard.cli.main import run as command
from regard.errors import ModelError
from regard.interop.vit import read

SHAPE = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}
KINDS = {
    "vit": (ViTConfig, ViTForImageClassification),
    "deit": (DeiTConfig, DeiTForImageClassification),
}


def written(folder: Path, kind: str, **more: object) -> torch.nn.Module:
    torch.manual_seed(3)
    config, model = KINDS[kind]
    theirs = model(config(**(SHAPE | more))).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if "token" in name or "position" in name or "norm" in name:
                weight.add_(torch.randn_like(weight) * 0.3)
    theirs.save_pretrained(folder)
    return theirs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"num_channels": 1, "hidden_act": "gelu_new"}])
def test_logits_are_those_of_transformers(kind: str, more: dict[str, object], tmp_path: Path) -> None:
    theirs = written(tmp_path, kind, **more)
    loaded = read(tmp_path)
    pixels = torch.randn(2, int(more.get("num_channels", 3)), 12, 12)  # type: ignore[call-overload]
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(pixels), theirs(pixels).logits, atol=1e-4, rtol=1e-4)


def test_the_folder_is_used_like_any_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    theirs = written(tmp_path / "vit", "vit", id2label={str(n): f"kind {n}" for n in range(5)})
    mean, spread = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    (tmp_path / "vit" / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": mean, "image_std": spread})
    )
    assert command(["import", str(tmp_path / "vit"), "-o", str(tmp_path / "own")]) == 0
    assert "A classifier of pictures imported from" in (tmp_path / "own" / "README.md").read_text()
    picture = np.random.default_rng(1).integers(0, 256, (12, 12, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "one.png")
    told = f"own is ready: regard classify -m {tmp_path / 'own'} picture.jpg"
    assert capfd.readouterr().err.splitlines()[-1].endswith(told)
    assert command(["classify", "-m", str(tmp_path / "own"), str(tmp_path / "one.png"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    pixels = (
        torch.tensor(picture).permute(2, 0, 1) / 255 - torch.tensor(mean)[:, None, None]
    ) / torch.tensor(spread)[:, None, None]
    with torch.no_grad():
        chances = theirs(pixels[None].float()).logits.softmax(-1)[0]
    assert found["label"] == f"kind {int(chances.argmax())}"
    assert found["probability"] == pytest.approx(float(chances.max()), abs=1e-4)
    assert regard.look(tmp_path / "own", str(tmp_path / "one.png")).grid == (3, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_act": "tanh"}, "the activation tanh is not supported"),
        ({"hidden_act": ["gelu"]}, "the activation a list is not supported"),
        ({"qkv_bias": False}, "qkv_bias False is not supported"),
        ({"image_size": "large"}, "does not say image_size"),
        ({"patch_size": [4, 2]}, "a patch must be a square"),
        ({"hidden_size": 18}, "config.json asks for"),
        ({"num_hidden_layers": 3}, "lacks the tensor"),
        ({"id2label": {"1": "a", "7": "b"}}, "does not number its classes from 0"),
    ],
)
def test_what_is_broken_is_one_line(change: dict[str, object], words: str, tmp_path: Path) -> None:
    written(tmp_path, "vit")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=words):
        read(tmp_path)
