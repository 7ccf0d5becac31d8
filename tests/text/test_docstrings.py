"""The embedded corpus of documents: docstrings are gone from their sources, splits share no module."""

import ast
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.text import docstrings
from regard.text.docstrings import documents, split_of
from regard.text.documents import unfold

SOURCE = '''"""What this module is for.

More that is no summary.
"""
import os


@decorate
def area(width, height):
    """The area of
    a rectangle.

    Details."""
    # they are numbers
    return width * height


class Box:
    "Holds one thing only."; size = 1

    async def open(self):
        """Open it slowly now."""

    def short(self):
        """Two words"""

    def one(self): "On the same line."
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "copy.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "latin.py").write_bytes(
        "# coding: latin-1\n'''Caf\xe9 in the morning.'''\nx = 1\n".encode("latin-1")
    )
    (tmp_path / "nothing.py").write_text('"""Only a docstring here."""\n', encoding="utf-8")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_area.py").write_text(SOURCE.replace("area", "other"), encoding="utf-8")
    return tmp_path


def test_every_documented_thing_once_without_its_docstring(folder: Path):
    found = {each.name: each for each in documents(folder)}
    assert list(found) == ["copy", "copy.area", "copy.Box", "copy.open", "copy.one", "latin"]
    assert [each.kind for each in found.values()] == [
        "module",
        "function",
        "class",
        "function",
        "function",
        "module",
    ]
    area = found["copy.area"]
    assert unfold(area.source) == (
        "@decorate\ndef area(width, height):\n    # they are numbers\n    return width * height"
    )
    assert (area.summary, area.lead) == ("The area of a rectangle.", "return width * height")
    assert found["copy"].source.startswith("import os ¶")
    assert "The area of" in found["copy"].source, "what it holds keeps its docstrings"
    assert found["copy"].summary == "What this module is for."
    assert unfold(found["copy.Box"].source).startswith("class Box:\n    ; size = 1\n\n    async def open")
    assert found["copy.one"].source == "def one(self):"
    assert found["copy.open"].lead == ""
    assert found["latin"].summary == "Café in the morning."


def test_sources_of_the_standard_library_are_python_without_the_summary():
    names = ("bisect", "textwrap", "heapq")
    paths = [docstrings.standard_library() / f"{name}.py" for name in names]
    found = [each for path in paths for each in docstrings._of_file(path, path.stem)]
    assert {each.kind for each in found} == {"module", "class", "function"}
    for each in found:
        tree = ast.parse(unfold(each.source) + ("" if each.lead else "\n    pass"))
        held = tree if each.kind == "module" else tree.body[0]
        assert ast.get_docstring(held) is None
    assert all(len(each.source.splitlines()) == 1 and "\t" not in each.source for each in found)


def test_splits_are_by_module_and_stable():
    modules = [f"module{number}" for number in range(2000)]
    shares = {split: sum(split_of(name) == split for name in modules) for split in docstrings.SPLITS}
    assert shares["train"] > 1600
    assert 150 < shares["test"] < 250
    assert 60 < shares["valid"] < 140
    assert split_of("textwrap") == split_of("textwrap")


def test_no_folder(tmp_path: Path):
    with pytest.raises(DataError, match=r"missing is no folder"):
        documents(tmp_path / "missing")


def test_source_that_is_nested_beyond_the_parser_has_no_documents(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("x = " + "+1" * 200_000)
    (tmp_path / "deeper.py").write_text("(" * 10**5)
    assert list(documents(tmp_path)) == []
