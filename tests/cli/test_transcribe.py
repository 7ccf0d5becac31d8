"""`regard transcribe`: formats, files, raw samples, and one line for what is wrong."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from listeners import random_listener

from regard.audio.tones import write_calls
from regard.cli.main import run as command
from regard.models.folder import save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("listener")
    made = random_listener()
    made.model.ctc.bias.data[0] = -9.0
    save(place, config=made.config, model=made.model, tokenizer=made.tokenizer, card="# Random\n")
    return place


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calls(tmp_path_factory.mktemp("calls"), 0, 2).parent


def test_text_and_every_format(folder: Path, calls: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    files = [str(calls / "0.wav"), str(calls / "1.wav")]
    assert command(["transcribe", *files, "-m", str(folder)]) == 0
    assert capfdbinary.readouterr().out
    assert command(["transcribe", files[0], "-m", str(folder), "-f", "json"]) == 0
    tree = json.loads(capfdbinary.readouterr().out)
    assert tree["segments"][0]["words"]
    for form, start in (("vtt", b"WEBVTT"), ("srt", b"1\n"), ("tsv", b"start\tend\ttext\n")):
        assert command(["transcribe", files[0], "-m", str(folder), "-f", form]) == 0
        assert capfdbinary.readouterr().out.startswith(start)


def test_a_file_for_each(folder: Path, calls: Path, tmp_path: Path) -> None:
    files = [str(calls / "0.wav"), str(calls / "1.wav")]
    assert command(["transcribe", *files, "-m", str(folder), "-f", "srt", "-o", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0.wav.srt", "1.wav.srt"]


def test_recordings_of_one_name_are_kept_apart(folder: Path, calls: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "0.wav"
    other.write_bytes((calls / "1.wav").read_bytes())
    flags = ["transcribe", str(calls / "0.wav"), str(other), "-m", str(folder), "-o"]
    for more in ([], ["--part", "1/1"]):
        out = tmp_path / f"out{len(more)}"
        assert command([*flags, str(out), *more]) == 0
        assert sorted(path.name for path in out.iterdir()) == ["0-2.wav.txt", "0.wav.txt"]
        assert (out / "0.wav.txt").read_bytes() != (out / "0-2.wav.txt").read_bytes()


@pytest.mark.parametrize("flags", [[], ["-f", "json"], ["-f", "srt", "-o", "out"], ["--stream"]])
def test_what_was_heard_before_a_fault_is_told(
    folder: Path,
    calls: Path,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    samples, rate = soundfile.read(calls / "0.wav", dtype="float32")
    late = np.append(np.tile(samples, 9), np.nan)  # in a block of its own
    soundfile.write("late.wav", late, rate, subtype="FLOAT")
    assert command(["transcribe", "late.wav", "-m", str(folder), *flags]) == 2
    said = capfd.readouterr()
    assert "which is no sound" in said.err
    assert len(said.err.splitlines()) == 1
    told = Path("out/late.wav.srt").read_text(encoding="utf-8") if "-o" in flags else said.out
    assert told.endswith("\n")


@pytest.mark.parametrize("flags", [[], ["-o", "out"], ["-o", "out", "--part", "1/1"]])
def test_one_that_cannot_be_heard_keeps_no_other_back(
    folder: Path,
    calls: Path,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.wav").write_text("no sound")
    assert command(["transcribe", "text.wav", str(calls / "0.wav"), "-m", str(folder), *flags]) == 2
    said = capfd.readouterr()
    assert "text.wav is no sound file" in said.err
    assert said.err.endswith("1 of 2 recordings could not be heard; the lines above say why\n")
    assert Path("out/0.wav.txt").exists() if flags else said.out


def test_parts_of_the_recordings(
    folder: Path, calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(calls / "0.wav"), str(calls / "1.wav")]
    flags = ["transcribe", *files, "-m", str(folder), "-f", "srt", "-o"]
    assert command([*flags, str(tmp_path / "whole")]) == 0
    for number in (2, 1, 2):
        assert command([*flags, str(tmp_path / "parts"), "--part", f"{number}/2"]) == 0
    assert capsys.readouterr().err.count("is there already") == 1
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "parts" / path.name).read_bytes() == path.read_bytes()
    assert command(["transcribe", files[0], "-m", str(folder), "--part", "1/2"]) == 2
    assert "shares out recordings; name files, and a folder" in capsys.readouterr().err


def test_a_recording_that_ends_early_is_told(
    folder: Path, calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    half = tmp_path / "half.wav"
    half.write_bytes((calls / "0.wav").read_bytes()[:20_000])
    for flags in ([], ["-f", "json"], ["--stream"]):
        assert command(["transcribe", str(half), "-m", str(folder), *flags]) == 0
        said = capfd.readouterr()
        assert said.out
        assert said.err.startswith(f"{half} ends early: ")
        assert len(said.err.splitlines()) == 1


def test_raw_samples_and_a_stream(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    raw = (np.random.default_rng(1).normal(size=16000) * 3000).astype("<i2").tobytes()
    for flags in ([], ["--stream"], ["--rate", "16000"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert command(["transcribe", "-", "-m", str(folder), *flags]) == 0
        assert capfdbinary.readouterr().out.endswith(b"\n")


@pytest.mark.parametrize(("raw", "said"), [(b"", "holds no samples"), (b"\1\2", "1 sample, too few")])
def test_raw_samples_that_are_none(
    folder: Path, raw: bytes, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for flags in ([], ["--stream"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert command(["transcribe", "-", "-m", str(folder), *flags]) == 2
        assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["no.wav"], "no.wav does not exist"),
        (["0.wav", "--format", "doc"], "must be one of txt, vtt"),
        (["0.wav", "--stream", "--format", "srt"], "takes no --format"),
        (["0.wav", "--rate", "3"], "--rate (3) must be"),
        (["metadata.tsv"], "is no sound file"),
    ],
)
def test_what_is_wrong_is_one_line(
    folder: Path,
    calls: Path,
    flags: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(calls)
    assert command(["transcribe", *flags, "-m", str(folder)]) == 2
    error = capfd.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
