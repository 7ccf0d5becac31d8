from pathlib import Path

import pytest

from regard.errors import StorageError
from regard.training.atomic import TEMPORARY, remove_parts, write_atomically, write_text


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
