"""Decoder and CTC together: CTC's shares are those of all paths, and no row depends on its neighbours."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard.decoding.greedy import likeliest
from regard.decoding.joint import Joint, Prefix
from regard.decoding.search import Rules, write
from regard.text.tokenizer import OUR_SPECIALS

V, PLACES = 6, 4
SPECIALS = OUR_SPECIALS


class Even:
    """A decoder that finds every token as likely."""

    max_length = None

    def step(self, ids: Tensor, state: "Nothing") -> tuple[Tensor, "Nothing"]:
        return torch.zeros(len(ids), V), state


class Nothing:
    def select(self, rows: Tensor) -> "Nothing":
        return self


def spoken(rows: int = 1, places: int = PLACES) -> Tensor:
    logp = torch.randn(rows, places, V, generator=torch.Generator().manual_seed(3)).double() * 2
    logp[:, :, 1:4] = -math.inf  # specials are not heard
    return logp.log_softmax(-1)


def paths(logp: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of every text, by every path."""
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(V), repeat=len(logp)):
        text = tuple(token for token, _ in itertools.groupby(path) if token != 0)
        p = math.exp(sum(float(logp[place, token]) for place, token in enumerate(path)))
        found[text] = found.get(text, 0.0) + p
    return found


def after(joint: Joint[Nothing], state: Prefix[Nothing], text: tuple[int, ...]) -> Prefix[Nothing]:
    for token in (1, *text):
        _, state = joint.step(torch.tensor([token]), state)
    return state


@pytest.mark.parametrize("text", [(), (4,), (5, 4), (4, 4), (4, 5, 5)])
def test_what_may_follow_has_the_share_of_its_paths(text: tuple[int, ...]) -> None:
    logp = spoken()
    every = paths(logp[0])
    joint: Joint[Nothing] = Joint(Even(), 1.0, SPECIALS)
    found = joint.follows(after(joint, joint.begin(Nothing(), logp), text))[0].exp()

    def beginning(start: tuple[int, ...]) -> float:
        return sum(p for each, p in every.items() if each[: len(start)] == start)

    for token in (4, 5):
        assert float(found[token]) == pytest.approx(beginning((*text, token)) / beginning(text), abs=1e-9)
    assert float(found[2]) == pytest.approx(every[text] / beginning(text), abs=1e-9)
    assert float(found[0]) == 0


def test_padding_and_neighbours_change_nothing() -> None:
    logp = spoken(2, 7)
    real = torch.arange(7) < torch.tensor([[7], [4]])
    joint: Joint[Nothing] = Joint(Even(), 0.5, SPECIALS)
    both, alone = joint.begin(Nothing(), logp, real), joint.begin(Nothing(), logp[1:, :4])
    for token in (1, 5, 4, 4):
        one, both = joint.step(torch.tensor([4 if token != 1 else 1, token]), both)
        other, alone = joint.step(torch.tensor([token]), alone)
        torch.testing.assert_close(one[1:].softmax(-1), other.softmax(-1))
    picked = both.select(torch.tensor([1]))
    torch.testing.assert_close(joint.follows(picked).exp(), joint.follows(alone).exp())


def test_a_decoder_that_never_ends_says_what_is_heard_and_ends() -> None:
    """Even odds would go on for ever, or stop at once; CTC knows that 4, 4, 5 was said."""
    logp = torch.full((1, 6, V), -8.0)
    for place, token in enumerate((4, 0, 4, 5, 5, 0)):
        logp[0, place, token] = 0.0
    logp = logp.log_softmax(-1)
    joint: Joint[Nothing] = Joint(Even(), 0.3, SPECIALS)
    rules = Rules(torch.tensor([0]), torch.tensor([20]))
    found = write(joint, joint.begin(Nothing(), logp), rules, likeliest)
    assert found[0].ids == [4, 4, 5]
    assert not found[0].truncated


def test_more_than_fits_is_never_said() -> None:
    """With every place used up nothing but the end is left, also after hundreds of places."""
    joint: Joint[Nothing] = Joint(Even(), 0.5, SPECIALS)
    state = after(joint, joint.begin(Nothing(), spoken()), (4, 5, 4, 5))
    assert int(joint.follows(state)[0].argmax()) == SPECIALS.end
    long = spoken(1, 700)
    state = after(joint, joint.begin(Nothing(), long), (4, 5, 4))
    assert bool(torch.isfinite(joint.follows(state)).all())
