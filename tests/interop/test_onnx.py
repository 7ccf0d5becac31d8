"""ONNX graphs, run by onnxruntime: the translations of the original, greedy and beam."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.errors import ModelError
from regard.interop import onnx
from regard.models.folder import Loaded
from regard.tasks.translation.translator import Translator

VARIANTS: list[dict[str, Any]] = [
    {"model__norm": "pre", "model__norm_weights": "gain"},
    {"model__norm": "post", "model__tied": "none", "model__output_bias": True, "model__activation": "swish"},
    {"positions__kind": "learned", "model__decoder_heads": 5, "model__scale_embedding": False},
    {"model__norm": "post", "model__norm_weights": "none"},
    {"positions__kind": "rotary", "model__d_model": 40, "model__n_heads": 5, "model__decoder_heads": 2},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: ",".join(map(str, each.values())))
def test_the_same_translations(
    make: Callable[..., Loaded],
    agree: Callable[..., None],
    english: list[str],
    tmp_path: Path,
    variant: dict[str, Any],
) -> None:
    loaded = make(**variant)
    onnx.write(loaded, tmp_path)
    ours = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    runner = Translator(onnx.Session(tmp_path), loaded.tokenizer, loaded.config.decode)
    agree(*(list(each.stream(english[:40], beam=1)) for each in (ours, runner)))
    agree(*(list(each.stream(english[:15], beam=4, n_best=2)) for each in (ours, runner)))


def test_what_a_graph_cannot_hold_is_refused(make: Callable[..., Loaded], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"ONNX cannot hold positions.kind=alibi"):
        onnx.write(make(positions__kind="alibi"), tmp_path)
