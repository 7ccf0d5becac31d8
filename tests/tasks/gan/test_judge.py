"""The judge: it learns, is the same for the same seed, keeps its bytes, and refuses those of others."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.errors import ModelError
from regard.tasks.gan.judge import Judge, from_bytes, to_bytes, train_judge, turned


@pytest.fixture(scope="module")
def pictures(stripes: Path) -> tuple[np.ndarray, np.ndarray]:
    held = np.load(stripes)
    return held["images"][:, None], (held["labels"] == "lying").astype(np.int64)


@pytest.fixture(scope="module")
def judge(pictures: tuple[np.ndarray, np.ndarray]) -> Judge:
    return train_judge(*pictures, 2, epochs=20)


def test_it_tells_classes_apart_and_random_numbers_are_left(
    judge: Judge, pictures: tuple[np.ndarray, np.ndarray]
):
    features, found = judge.look(pictures[0])
    assert features.shape == (70, 64)
    assert (found == pictures[1]).mean() > 0.9
    state = torch.get_rng_state()
    train_judge(*pictures, 2, epochs=1)
    assert torch.equal(torch.get_rng_state(), state)


def test_without_labels_it_learns_turns(pictures: tuple[np.ndarray, np.ndarray]) -> None:
    assert train_judge(pictures[0], None, 0, epochs=1).out.out_features == 4
    given = torch.arange(32.0).view(2, 1, 4, 4)
    out, quarters = turned(given, torch.Generator().manual_seed(3))
    for picture, way, original in zip(out, quarters, given, strict=True):
        assert torch.equal(picture, original.rot90(int(way), (1, 2)))


def test_the_same_seed_gives_the_same_and_bytes_keep_it(pictures: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = (train_judge(*pictures, 2, epochs=1, seed=5) for _ in range(2))
    assert to_bytes(one, "x") == to_bytes(other, "x")
    again = from_bytes(to_bytes(one, "x"), 1, "x")
    assert np.array_equal(again.look(pictures[0])[0], one.look(pictures[0])[0])


def test_other_bytes_are_refused(judge: Judge) -> None:
    data = to_bytes(judge, "these")
    with pytest.raises(ModelError, match="was trained on other pictures"):
        from_bytes(data, 1, "those")
    for wrong in (b"", data[:99], b"\0" * 64, data):
        with pytest.raises(ModelError, match="is no judge of these pictures"):
            from_bytes(wrong, 3)


def test_time_ends_it(pictures: tuple[np.ndarray, np.ndarray]) -> None:
    ticks = iter(range(1000))
    train_judge(*pictures, 2, epochs=10**6, seconds=3.0, clock=lambda: float(next(ticks)))
    assert next(ticks) < 10
