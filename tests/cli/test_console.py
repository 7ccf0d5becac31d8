"""Streams that outlive their readers and take any text."""

import io
import os
import subprocess
from pathlib import Path

import pytest
from command import QUICK, command, environment

from regard.cli import console
from regard.cli.console import Unbroken, counted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_count_stands_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(console, "EVERY", 0.0)
    file, terminal = io.StringIO(), Terminal()
    assert list(counted("abc", "lines", on=None)) == list("abc")
    assert list(counted("abc", "lines", on=file)) == list("abc")
    assert file.getvalue() == ""
    assert list(counted("abc", "lines", on=terminal)) == list("abc")
    shown = terminal.getvalue().split("\r")
    assert [text[:8] for text in shown[1:4]] == ["1 lines,", "2 lines,", "3 lines,"]
    assert shown[-2].strip() == shown[-1] == ""  # wiped


def test_a_stream_without_a_reader_falls_silent(tmp_path: Path):
    read, write = os.pipe()
    stream = os.fdopen(write, "w", buffering=1)
    unbroken = Unbroken(stream)
    unbroken.write("heard\n")
    assert os.read(read, 100) == b"heard\n"
    os.close(read)
    with pytest.raises(BrokenPipeError):
        os.write(write, b"unheard")
    for _ in range(3):
        assert unbroken.write("unheard\n") == 8
        unbroken.flush()
    assert unbroken.fileno() == write
    stream.close()


def test_training_goes_on_when_nobody_listens(letter_files: tuple[Path, Path], tmp_path: Path):
    read, write = os.pipe()
    os.close(read)
    arguments = command("train", *letter_files, "-o", tmp_path / "out", *QUICK, "--set", "train.max_steps=2")
    done = subprocess.run(arguments, env=environment(), stderr=write, stdin=subprocess.DEVNULL, check=False)
    os.close(write)
    assert done.returncode == 0
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_a_narrow_encoding_is_no_failure(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("Grüße, 日本\n", encoding="utf-8")
    narrow = environment() | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(command("show", tmp_path), env=narrow, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == "Grüße, \\u65e5\\u672c\n".encode("latin-1")
