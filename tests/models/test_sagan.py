"""The generator and the discriminator: shapes, classes, attention; pictures do not know each other."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.record import record
from regard.config import Config, merge
from regard.errors import UsageError
from regard.models import build
from regard.models.sagan import SAGAN, attending, nearest_side, rungs, spread_within, widths

SHAPE = {
    "task": "gan",
    "model.kind": "sagan",
    "model.d_model": 16,
    "model.n_heads": 2,
    "gan.side": 20,
    "gan.channels": 3,
    "gan.classes": 5,
    "gan.noise": 7,
}


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def made(**changes: Any) -> SAGAN:
    torch.manual_seed(1)
    model = build(merge(Config(), SHAPE | {f"gan.{key}": value for key, value in changes.items()}))
    assert isinstance(model, SAGAN)
    return model


def open_gates(model: SAGAN) -> SAGAN:
    for part in (model.generator, model.discriminator):
        if part.attention is not None:
            part.attention.gate.data.fill_(0.5)
    return model


@given(st.integers(1, 256))
def test_a_ladder_reaches_the_side_from_four_to_seven(side: int) -> None:
    near = nearest_side(side)
    steps = rungs(near)
    assert steps[0] in (4, 5, 6, 7)
    assert steps[-1] == near
    assert all(high == 2 * low for low, high in pairwise(steps))
    assert widths(near, 64)[0] <= 64
    assert abs(near - side) <= max(4, side // 5) or side > 224 or side < 8


def test_other_sides_are_refused_with_one_that_fits() -> None:
    with pytest.raises(UsageError, match=r"gan.side \(30\) must be 4, 5, 6 or 7 doubled, such as 28"):
        rungs(30)


def test_attention_stands_on_the_largest_map_that_may() -> None:
    assert [attending([7, 14, 28], most) for most in (0, 6, 7, 13, 14, 27, 256)] == [
        None,
        None,
        0,
        0,
        1,
        1,
        1,
    ]


@pytest.mark.parametrize("changes", [{}, {"classes": 0}, {"attend": 0}, {"channels": 1, "side": 8}])
def test_shapes_and_bounds(changes: dict[str, Any]) -> None:
    model = made(**changes)
    side, channels = changes.get("side", 20), changes.get("channels", 3)
    labels = None if changes.get("classes") == 0 else torch.tensor([0, 4, 2])
    pictures = model(torch.randn(3, 7), labels)
    assert pictures.shape == (3, channels, side, side)
    assert float(pictures.abs().max()) <= 1
    assert model.judge(pictures, labels).shape == (3,)


def test_a_class_changes_the_picture_and_the_judgement() -> None:
    model = made().eval()
    noise = torch.randn(1, 7)
    one, other = (model.make(noise, torch.tensor([label])) for label in (1, 2))
    assert not torch.allclose(one, other)
    assert float(model.judge(one, torch.tensor([1]))) != float(model.judge(one, torch.tensor([2])))


def test_neighbours_in_a_batch_change_nothing() -> None:
    model = open_gates(made()).eval()
    noise, labels = torch.randn(5, 7), torch.tensor([0, 1, 2, 3, 4])
    together = model.make(noise, labels)
    for row in range(5):
        alone = model.make(noise[row : row + 1], labels[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone)
        found = model.judge(together, labels)[row : row + 1]
        torch.testing.assert_close(found, model.judge(alone, labels[row : row + 1]), atol=1e-4, rtol=1e-4)


def test_spread_is_that_of_each_ones_group() -> None:
    x, group = torch.randn(7, 11, dtype=torch.float64), torch.tensor([0, 2, 0, 2, 2, 0, 3])
    found = spread_within(x, group, 5)
    for row, number in enumerate(group.tolist()):
        wanted = x[group == number].std(0, correction=0).mean()
        assert float(found[row]) == pytest.approx(float(wanted), abs=1e-3)


def test_pictures_that_are_alike_are_judged_otherwise_while_it_learns() -> None:
    model = made(classes=2).train()
    labels = torch.tensor([0, 1]).repeat(8)
    varied = model.make(torch.randn(16, 7), labels)
    alike = varied[:2].repeat(8, 1, 1, 1)
    model.discriminator.last.parametrizations.weight.original.data.add_(1.0)
    apart, same = (float(model.judge(each, labels)[0]) for each in (varied, alike))
    assert apart != pytest.approx(same, abs=1e-4)  # the first picture is the same in both
    both = model.judge(torch.cat([varied, alike]), torch.cat([labels, labels]), 2)
    assert float(both[16]) == pytest.approx(same, abs=1e-2)
    usual = float(model.discriminator.variety.usual)
    assert usual != 1.0
    model.eval()
    torch.testing.assert_close(model.judge(varied, labels)[:2], model.judge(alike, labels)[:2])


def test_both_attend_and_the_tape_hears_it() -> None:
    model = open_gates(made()).eval()
    labels = torch.tensor([0, 1])
    with record() as tape:
        model.judge(model.make(torch.randn(2, 7), labels), labels)
    assert tape.names() == ["generator.1.self", "discriminator.1.self"]
    for name in tape.names():
        assert tape[name][0].shape == (2, 2, 100, 25)
    with record() as silent:
        bare = made(attend=0).eval()
        bare.judge(bare.make(torch.randn(2, 7), labels), labels)
    assert silent.names() == []


@pytest.mark.parametrize("score", ["dot", "cosine", "additive", "general"])
def test_every_score_fits(score: str) -> None:
    config = merge(Config(), SHAPE | {"attention.score": score})
    model = open_gates(SAGAN(config))
    assert bool(model.make(torch.randn(2, 7), torch.tensor([0, 1])).isfinite().all())


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model.n_heads \(2\) must divide the 5 channels"):
        SAGAN(merge(Config(), SHAPE | {"model.d_model": 10, "gan.side": 20, "gan.attend": 10}))
    with pytest.raises(UsageError, match=r"gan.side \(7\) must be 4, 5, 6 or 7 doubled, such as 8"):
        SAGAN(merge(Config(), SHAPE | {"gan.side": 7}))
    with pytest.raises(UsageError, match=r"attention\.kind \(local\) means nothing to model\.kind=sagan"):
        merge(Config(), SHAPE | {"attention.kind": "local"})
