"""What encoders look at: the weights are those of the model's own reading, and the page needs no target."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.cli.main import run as command
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.errors import RegardError
from regard.kinds import TASKS
from regard.look.context import compare_word
from regard.models import build
from regard.models.folder import save
from regard.text.wordpiece import Marks, WordPieces

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
SHAPE = {
    "model.kind": "encoder",
    "model.vocab_size": len(PIECES),
    "model.d_model": 22,
    "model.n_heads": 2,
    "model.d_ff": 13,
    "model.encoder_layers": 3,
    "model.decoder_layers": 0,
    "model.dropout": 0.0,
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`encoder(task)`: a folder with random weights."""

    def made(task: str) -> Path:
        torch.manual_seed(3)
        folder = tmp_path_factory.mktemp(task)
        labelled = task in ("classify", "tag")
        own = {"labels.count": 2} if labelled else {}
        config = merge(Config(), SHAPE | own | {"task": task})
        files = {"labels.json": b'["A", "B"]'} if labelled else {}
        tokenizer = WordPieces(PIECES, Marks(0, 1, 2, 3, 4))
        save(folder, config=config, model=build(config), tokenizer=tokenizer, card="# It\n", files=files)
        return folder

    return made


@pytest.mark.parametrize("task", ["embed", "masked", "classify", "tag"])
def test_the_weights_are_those_of_the_reading(encoder: Any, task: str) -> None:
    loaded = regard.load(encoder(task))
    seen = regard.look(loaded, "the cats sat")
    ids = [2, 5, 6, 7, 8, 3]
    with record() as tape, torch.no_grad():
        loaded.reader.body.encode(Tokens(torch.tensor([ids])))
    assert [each.name for each in seen.maps] == [f"encoder.{layer}.self" for layer in range(3)]
    for each in seen.maps:
        assert torch.allclose(each.weights, tape[each.name][0][0], atol=1e-6)
        assert torch.allclose(each.weights.sum(-1), torch.ones(2, 6), atol=1e-5)
    assert [word.text for word in seen.source.words] == ["[CLS]", "the", "cats", "sat", "[SEP]"]
    assert set(seen.to_dict()["sides"]) == {"source"}


def test_the_answer_is_what_the_task_makes_of_it(encoder: Any) -> None:
    assert regard.look(encoder("embed"), "the cat").answer == ""
    assert regard.look(encoder("masked"), "the [MASK]").answer.startswith("the ")
    assert regard.look(encoder("classify"), "the cat").answer[:1] in "AB"
    assert regard.look(encoder("tag"), "the cat").answer.startswith("the/")


def test_a_head_that_is_off_gives_nothing(encoder: Any) -> None:
    folder = encoder("classify")
    whole, without = (regard.look(folder, "the cat", off=off) for off in ({}, {"encoder.0.self": [1]}))
    assert not torch.equal(whole.maps[1].weights, without.maps[1].weights)
    with pytest.raises(RegardError, match="there is no head 9"):
        regard.look(folder, "the cat", off={"encoder.0.self": [9]})


def test_flags_of_other_tasks_are_refused(encoder: Any) -> None:
    with pytest.raises(RegardError, match="beam means nothing to an encoder of sentences"):
        regard.look(encoder("embed"), "the cat", beam=3)


def test_the_page_opens_without_a_fault(encoder: Any, tmp_path: Path, opened: Any) -> None:
    regard.look(encoder("embed"), "the cats sat").save(tmp_path / "look.html")
    page = opened(tmp_path / "look.html")
    assert page.page.locator("section.foreseen").count() == 0
    assert page.page.locator("section.all").count() == 1
    page.quiet(tmp_path / "look.html")


@pytest.mark.parametrize("task", ["embed", "masked", "classify", "tag"])
def test_a_word_has_the_vectors_of_its_sentences(encoder: Any, task: str) -> None:
    folder = encoder(task)
    found = compare_word(folder, "cats", ["the cats sat", "cats sat sat"])
    model = regard.load(folder)
    with torch.no_grad():
        hidden = model.reader.body.encode(Tokens(torch.tensor([[2, 5, 6, 7, 8, 3]])))[0]
    torch.testing.assert_close(found.vectors[0], hidden[2:4].mean(0))
    assert float(found.cosine[0, 1]) < 0.9999


FILES = {
    "embed": ("the cats sat\nthe cat\n", "cosine"),
    "masked": ("the cats sat " * 40, "perplexity"),
    "classify": ("the cat\tA\nthe cats sat\tB\ncats\tA\nsat\tB\n", "accuracy"),
    "tag": ("the\tA\ncats\tB\n\nsat\tA\n", "accuracy"),
}


@pytest.mark.parametrize("task", FILES)
def test_heads_are_ranked_by_what_the_tasks_score_loses(
    encoder: Any, task: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, (content, score) = encoder(task), FILES[task]
    (tmp_path / "file").write_text(content, encoding="utf-8")
    out = tmp_path / "heads.json"
    assert command(["look", "-m", str(folder), "--ablate", str(tmp_path / "file"), "-o", str(out)]) == 0
    found = json.loads(out.read_text())
    assert (found["score"], len(found["heads"])) == (score, 6)
    first = found["heads"][0]
    judge = TASKS[task].judge(folder, [tmp_path / "file"])
    assert judge.measure()[score].value == pytest.approx(found["value"], rel=1e-5)
    with heads_off({first["name"]: [first["head"]]}):
        assert judge.measure()[score].value == pytest.approx(first["value"], rel=1e-5)
    if task in ("embed", "masked"):
        assert first["value"] != pytest.approx(found["value"], rel=1e-4), "a head does something"


def test_nothing_to_measure_on_is_one_line(
    encoder: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").write_text("", encoding="utf-8")
    for task in FILES:
        assert command(["look", "-m", str(encoder(task)), "--ablate", str(tmp_path / "empty")]) == 2
        assert "Traceback" not in capfd.readouterr().err
