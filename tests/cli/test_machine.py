"""`regard machine`: lines for people, one JSON object for programs."""

import json
import os

import pytest
from machines import Bench

from regard.cli import main
from regard.engine import path
from regard.process import machine, speed


@pytest.fixture(autouse=True)
def quick(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(speed, "SECONDS", 0.0)
    monkeypatch.setattr(speed, "COPIED", 2**20)
    return bench


def test_lines(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["machine"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    names = [line.split()[0] for line in out.splitlines()]
    wanted = ["machine", "system", "cores", "memory", "products"]
    wanted += ["bf16", "tiles", "engine", "GPU", "versions"]
    assert names[: len(wanted)] == wanted
    assert f"cores     {machine.cores()} (" in out


def test_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["machine", "--json"]) == 0
    tree = json.loads(capfd.readouterr()[0])
    assert tree["engine"]["path"] == path.path()
    assert tree["engine"]["runs"] == path.running()
    assert tree["operations_per_second"]["fp32"] > 0
    assert all(rate > 0 for rate in tree["engine"]["operations_per_second"].values())


def test_without_the_library(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "available", lambda: "it was not built")
    assert main.run(["machine"]) == 0
    assert "engine    not there: it was not built" in capfd.readouterr()[0]


def test_a_word_that_is_none_is_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(machine.OVERRIDE, "fast")
    assert main.run(["machine"]) == 2
    assert "error: REGARD_MACHINE: fast is none of tiles" in capfd.readouterr()[1]
    assert os.environ[machine.OVERRIDE] == "fast"
