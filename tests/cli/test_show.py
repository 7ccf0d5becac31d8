"""`regard show`: the card, drawn for a person and plain for a pipe."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from command import Run, command, environment

from regard.cli import main


def test_a_pipe_gets_the_card_as_it_is(model: Path, regard: Run):
    done = regard("show", model)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (model / "README.md").read_text()


@pytest.mark.parametrize("plain", [False, True], ids=["terminal", "NO_COLOR"])
def test_a_terminal_gets_it_drawn(model: Path, plain: bool):
    ours, theirs = pty.openpty()
    variables = (
        environment() | {"TERM": "xterm-256color", "COLUMNS": "80"} | ({"NO_COLOR": "1"} if plain else {})
    )
    process = subprocess.Popen(command("show", model), stdout=theirs, env=variables)
    os.close(theirs)
    drawn = b""
    try:
        while part := os.read(ours, 65536):
            drawn += part
    except OSError:  # how a terminal says that its other end was closed
        pass
    os.close(ours)
    assert process.wait(timeout=120) == 0
    text = drawn.decode()
    assert "BLEU" in text
    assert "\n# " not in text, "headings are drawn"
    if plain:
        assert not re.search(r"\x1b\[(\d+;)*[349][0-8]", text), "no colours"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "does not exist"),
        ("file", "is a file"),
        ("folder", "config.json"),
        ("cardless", "README.md"),
    ],
)
def test_no_model(name: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "cardless").mkdir()
    (tmp_path / "cardless" / "config.json").write_text("{}")
    assert main.run(["show", str(tmp_path / name)]) == 2
    err = capfd.readouterr().err
    assert err.startswith("regard: error: ")
    assert words in err
