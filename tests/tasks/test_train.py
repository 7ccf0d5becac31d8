"""`regard.train` for every task: files as a script names them, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import UsageError

TINY = {"model.d_model": 16, "model.n_heads": 2, "model.d_ff": 32, "train.max_steps": 2}
TEXT = {**TINY, "model.decoder_layers": 1, "data.context": 13, "train.batch_tokens": 97}


@pytest.fixture
def sea(tmp_path: Path) -> Path:
    path = tmp_path / "sea.txt"
    path.write_text("the sea was grey and cold, and a ship came in\n" * 20, encoding="utf-8")
    return path


def test_a_language_model_is_trained_and_writes(sea: Path, tmp_path: Path) -> None:
    out, more = tmp_path / "out", {"task": "language", "overrides": TEXT, "quiet": True}
    assert regard.train(str(sea), sea, out=out, **more).steps == 2
    (text,) = regard.load(out).generate(["the sea"])
    assert text.ids
    assert regard.train([sea, sea], out=out, **more).ended  # a list is the same files: nothing is to be done


def test_encoders_learn_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("good\ta fine day\nbad\ta grey day\n" * 9, encoding="utf-8")
    settings = {**TINY, "model.encoder_layers": 1}
    done = regard.train(
        path, task="classify", valid=path, out=tmp_path / "out", overrides=settings, quiet=True
    )
    assert done.steps == 2
    assert done.scores


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"taks": "language"}, "taks means nothing to task=translation"),
        ({"task": "languge"}, r"task \(languge\) must be one of"),
        ({"task": "language", "parses": "x.conllu"}, "parses means nothing to task=language"),
        ({"valid_parses": "x.conllu"}, "trees of --valid"),
        ({"given": {}}, "given means nothing"),
        ({"overrides": {"train.lrr": 1}}, "train.lr"),
    ],
)
def test_what_is_not_known_is_refused(sea: Path, tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        regard.train(sea, sea, out=tmp_path / "out", quiet=True, **wrong)
    assert not (tmp_path / "out").exists()


def test_a_corpus_is_for_pairs_and_nothing_is_no_data(sea: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="learns from files, not from a Corpus"):
        regard.train(regard.Corpus((sea,), (sea,)), task="language", out=tmp_path / "out")
    with pytest.raises(UsageError, match="name the files"):
        regard.train(out=tmp_path / "out")
