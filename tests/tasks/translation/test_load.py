"""Loading with the engine, without it, and with what it does not know."""

from pathlib import Path

import pytest
import torch

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.config import Config, merge
from regard.decoding.sampling import Sampling
from regard.engine import path
from regard.engine.engine import Engine, refusal
from regard.errors import UsageError
from regard.models import build
from regard.tasks.translation.load import equip, load_translator
from regard.tasks.translation.translator import Translator

LINES = ["a b c", "", "d e"]


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "compiled", lambda: "it was not built")


@pytest.mark.usefixtures("without_library")
def test_without_the_library_the_readable_decoder_translates_and_it_is_said(model: Path):
    translator = load_translator(model)
    assert translator.engine is None
    assert "no native engine, it was not built" in str(translator.note)
    assert translator.translate(LINES) == load_translator(model, engine="readable").translate(LINES)
    for wish in ({"engine": "native"}, {"precision": "int8"}, {"precision": "bf16"}):
        with pytest.raises(
            UsageError, match="needs the native engine, which cannot be used: it was not built"
        ):
            load_translator(model, **wish)


@pytest.mark.skipif(path.available() is not None, reason="the native library is not built")
def test_the_engine_is_taken_where_it_can(model: Path, monkeypatch: pytest.MonkeyPatch):
    translator = load_translator(model)
    assert isinstance(translator.engine, Engine)
    assert translator.note is None
    assert translator.translate(LINES) == load_translator(model, engine="readable").translate(LINES)
    asked: list[int] = []
    monkeypatch.setattr(translator.engine, "search", lambda *_, **__: asked.append(1))
    translator.translate(["a b"], sampling=Sampling())
    with record() as tape:
        translator.translate(["a b"], beam=1)
    assert tape.names()
    with heads_off({"decoder.0.cross": {0}}):
        translator.translate(["a b"], beam=1)
    assert asked == []


def test_unknown_wishes_are_refused(model: Path):
    with pytest.raises(UsageError, match=r"precision \(int4\) must be one of auto, int8, bf16, fp32"):
        load_translator(model, precision="int4")
    with pytest.raises(UsageError, match=r"engine \(warp\) must be one of"):
        load_translator(model, engine="warp")


@pytest.mark.skipif(path.available() is not None, reason="the native library is not built")
@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"positions.kind": "alibi"}, "Alibi positions"),
        ({"attention.score": "additive"}, "the score Additive"),
        ({"model.kind": "rnn-attention"}, "the model kind"),
    ],
)
def test_what_the_engine_does_not_know_is_named(model: Path, overrides: dict[str, str], reason: str):
    small = {"model.d_model": 16, "model.d_ff": 16, "model.vocab_size": 300}
    other = build(merge(Config(), {**small, **overrides})).eval()
    assert reason in str(refusal(other))
    translator = Translator(other, load_translator(model).tokenizer)
    equip(translator)
    assert translator.engine is None
    assert reason in str(translator.note)


def test_threads_are_those_of_torch(model: Path):
    translator = load_translator(model)
    if isinstance(translator.engine, Engine):
        assert translator.engine.threads == torch.get_num_threads()
