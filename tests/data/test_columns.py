"""Named columns on disk: what goes in comes out, of any shape; what changed is made anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.columns import Chunk, Kind, open_columns, reopen_columns
from regard.errors import DataError

KINDS = {"frames": Kind("<f4", (3,)), "label": Kind("<i8")}
FRAMES = [np.arange(6, dtype="f4").reshape(2, 3), np.zeros((0, 3), "f4"), np.ones((5, 3), "f4")]


def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
    yield {"frames": FRAMES[:2], "label": [[7], [8]]}
    yield {"frames": FRAMES[2:], "label": [[9]]}
    report["examples"] = 3


def never(report: dict[str, Any]) -> Iterator[Chunk]:
    raise AssertionError("it was there")


def test_rows_come_back_and_are_padded(tmp_path: Path) -> None:
    held = open_columns(tmp_path / "store", ["a"], KINDS, chunks)
    assert (len(held), held.report) == (3, {"examples": 3})
    for row, frames in enumerate(FRAMES):
        assert np.array_equal(held["frames"].row(row), frames)
    assert held["frames"].lengths.tolist() == [2, 0, 5]
    padded = held["frames"].padded(np.array([0, 2, 1]), fill=-1)
    assert padded.shape == (3, 5, 3)
    assert np.array_equal(padded[0, :2], FRAMES[0])
    assert (padded[0, 2:] == -1).all()
    assert (padded[2] == -1).all()
    assert held["label"].padded(np.array([2, 0]), more=1).tolist() == [[9, 0], [7, 0]]


def test_the_same_inputs_are_not_read_again(tmp_path: Path) -> None:
    open_columns(tmp_path / "store", ["a"], KINDS, chunks)
    assert len(open_columns(tmp_path / "store", ["a"], KINDS, never)) == 3
    found = reopen_columns(tmp_path / "store")
    assert found is not None
    assert found["label"].values.tolist() == [7, 8, 9]
    with pytest.raises(AssertionError):
        open_columns(tmp_path / "store", ["b"], KINDS, never)
    assert reopen_columns(tmp_path / "none") is None


def test_a_fault_leaves_what_was_there(tmp_path: Path) -> None:
    def breaks(report: dict[str, Any]) -> Iterator[Chunk]:
        yield from chunks(report)
        raise DataError("line 4")

    open_columns(tmp_path / "store", ["a"], KINDS, chunks)
    with pytest.raises(DataError):
        open_columns(tmp_path / "store", ["b"], KINDS, breaks)
    assert len(open_columns(tmp_path / "store", ["a"], KINDS, never)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_shards_are_asked_like_one_array(tmp_path: Path) -> None:
    one = open_columns(tmp_path / "one", ["a"], KINDS, chunks)
    two = open_columns(tmp_path / "two", ["a"], KINDS, chunks, shard=2)
    assert sorted(path.name for path in (tmp_path / "two").glob("*.bin")) == [
        *("frames.1.bin", "frames.bin", "label.1.bin", "label.bin")
    ]
    for name in KINDS:
        rows = np.array([2, 0, 1, 2])
        assert np.array_equal(one[name].padded(rows, -1, more=2), two[name].padded(rows, -1, more=2))
        assert all(np.array_equal(one[name].row(row), two[name].row(row)) for row in range(3))
        for part in (slice(None), slice(1, None), slice(0, -1), slice(2, 2), slice(1, 2)):
            assert np.array_equal(one[name].values[part], two[name].values[part])
    again = open_columns(tmp_path / "two", ["a"], KINDS, never, shard=2)
    assert again["label"].values[:].tolist() == [7, 8, 9]


@pytest.mark.parametrize("damage", ["is missing", "was changed after it was made"])
def test_a_shard_that_is_lost_or_changed_is_told(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "store"
    open_columns(folder, ["a"], KINDS, chunks, shard=1)
    path = folder / "label.1.bin"
    if damage == "is missing":
        path.unlink()
    else:
        path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(DataError, match=rf"label\.1\.bin, a shard of the store, {damage}; put it back"):
        open_columns(folder, ["a"], KINDS, never, shard=1)
    with pytest.raises(DataError, match=damage):
        reopen_columns(folder)
    assert len(open_columns(folder, ["b"], KINDS, chunks, shard=1)) == 3, "other inputs make another store"
