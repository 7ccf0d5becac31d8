"""Bulk work that is killed, and bulk work on Ray: byte for byte what one process writes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import soundfile
from command import command, environment, letters, write_lines
from encoders import write_encoder
from listeners import write_listener
from writers import write_writer

from regard.cli.main import run

LIMIT = 240.0  # seconds; a busy machine is slow


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("bulk") / "in.txt", letters(6000, seed=7)[0])


@pytest.fixture(scope="module")
def whole(model: Path, lines: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What one process writes."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert run(["translate", "-m", str(model), "-i", str(lines), "-o", str(out)]) == 0
    return out.read_bytes()


def test_a_part_that_is_killed_is_not_there_and_is_made_by_the_same_command(
    model: Path, lines: Path, whole: bytes, tmp_path: Path
) -> None:
    flags = ["translate", "-m", str(model), "-i", str(lines), "-o", str(tmp_path / "out"), "--part"]
    process = subprocess.Popen(command(*flags, "1/2"), env=environment())
    until = time.monotonic() + LIMIT
    while not any(path.stat().st_size for path in tmp_path.glob("out.*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out.1-of-2").exists()
    for part in ("1/2", "2/2"):
        assert run([*flags, part]) == 0
    assert b"".join((tmp_path / f"out.{number}-of-2").read_bytes() for number in (1, 2)) == whole


def answerers() -> list[int]:
    """The processes of Ray's that answer lines and are ours."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            named = path.read_bytes().startswith(b"ray::Answerer")
            ours = str(Path(__file__).parent).encode() in (path.parent / "environ").read_bytes()
        except OSError:
            continue
        if named and ours:
            found.append(int(path.parent.name))
    return found


def test_ray_gives_the_same_bytes_also_where_a_process_dies(
    model: Path, lines: Path, whole: bytes, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out"
    mark = {"REGARD_TEST": str(Path(__file__).parent), "RAY_DISABLE_MEMORY_MONITOR": "1"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command("translate", "-m", model, "-i", lines, "-o", out, "--on", "ray"),
            env=environment() | mark,
            stderr=log,
        )
        until = time.monotonic() + LIMIT
        killed = 0
        while process.poll() is None and time.monotonic() < until:
            if not killed and out.exists() and out.stat().st_size and answerers():
                os.kill(answerers()[0], signal.SIGKILL)
                killed += 1
            time.sleep(0.01)
    assert process.poll() == 0, (tmp_path / "log").read_text()
    assert killed
    assert out.read_bytes() == whole


def embedding(place: Path) -> list[str]:
    texts = write_lines(place / "in.txt", ["the cat sat", "a dog .", ""] * 200)
    return ["embed", "-m", str(write_encoder(place / "m", "masked")), "-i", str(texts)]


def generating(place: Path) -> list[str]:
    prompts = write_lines(place / "in.txt", [f"the {number}" for number in range(300)])
    drawn = ["--tokens", "7", "-n", "2", "--temperature", "1.2", "--seed", "5"]
    return ["generate", "-m", str(write_writer(place / "m")), "-i", str(prompts), *drawn]


def transcribing(place: Path) -> list[str]:
    tone = numpy.sin(numpy.arange(8000) * 0.9).astype("float32")
    for number in range(1, 5):
        soundfile.write(place / f"{number}.wav", tone[: 2000 * number], 8000)
    sounds = sorted(map(str, place.glob("*.wav")))
    return ["transcribe", *sounds, "-m", str(write_listener(place / "m")), "--format", "json"]


@pytest.mark.parametrize("asked", [embedding, generating, transcribing])
def test_every_verb_that_answers_one_by_one_gives_the_same_on_ray(
    asked: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    flags = asked(tmp_path)
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert run([*flags, "-o", str(alone)]) == 0
    subprocess.run(command(*flags, "-o", shared, "--on", "ray"), env=environment(), timeout=LIMIT, check=True)
    pairs = [(alone, shared)]
    if alone.is_dir():
        pairs = [(each, shared / each.name) for each in sorted(alone.iterdir())]
        assert len(pairs) == len(list(shared.iterdir())) == 4
    for one, other in pairs:
        assert one.read_bytes() == other.read_bytes()
        assert len(one.read_bytes()) > 100


def test_refusals(model: Path, lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["translate", "-m", str(model), "-i", str(lines)]
    for more, words in (
        (["--on", "rye"], "--on (rye) must be ray"),
        (["--on", "ray", "-i", "a.srt"], "--on shares out the lines of a file"),
        (["--part", "1/2", "-o", "memory://out"], "--part writes a file of this machine"),
    ):
        assert run([*flags, *more]) == 2
        assert words in capsys.readouterr().err
