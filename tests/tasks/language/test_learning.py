"""A language model from text files: learned, killed and gone on, judged by a naive loop, used, refused."""

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from regard.cli.main import run as command
from regard.config.file import read_config
from regard.data.columns import reopen_columns
from regard.data.inputs import Tokens
from regard.data.rows import IDS, cut_rows
from regard.models.folder import load_folder
from regard.tasks.language.feed import row_batch
from regard.tasks.language.prepare import Next
from regard.tasks.language.writer import Wish
from regard.text.running import DOCUMENTS

WORDS = ["sea", "was", "the", "grey", "and", "cold", "naïve", "a", "ship", "came\n", "in,\n\n"]
QUICK = [
    *(
        "--task",
        "language",
        "--set",
        "train.max_steps=9",
        "--set",
        "model.d_model=16",
        "--set",
        "model.n_heads=2",
    ),
    *("--set", "model.d_ff=32", "--set", "model.decoder_layers=2", "--set", "data.context=13"),
    *("--set", "train.batch_tokens=97", "--set", "train.precision=fp32", "--set", "train.threads=1"),
    *("--set", "model.bigrams=31", "--set", "train.valid_every=4", "--set", "train.save_every=0"),
]


def prose(words: int, seed: int = 1) -> str:
    """Words at random."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "sea.txt"
    path.write_text(prose(700), encoding="utf-8")
    return path


def train(text: Path, out: Path, *more: str) -> int:
    return command(["train", str(text), "-o", str(out), *QUICK, *more])


@pytest.fixture(scope="module")
def characters(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "model"
    assert train(text, out, "--set", "text.units=characters") == 0
    return out


@pytest.fixture(scope="module", params=["characters", "subwords"])
def folder(
    request: pytest.FixtureRequest, text: Path, characters: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if request.param == "characters":
        return characters
    out = tmp_path_factory.mktemp("runs") / "model"
    assert train(text, out) == 0
    return out


def test_the_folder_is_whole_and_writes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert read_config(folder).task == "language"
    assert read_config(folder).decode.context == 13
    written = next(regard.load(folder).generate(["the sea"]))
    assert len(written.ids) == 200 or written.ended == "end"
    assert command(["show", str(folder)]) == 0
    card = capfd.readouterr().out
    assert "A language model trained on sea.txt" in card
    assert "bits per byte" in card
    found = regard.load(folder)
    short = Wish(tokens=4)
    one, other = (found.generate([prompt, "the g"], short) for prompt in ("s", "cold sea"))
    assert list(one)[1].text == list(other)[1].text, "neighbours change nothing, bigrams neither"


def naive(folder: Path, text: str) -> tuple[float, int, int]:
    """What every token costs, one at a time, from the tokens before it in its row."""
    loaded = load_folder(folder)
    tokenizer, model = loaded.tokenizer, loaded.model
    assert tokenizer is not None
    ids = [tokenizer.begin_id, *tokenizer.encode(text), tokenizer.end_id]
    context = loaded.config.data.context
    cost = 0.0
    with torch.no_grad():
        for place in range(1, len(ids)):
            begin = (place - 1) // context * context
            hidden = model(Tokens(torch.tensor([ids[begin:place]])))[0, -1]
            cost += float(F.cross_entropy(model.project(hidden)[None], torch.tensor([ids[place]])))
    return cost, len(ids) - 1, len(text.encode())


def test_evaluate_is_a_naive_loop(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.txt").write_text(prose(30, seed=2), encoding="utf-8")
    capfd.readouterr()
    assert command(["evaluate", "-m", str(folder), str(tmp_path / "new.txt"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    cost, tokens, size = naive(folder, prose(30, seed=2))
    assert list(found) == ["loss", "bits_per_byte", "perplexity", "tokens"]
    assert found["tokens"] == tokens
    assert found["loss"] == pytest.approx(cost / tokens, rel=1e-4)
    assert found["bits_per_byte"] == pytest.approx(cost / math.log(2) / size, rel=1e-4)
    assert found["perplexity"] == pytest.approx(math.exp(cost / tokens), rel=1e-4)


def test_validation_is_evaluation_of_what_was_held_out(
    folder: Path, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = text.read_text(encoding="utf-8")
    (tmp_path / "end.txt").write_text(whole[int(0.9 * len(whole)) :], encoding="utf-8")
    last = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()][-1]
    capfd.readouterr()
    assert command(["evaluate", "-m", str(folder), str(tmp_path / "end.txt"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["loss"] == pytest.approx(last["valid_loss"], rel=1e-4)
    assert found["bits_per_byte"] == pytest.approx(last["valid_bits_per_byte"], rel=1e-4)
    held, tokenizer = reopen_columns(folder / "store" / "train"), load_folder(folder).tokenizer
    assert held is not None
    assert tokenizer is not None
    assert tokenizer.decode(held[IDS].values.tolist()) == whole[: int(0.9 * len(whole))]


def test_killed_it_goes_on_bit_for_bit(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(text, tmp_path / "whole", "--set", "model.dropout=0.1") == 0
    calls, original = iter(range(999)), Next.losses

    def killed(self: Next, model: Any, batch: Any) -> Iterator[Any]:
        if next(calls) == 11:  # some of them are a rehearsal
            raise KeyboardInterrupt
        return original(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Next, "losses", killed)
        assert train(text, tmp_path / "killed", "--set", "model.dropout=0.1") == 130
    assert train(text, tmp_path / "killed", "--set", "model.dropout=0.1") == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]


def test_training_further(characters: Path, text: Path, tmp_path: Path) -> None:
    folder = characters
    more = ["train", str(text), "-o", str(tmp_path / "more"), "--from", str(folder)]
    assert command([*more, "--task", "language", "--set", "train.max_steps=2"]) == 0
    assert read_config(tmp_path / "more").model == read_config(folder).model


def test_a_row_begins_after_the_token_before_it() -> None:
    ids = np.arange(10, 21, dtype="<u2")
    batch = row_batch(ids, cut_rows(11, 4), DOCUMENTS)
    assert batch.inputs.ids.tolist() == [[2, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]]
    assert batch.goals[batch.mask].tolist() == ids.tolist()
    assert batch.targets == 11


@pytest.mark.parametrize(
    ("verb", "content", "said"),
    [
        ("train", b"", "is empty"),
        ("train", None, "does not exist"),
        ("evaluate", b"a\0b", "is NUL"),
        ("check", b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_bad_text_is_one_line(
    content: bytes | None,
    said: str,
    verb: str,
    characters: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "bad.txt"
    if content is not None:
        path.write_bytes(content)
    flags = {
        "train": ["-o", str(tmp_path / "m"), *QUICK],
        "evaluate": ["-m", str(characters)],
        "check": QUICK[:2],
    }
    assert command([verb, str(path), *flags[verb]]) == 2
    out, err = capfd.readouterr()
    assert said in out + err.splitlines()[-1]
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--set", "text.units=words"], "text.units (words) must be one of subwords, characters, bytes"),
        (
            ["--set", "model.kind=rnn", "--set", "model.bigrams=0"],
            "model.kind=rnn is none that task=language can use",
        ),
        (["--parses", "x.conllu"], "parses means nothing to task=language"),
        (["--set", "positions.kind=learned", "--set", "positions.max_length=7"], "data.context (13) must be"),
    ],
)
def test_settings_that_do_not_fit(
    flags: list[str], said: str, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train(text, tmp_path / "model", *flags) == 2
    assert said in capfd.readouterr().err


def test_other_verbs_say_what_it_is(characters: Path, text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = characters
    assert command(["translate", "-m", str(folder), "-i", str(text)]) == 2
    assert f"{folder} holds a language model; use regard generate" in capfd.readouterr().err
    assert command(["evaluate", "-m", str(folder), str(text), "--beam", "3"]) == 2
    assert "--beam means nothing to a language model" in capfd.readouterr().err


def test_translation_takes_no_units(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n" * 9)
    assert (
        command(["train", str(tmp_path / "a.tsv"), "-o", str(tmp_path / "m"), "--set", "text.units=bytes"])
        == 2
    )
    assert "text.units is for running text" in capfd.readouterr().err


def test_check_says_what_training_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, content in {"a": b"one\n", "b": b"one\n", "c": b"\0", "d": b"bell\a"}.items():
        (tmp_path / name).write_bytes(content)
    assert command(["check", "--task", "language", str(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert "3 documents, 13 characters" in said
    assert "no text: 1 (left out)" in said
    assert "duplicate: 1 (kept)" in said
    assert "U+0007" in said
    assert command(["check", "--task", "language", str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["findings"] == []
