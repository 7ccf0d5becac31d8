"""Every notebook of docs/notebooks runs, from its first cell to its last, in a kernel of its own."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, environment

BOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MOST = 200_000  # bytes, so that what they show does not swell the repository


def cells(path: Path) -> list[Any]:
    found: list[Any] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


@pytest.mark.filterwarnings("default")  # of what runs kernels; what a cell warns of is shown in it
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    book = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))["run"](path)
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert [output["text"] for output in shown if output.get("name") == "stderr"] == []
    assert any("image/png" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_ran(path: Path) -> None:
    """In order, every cell, with its pictures: that is what people see where nothing is run."""
    assert [cell["execution_count"] for cell in cells(path)] == list(range(1, len(cells(path)) + 1))
    kinds = [kind for cell in cells(path) for output in cell["outputs"] for kind in output.get("data", {})]
    assert "image/png" in kinds
    assert path.stat().st_size < MOST


def test_there_are_three() -> None:
    assert {path.stem for path in BOOKS} == {"train_and_look", "swap_an_attention", "build_your_own"}
