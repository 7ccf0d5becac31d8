from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import Config, merge
from regard.data.corpus import Corpus
from regard.errors import UsageError
from regard.tasks.translation import TASK
from regard.tasks.translation.prepare import tokenizer_for, with_dropout, with_vocabulary
from regard.training.budget import DEFAULT_MINUTES
from regard.training.run import model_for
from regard.training.settle import FURTHER, settle


def test_a_run_without_a_bound_gets_the_default_minutes() -> None:
    assert settle(TASK, None, None, None).train.minutes == DEFAULT_MINUTES
    for bound in ({"train.max_steps": 3}, {"train.max_epochs": 3}):
        assert settle(TASK, None, None, bound).train.minutes == 0
    assert settle(TASK, None, None, {"train.minutes": 7}).train.minutes == 7


def test_a_model_trained_further_keeps_its_shape_and_not_its_schedule() -> None:
    base = merge(Config(), {"model.d_model": 64, "train.lr": 0.5, "train.max_steps": 9})
    config = settle(TASK, None, None, {"model.dropout": 0.4}, base=base)
    assert (config.model.d_model, config.model.dropout) == (64, 0.4)
    assert config.train.lr == pytest.approx(FURTHER * Config().train.lr)
    assert settle(TASK, None, None, {"train.lr": 0.25}, base=base).train.lr == 0.25
    assert settle(TASK, None, None, {"model.d_model": 64}, base=base).model.d_model == 64
    with pytest.raises(UsageError, match=r"text\.vocab_size is 0"):
        settle(TASK, None, None, {"text.vocab_size": 99}, base=base)


def test_the_tokenizer_is_trained_once_and_again_if_it_is_broken(
    toy_files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.of(toy_files)
    first = tokenizer_for(tmp_path, corpus, Config(), None)
    path = tmp_path / "tokenizer.json"
    path.write_text(path.read_text()[:50])
    assert tokenizer_for(tmp_path, corpus, Config(), None).to_json() == first.to_json()
    monkeypatch.setattr(Corpus, "lines", lambda self: pytest.fail("trained again"))
    assert tokenizer_for(tmp_path, corpus, Config(), None).to_json() == first.to_json()


def test_the_vocabulary_fits_the_tokenizer(toy: Any) -> None:
    size = toy.tokenizer.vocab_size
    assert with_vocabulary(Config(), toy.tokenizer).model.vocab_size == size
    larger = merge(Config(), {"model.vocab_size": size + 5})
    assert with_vocabulary(larger, toy.tokenizer).model.vocab_size == size + 5
    with pytest.raises(
        UsageError, match=rf"model.vocab_size \(9\) must be at least the tokenizer's \({size}\)"
    ):
        with_vocabulary(merge(Config(), {"model.vocab_size": 9}), toy.tokenizer)


def test_little_data_gets_more_dropout_unless_it_was_asked_for() -> None:
    shape = merge(Config(), {"model.vocab_size": 500})
    few, many = with_dropout(shape, 1000), with_dropout(shape, 10_000_000)
    assert few.model.dropout > many.model.dropout > 0
    assert with_dropout(merge(Config(), {"model.dropout": 0.0}), 1000).model.dropout == 0


def test_the_same_seed_makes_the_same_model(toy: Any) -> None:
    first, second = model_for(TASK, toy.config(), None), model_for(TASK, toy.config(), None)
    other = model_for(TASK, toy.config(train__seed=2), None)
    assert all(map(torch.equal, first.parameters(), second.parameters()))
    assert not all(map(torch.equal, first.parameters(), other.parameters()))


@pytest.mark.parametrize(("minutes", "width"), [(None, 128), (15.0, 128), (120.0, 256)])
def test_a_short_budget_gets_a_model_that_it_can_fill(minutes: float | None, width: int) -> None:
    asked = {} if minutes is None else {"train.minutes": minutes}
    assert settle(TASK, None, None, asked).model.d_model == width
    assert settle(TASK, "base", None, asked).model.d_model == 512
    assert settle(TASK, None, None, asked | {"model.d_model": 64}).model.d_model == 64


@pytest.mark.parametrize(
    ("preset", "asked", "kind"),
    [
        (None, {}, "rotary"),
        ("deep", {}, "rotary"),
        ("base", {}, "sinusoidal"),  # the paper's
        (None, {"positions.kind": "sinusoidal"}, "sinusoidal"),
        (None, {"model.kind": "rnn"}, "sinusoidal"),
        (None, {"attention.kind": "local"}, "sinusoidal"),
        (None, {"model.d_model": 12, "model.n_heads": 4}, "sinusoidal"),  # heads of 3 cannot be turned
    ],
)
def test_a_transformer_that_can_trains_with_rotary_positions(
    preset: str | None, asked: dict[str, Any], kind: str
) -> None:
    assert settle(TASK, preset, None, asked).positions.kind == kind


def test_a_model_that_is_trained_further_keeps_its_positions() -> None:
    assert settle(TASK, None, None, {}, base=Config()).positions.kind == "sinusoidal"
