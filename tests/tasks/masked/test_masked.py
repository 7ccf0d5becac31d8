"""Words are hidden whole and specials never; it learns, goes on bit for bit, begins with other encoders."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.cli.main import run as command
from regard.data.inputs import Tokens
from regard.models.folder import load_folder
from regard.tasks.masked.hiding import hide
from regard.tasks.masked.lesson import Gaps, HiddenBatch
from regard.text.running import RunningText
from regard.text.tokenizer import Tokenizer
from regard.text.wordpiece import Marks, WordPieces
from regard.training.objective import Loss

TEXT = "The cats sat on the mat. A dog, naïve as dogs are, sat there too!\n\nThe end.\n" * 60
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc", *(f"##{letter}" for letter in "abc")]
TOKENIZERS: list[Tokenizer] = [
    WordPieces(PIECES, Marks(0, 1, 2, 3, 4)),
    RunningText.learn([TEXT], vocab_size=300),
    Tokenizer.train(TEXT.split("\n"), 300),
]
SMALL = [
    *("--set", "train.max_steps=9", "--set", "train.save_every=0", "--set", "train.valid_every=4"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1", "--set", "train.batch_tokens=90"),
    *("--set", "masked.length=13"),
]
SHAPE = ["--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.encoder_layers=1"]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TOKENIZERS), st.floats(0.01, 0.9), st.integers(0, 99))
def test_words_are_hidden_whole_and_specials_never(
    data: Any, tokenizer: Tokenizer, share: float, seed: int
) -> None:
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 11)))
    cells = st.integers(0, tokenizer.vocab_size - 1)
    ids = np.array(data.draw(st.lists(cells, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    ids = ids.reshape(shape)
    real = np.arange(shape[1]) < np.array([[data.draw(st.integers(1, shape[1]))] for _ in range(shape[0])])
    shown, asked = hide(ids, real, tokenizer, share, np.random.default_rng(seed))
    silent = {*tokenizer.specials.never, tokenizer.begin_id, tokenizer.end_id}
    special = np.array([[number in silent for number in row] for row in ids.tolist()])
    assert not (asked & (special | ~real)).any()
    assert (shown == ids)[~asked].all()
    assert asked.any() == (real & ~special).any()
    for row in range(shape[0]):
        begins = tokenizer.begins(ids[row].tolist())
        for place in range(1, shape[1]):
            joined = not begins[place] and not special[row, place - 1 : place + 1].any()
            if joined and real[row, place]:
                assert asked[row, place] == asked[row, place - 1]


def test_the_share_is_what_was_asked_for_and_eight_of_ten_are_masks() -> None:
    tokenizer = TOKENIZERS[0]
    ids = np.random.default_rng(1).integers(5, 8, (200, 50))  # every token a word
    shown, asked = hide(ids, np.ones_like(ids, dtype=bool), tokenizer, 0.3, np.random.default_rng(2))
    assert abs(asked.mean() - 0.3) < 0.02
    assert abs((shown[asked] == tokenizer.mask_id).mean() - 0.8) < 0.03


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["wordpiece", "running", "line"])
def test_words_begin_where_a_person_sees_it(tokenizer: Tokenizer) -> None:
    text = "abc cab, ab" if isinstance(tokenizer, WordPieces) else "The cats sat, naïve dogs."
    ids = tokenizer.encode(text)
    words, current = [], []
    for number, first in zip(ids, tokenizer.begins(ids), strict=True):
        if first and current:
            words.append(tokenizer.spell(current).decode().strip())
            current = []
        current.append(number)
    words.append(tokenizer.spell(current).decode().strip())
    cut = text.replace(",", " ,").replace(".", " .").split()
    assert words == (["abc", "cab", "", "ab"] if isinstance(tokenizer, WordPieces) else cut)


def test_the_loss_is_the_cross_entropy_at_hidden_places(gap_filler: Path) -> None:
    model = load_folder(gap_filler).model
    ids, asked = torch.randint(5, 14, (3, 7)), torch.rand(3, 7) < 0.5
    batch = HiddenBatch(Tokens(ids), ids.flip(0), asked, int(asked.sum()))
    logits = model.project(model.encode(batch.inputs))
    wanted = torch.nn.functional.cross_entropy(logits[asked], ids.flip(0)[asked], reduction="sum")
    (loss,) = Gaps(0.0).losses(model, batch)
    assert torch.allclose(loss.total, wanted, atol=1e-4)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def train(text: Path, out: Path, *more: object) -> int:
    return command(["train", "--task", "masked", str(text), "-o", str(out), *SMALL, *map(str, more)])


def test_it_learns_is_killed_and_goes_on_bit_for_bit(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train(text, tmp_path / "whole", *SHAPE) == 0
    calls, original = iter(range(99)), Gaps.losses

    def killed(self: Gaps, model: Any, batch: Any) -> Iterator[Loss]:
        if next(calls) == 6:
            raise KeyboardInterrupt
        return original(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Gaps, "losses", killed)
        assert train(text, tmp_path / "killed", *SHAPE) == 130
    assert train(text, tmp_path / "killed", *SHAPE) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
    capfd.readouterr()
    assert command(["evaluate", "-m", str(tmp_path / "whole"), str(text), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert set(found) == {"loss", "perplexity", "accuracy", "tokens"}
    assert np.isclose(found["perplexity"], np.exp(found["loss"]))
    assert command(["fill", "-m", str(tmp_path / "whole"), "the [MASK] sat"]) == 0


def test_an_encoder_of_another_task_learns_on(text: Path, sentence_encoder: Path, tmp_path: Path) -> None:
    still = ["--set", "train.lr=0.0", "--set", "train.max_steps=2"]
    assert train(text, tmp_path / "out", "--from", sentence_encoder, *still) == 0
    ours, theirs = (load_folder(folder).model.state_dict() for folder in (tmp_path / "out", sentence_encoder))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (b"", [], "is empty"),
        (b"a\0b", [], "NUL"),
        (b"\xff\xfe", [], "is not UTF-8"),
        (TEXT.encode(), ["--set", "masked.share=0.0"], "masked.share (0) must be between"),
        (
            TEXT.encode(),
            ["--set", "positions.kind=learned", "--set", "positions.max_length=9"],
            "masked.length (13) must be at most positions.max_length (9)",
        ),
        (
            TEXT.encode(),
            ["--set", "model.kind=decoder"],
            "model.kind=decoder is none that task=masked can use",
        ),
    ],
)
def test_bad_input_is_one_line(
    content: bytes, more: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    assert train(path, tmp_path / "out", *more) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
