from pathlib import Path

import pytest

from regard.atomic import TEMPORARY, remove_parts, write_atomically, write_text, write_together
from regard.errors import StorageError


def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")

    def half(part: Path) -> None:
        part.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, half)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_errors_of_the_system_become_storage_errors(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file or directory"):
        write_text(tmp_path / "missing" / "file", "x")


def test_parts_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / f"a{TEMPORARY}").write_text("x")
    (tmp_path / "b").write_text("x")
    remove_parts(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_files_that_belong_together_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_text(tmp_path / name, "old")

    def full(part: Path) -> None:
        part.write_text("ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left on device"):
        write_together(tmp_path, {"a": lambda part: part.write_text("new"), "b": full})
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "old", "b": "old"}
    write_together(tmp_path, {name: lambda part: part.write_text("new") for name in ("a", "b")})
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "new", "b": "new"}
