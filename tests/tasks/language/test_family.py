"""Language models side by side, and judged again and again with heads off."""

from pathlib import Path

import pytest
import torch
from writers import TEXT, write_writer

from regard.attention.switch import heads_off
from regard.config import Config, merge
from regard.look.ablate import rank_heads
from regard.models import build
from regard.presets import preset
from regard.tasks.language import TASK
from regard.tasks.language import family as module
from regard.tasks.language.family import SETTINGS, VARIANTS, library
from regard.training.settle import settle


@pytest.mark.parametrize("name", VARIANTS)
def test_every_member_can_be_trained(name: str) -> None:
    shape = {"model.vocab_size": 99}
    config = settle(TASK, "tiny", None, SETTINGS | shape | VARIANTS[name])
    assert config.model.kind == "decoder"
    with torch.device("meta"):
        build(config)
    merge(Config(), preset("tiny") | SETTINGS | VARIANTS[name])


def test_the_library_is_cut_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", {"train": 20_000, "valid": 500, "test": 500})
    files, settings = library(tmp_path)
    assert settings["text.units"] == "characters"
    texts = {split: path.read_text(encoding="utf-8") for split, (path,) in files.items()}
    assert all(len(texts[split]) >= least for split, least in module.MOST.items())
    assert not set(texts["test"].split("\n\n")[:3]) <= set(texts["train"].split("\n\n"))


def test_the_judge_is_the_evaluation_and_hears_heads_off(tmp_path: Path) -> None:
    folder = write_writer(tmp_path / "model", "characters", data__context=16)
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    judge = TASK.judge(folder, [text], limit=10**6)
    wanted = TASK.evaluate(folder, [text]).scores
    found = judge.measure()
    assert next(iter(found)) == "bits_per_byte"
    assert found["loss"].value == pytest.approx(wanted["loss"].value, rel=1e-6)
    assert found["bits_per_byte"].value == pytest.approx(wanted["bits_per_byte"].value, rel=1e-6)
    with heads_off({"decoder.0.self": [0, 1, 2]}):
        assert judge.measure()["loss"].value != pytest.approx(found["loss"].value, rel=1e-4)
    few = TASK.judge(folder, [text], limit=3)
    assert few.what == "3 rows of 16 tokens"
    ranking = rank_heads(few.model, few.measure)
    assert (ranking.score, ranking.higher, len(ranking.heads)) == ("bits_per_byte", False, 6)
