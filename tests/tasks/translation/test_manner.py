"""What may be asked of which kind of model, and what is refused in one line with the numbers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.cli.main import run
from regard.config import Config, merge
from regard.models import build
from regard.models.folder import save
from regard.tasks.translation.load import load_translator
from regard.text.tokenizer import Tokenizer

LINES = ["the small dog runs", "a man and a house", "the cats run to the river"]
SHAPE = {"model.d_model": 16, "model.n_heads": 2, "model.d_ff": 32}
KINDS = ("transformer", "blockwise", "ctc", "parallel")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind, which has learned nothing."""
    folder, tokenizer = tmp_path_factory.mktemp("manner"), Tokenizer.train(LINES * 9, 0)
    for kind in KINDS:
        torch.manual_seed(3)
        config = merge(Config(), SHAPE | {"model.kind": kind, "model.vocab_size": tokenizer.vocab_size})
        save(folder / kind, config=config, model=build(config), tokenizer=tokenizer, card="")
    return folder


@pytest.mark.parametrize("kind", ["ctc", "parallel"])
def test_a_length_is_kept(place: Path, kind: str) -> None:
    translator = load_translator(place / kind)
    for length in (1, 3, 5):
        assert [each.tokens - 1 for each in translator.stream(LINES, length=length)] == [length] * 3
    assert all(len(each.text) <= 7 for each in translator.stream(LINES, max_chars=7))


REFUSED: list[tuple[str, list[str], str]] = [
    ("ctc", ["--length", "0"], "--length (0) must be at least 1"),
    ("parallel", ["--max-chars", "0"], "--max-chars (0) must be at least 1"),
    ("parallel", ["--length", "100001"], "length (100001) must be at least 1 and at most 100000"),
    ("ctc", ["--length", "99"], "length (99) is above the"),
    ("transformer", ["--length", "5"], "length (5) is kept by models that write all at once"),
    ("blockwise", ["--max-chars", "5"], "max_chars (5) is kept by models that write all at once"),
    ("ctc", ["--iterations", "4"], "iterations (4) is of models that foresee a length"),
    ("blockwise", ["--lengths", "2"], "lengths (2) is of models that foresee a length"),
    ("parallel", ["--lengths", "0"], "--lengths (0) must be at least 1"),
    ("parallel", ["--iterations", "0"], "--iterations (0) must be at least 1"),
]


@pytest.mark.parametrize(("kind", "words", "message"), REFUSED)
def test_what_a_kind_cannot_do_is_said(
    place: Path, kind: str, words: list[str], message: str, capsys: Any
) -> None:
    assert run(["translate", "-m", str(place / kind), LINES[0], *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
