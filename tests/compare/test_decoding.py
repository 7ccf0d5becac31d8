"""Ways of decoding side by side."""

from pathlib import Path
from typing import Any

import pytest
from command import letters

from regard.cli.main import run as command
from regard.compare.decoding import decoders, decoding_report, measure, repeated, wrong_length
from regard.config import Config, merge
from regard.errors import UsageError
from regard.models import build
from regard.models.folder import save
from regard.text.tokenizer import Tokenizer

KINDS = ("transformer", "parallel", "ctc", "blockwise")
LINES = letters(40)[0] + letters(40)[1]
PAIRS = list(zip(*letters(13, seed=7), strict=True))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A teacher, and one of each kind that writes several tokens at once, with random weights."""
    place, tokenizer = tmp_path_factory.mktemp("kinds"), Tokenizer.train(LINES * 9, 0)
    shape = {
        "model.d_model": 16,
        "model.n_heads": 2,
        "model.d_ff": 32,
        "model.vocab_size": tokenizer.vocab_size,
    }
    for kind in KINDS:
        config = merge(Config(), shape | {"model.kind": kind, "decode.max_extra": 4, "decode.max_ratio": 1.0})
        save(place / kind, config=config, model=build(config), tokenizer=tokenizer, card="")
    return [place / kind for kind in KINDS]


def test_every_kind_has_its_ways(folders: list[Path]) -> None:
    assert [each.label for each in decoders(folders)] == [
        *("greedy", "beam 5", "one shot", "4 passes", "10 passes", "ctc", "blockwise")
    ]


def test_all_are_measured_and_the_first_is_the_teacher(folders: list[Path]) -> None:
    said: list[str] = []
    found = measure(folders, PAIRS, lambda text, share: said.append(text), alone=3)
    assert len(said) == len(found) == 7
    assert found[0].agreement == pytest.approx(100)
    assert [each.steps for each in found[2:6]] == [1, 4, 10, 1]
    assert 1 <= found[6].steps <= 20
    assert found[0].steps > 1
    assert all(each.latency > 0 and each.throughput > 0 for each in found)
    assert decoding_report(found).count("\n") == 8


def test_what_is_counted() -> None:
    assert repeated([""]) == 0
    assert wrong_length(["a b c"], ["a"]) == 2
    with pytest.raises(UsageError, match="no lines"):
        measure([], [], print)


def test_the_command_writes_the_table(folders: list[Path], tmp_path: Path, capsys: Any) -> None:
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS[:5]), encoding="utf-8")
    words = ["compare", "--decoding", str(folders[0]), "-o", str(tmp_path / "out")]
    assert command([*words, "--test", str(test)]) == 0
    assert "steps in turn" in (tmp_path / "out" / "decoding.md").read_text()
    assert (tmp_path / "out" / "decoding.png").read_bytes().startswith(b"\x89PNG")
    assert "lines a second" in (tmp_path / "out" / "decoding.svg").read_text()
    assert command(words) == 2
    assert "--decoding needs model folders, the teacher first, and --test" in capsys.readouterr().err
