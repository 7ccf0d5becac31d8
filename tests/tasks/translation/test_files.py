"""Arguments as a corpus: one TSV, two files, lists with commas."""

from pathlib import Path

import pytest
from command import write_lines

from regard.errors import DataError, UsageError
from regard.tasks.translation.files import corpus_of


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c", "d", "with,comma"):
        write_lines(tmp_path / name, ["x\ty"])


def test_one_is_a_table_and_two_are_sides():
    assert corpus_of([Path("a")]).tables == (Path("a"),)
    sides = corpus_of([Path("a"), Path("b")])
    assert (sides.sources, sides.targets, sides.tables) == ((Path("a"),), (Path("b"),), ())


def test_commas_make_lists_and_a_path_that_exists_wins():
    sides = corpus_of([Path("a,b"), Path("c,d")])
    assert (sides.sources, sides.targets) == ((Path("a"), Path("b")), (Path("c"), Path("d")))
    assert corpus_of([Path("with,comma")]).tables == (Path("with,comma"),)
    assert corpus_of([Path("a,b")]).tables == (Path("a"), Path("b"))


def test_more_than_two_are_told_of_lists():
    with pytest.raises(UsageError, match=r"3 files given.*commas"):
        corpus_of([Path("a"), Path("b"), Path("c")])


def test_lists_of_unequal_length():
    with pytest.raises(UsageError, match="2 source files but 1 target"):
        corpus_of([Path("a,b"), Path("c")])


@pytest.mark.parametrize("name", ["e", "a,e", "e,a"])
def test_a_missing_file_is_named(name: str):
    with pytest.raises(DataError, match=r"^e does not exist"):
        corpus_of([Path(name)])


@pytest.mark.parametrize("name", [",", ",,"])
def test_a_list_of_nothing(name: str):
    with pytest.raises((UsageError, DataError)):
        corpus_of([Path(name)])


def test_a_script_hands_over_lists_and_corpora():
    sides = corpus_of([[Path("a"), Path("b")], ["c", "d"]])
    assert (sides.sources, sides.targets) == ((Path("a"), Path("b")), (Path("c"), Path("d")))
    assert corpus_of([["a", "b"]]) == corpus_of(["a", Path("b")])
    assert corpus_of([sides]) is sides
    with pytest.raises(UsageError, match="its own targets"):
        corpus_of(["a", sides])
