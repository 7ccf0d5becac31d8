"""A run on calls: it learns, is killed and goes on bit for bit; what cannot be learned from is one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import torch.nn.functional as F
from listeners import SMALL

from regard.cli.main import run as command
from regard.config import Config, TrainConfig, merge
from regard.config.speech import SpeechConfig
from regard.models.folder import load_folder
from regard.tasks.speech import TASK
from regard.tasks.speech.examples import Recordings
from regard.tasks.speech.lesson import Hearing, Maker, SpeechBatch, SpeechFeed, ctc_loss, settled, store_of
from regard.text.running import RunningText

SETTINGS = [
    part
    for key, value in {
        **{name: value for name, value in SMALL.items() if name not in ("speech.heard", "speech.rate")},
        "train.max_steps": 6,
        "train.batch_tokens": 64,
        "train.save_every": 0,
        "train.valid_every": 3,
        "train.precision": "fp32",
        "train.threads": 1,
    }.items()
    for part in ("--set", f"{key}={value}")
]


def train(table: Path, out: Path, *more: str) -> int:
    return command(["train", "--task", "speech", str(table), "-o", str(out), *SETTINGS, *more])


def test_it_learns_and_goes_on_where_it_was_killed(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train(calls, tmp_path / "whole", "--valid", str(calls)) == 0
    numbers = iter(range(99))
    original = Hearing.losses

    def killed(self: Hearing, model: Any, batch: SpeechBatch) -> Iterator[Any]:
        if next(numbers) == 5:
            raise KeyboardInterrupt
        return original(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Hearing, "losses", killed)
        assert train(calls, tmp_path / "killed", "--valid", str(calls)) == 130
    assert train(calls, tmp_path / "killed", "--valid", str(calls)) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
    how = load_folder(tmp_path / "whole").config.of(SpeechConfig)
    assert (how.rate, how.subsampling) == (8000, 4)
    assert 0.5 < how.heard < 4
    capfd.readouterr()
    assert command(["evaluate", "-m", str(tmp_path / "whole"), str(calls), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found.keys() == {"wer", "cer", "files", "seconds", "real_time_factor"}
    assert found["files"] == 12
    card = (tmp_path / "whole" / "README.md").read_text(encoding="utf-8")
    assert "A recogniser of speech" in card
    assert "0.19 s ahead" in card
    assert "WER" in card


def test_ctc_is_torchs_and_a_text_that_does_not_fit_is_left_to_the_decoder() -> None:
    logp = torch.randn(2, 7, 5).log_softmax(-1)
    real = torch.arange(7) < torch.tensor([[7], [2]])
    out = torch.tensor([[1, 2, 3, 4], [1, 1, 2, 4]])
    lengths = torch.tensor([3, 3])
    batch = SpeechBatch(None, out, out, out > 0, lengths)  # type: ignore[arg-type]
    alone = F.ctc_loss(logp[:1].transpose(0, 1), out[:1, :3], [7], [3], blank=0, reduction="sum")
    torch.testing.assert_close(ctc_loss(logp, real, batch, 0), alone)


def spoil(kind: str, path: Path) -> None:
    tone = np.sin(np.arange(4000) / 3).astype(np.float32) / 2
    if kind == "words":
        path.write_text("no sound", encoding="utf-8")
    elif kind == "nothing":
        path.write_bytes(b"")
    elif kind == "one sample":
        soundfile.write(path, tone[:1], 8000)
    elif kind == "nan":
        tone[7] = np.nan
        soundfile.write(path, tone, 8000, subtype="FLOAT")
    elif kind == "missing":
        path.unlink()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("words", "is no sound file"),
        ("nothing", "is empty"),
        ("one sample", "too few to hear"),
        ("nan", "is nan, which is no sound"),
        ("missing", "No such file"),
    ],
)
def test_a_recording_that_is_none_is_one_line_with_its_place(
    tmp_path: Path, kind: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("1.wav", "2.wav"):
        soundfile.write(tmp_path / name, np.sin(np.arange(4000) / 3) / 2, 8000)
    table = tmp_path / "a.tsv"
    table.write_text("1.wav\tone\n2.wav\ttwo\n", encoding="utf-8")
    spoil(kind, tmp_path / "2.wav")
    assert train(table, tmp_path / "out") == 2
    error = capfd.readouterr().err
    assert "a.tsv line 2" in error or kind == "missing"
    assert said in error or "does not exist" in error
    assert "Traceback" not in error


def test_what_is_too_long_is_left_out_and_told(
    calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train(calls, tmp_path / "out", "--set", "speech.longest=1.0", "--set", "train.max_steps=1") == 0
    assert "longer than 1 s were left out" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("speech.subsampling=3", "must be 2, 4 or 8"),
        ("speech.rate=100", "between 4000 and 48000"),
        ("speech.rate=44100", "must hold 25 ms"),
        ("speech.encoder=tree", "must be one of attention, conv, recurrent"),
        ("model.kind=transformer", "none that task=speech can use"),
        ("text.units=subwords", "needs text.vocab_size"),
    ],
)
def test_settings_that_cannot_be(
    calls: Path, tmp_path: Path, setting: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train(calls, tmp_path / "out", "--set", setting) == 2
    assert said in capfd.readouterr().err


def feed(place: Path, calls: Path, **changes: Any) -> tuple[SpeechFeed, Recordings]:
    data = Recordings((calls,), ())
    how = SpeechConfig(rate=8000, **changes)
    tokenizer = RunningText.learn((each.text for each in data.read(data.train)), "characters")
    store = store_of(place, data, data.train, tokenizer, how)
    train = TrainConfig(batch_tokens=256)
    return SpeechFeed(Maker(store, tokenizer, how), np.arange(len(store)), train), data


def test_joined_recordings_say_all_that_is_said_in_them(calls: Path, tmp_path: Path) -> None:
    many, data = feed(tmp_path / "store", calls, join=3, speed=0.0, silence=0.0)
    texts = {each.text for each in data.read(data.train)}
    plain = feed(tmp_path / "store", calls)[0]
    seen: set[int] = set()
    for epoch in range(4):
        for position in range(many.count(epoch)):
            batch, whole = many.batch(epoch, position), plain.batch(epoch, position)
            assert batch.inputs.values.shape[0] <= whole.inputs.values.shape[0]
            assert torch.equal(batch.tgt_out, many.batch(epoch, position).tgt_out)
            for ids, length in zip(batch.tgt_out.tolist(), batch.lengths.tolist(), strict=True):
                assert ids[length] == many.maker.tokenizer.end_id
                said = many.maker.tokenizer.decode(ids[:length])
                found = [n for n in range(1, 4) if spells(said, texts, n)]
                assert found, said
                seen |= set(found)
    assert seen >= {1, 2, 3}


def spells(said: str, texts: set[str], count: int) -> bool:
    """Whether it is so many of the texts, one after the other."""
    if count == 1:
        return said in texts
    return any(
        said.startswith(f"{text} ") and spells(said[len(text) + 1 :], texts, count - 1) for text in texts
    )


def test_no_more_are_joined_than_may_be_trained_on(calls: Path, tmp_path: Path) -> None:
    few = feed(tmp_path / "store", calls, join=50, longest=9.0)[0]
    longest = float(few.maker.store["sound"].lengths.max()) / 8000
    assert 1 < few.most < 50
    assert few.most * longest <= 9.0
    tokenizer, store = few.maker.tokenizer, few.maker.store
    config = merge(Config(), TASK.defaults())
    how = settled(config, few.maker.how, tokenizer, store).of(SpeechConfig)
    assert longest * few.most < how.heard <= 9.0
    alone = SpeechConfig(rate=8000)
    assert settled(config, alone, tokenizer, store).of(SpeechConfig).heard == pytest.approx(
        longest, abs=0.011
    )
