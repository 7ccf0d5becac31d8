"""What the formats share: a folder is whole or not there, and a missing package says how to get it."""

from pathlib import Path

import pytest

from regard.config import Config, merge
from regard.errors import ModelError, UsageError
from regard.interop.parts import need, new_folder, position_table


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "out") as place:
        (place / "a").write_text("a")
        assert not (tmp_path / "deep" / "out").exists()
    assert (tmp_path / "deep" / "out" / "a").read_text() == "a"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with new_folder(tmp_path / "out") as place:
            (place / "a").write_text("a")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as place:
        (place / "a").write_text("a")
    assert (tmp_path / "empty" / "a").exists()
    with pytest.raises(UsageError, match="not an empty folder"), new_folder(tmp_path / "empty"):
        pass


def test_a_missing_package_says_which_extra_brings_it() -> None:
    with pytest.raises(
        UsageError, match=r"no_such_package is not installed; pip install 'regard\[interop\]'"
    ):
        need("no_such_package")


def test_a_table_of_positions_is_bounded() -> None:
    config = merge(Config(), {"decode.max_source": 10_000_000, "decode.max_ratio": 1000.0})
    with pytest.raises(ModelError, match=r"lower decode\.max_source"):
        position_table(None, config)  # type: ignore[arg-type]
