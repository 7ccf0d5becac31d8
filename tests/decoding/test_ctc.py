"""Writing with CTC against all paths that there are, on lattices that are small enough."""

import math
from itertools import product

import pytest
import torch

from regard.config import DecodeConfig
from regard.decoding.ctc import WAY, prefix_beam
from regard.decoding.lattice import collapse
from regard.decoding.sampling import Sampling
from regard.decoding.search import Rules
from regard.decoding.way import Spelling, Wanted
from regard.errors import DataError, UsageError
from regard.text.tokenizer import OUR_SPECIALS

V, BLANK = 8, OUR_SPECIALS.blank
RULES = Rules(torch.tensor([0]), torch.tensor([20]), penalty=1.0)


class Fixed:
    """A model whose places say what they were told to."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.given = logits
        self.output_weight = torch.zeros(V, 2)

    def start(self, inputs: object) -> None:
        return None

    def places(self, state: object, unknown: int) -> tuple[torch.Tensor, torch.Tensor]:
        shape = self.given.shape[:2]
        return torch.full(shape, unknown), torch.ones(shape, dtype=torch.bool)

    def logits(self, ids: torch.Tensor, real: torch.Tensor, state: object) -> torch.Tensor:
        return self.given

    def guess(self, ids: object, real: object, state: object, banned: torch.Tensor) -> tuple:
        best = self.given.log_softmax(-1).masked_fill(banned, float("-inf")).max(-1)
        return best.indices, best.values


def lattice(seed: int, places: int = 5) -> torch.Tensor:
    return 2 * torch.randn(1, places, V, generator=torch.Generator().manual_seed(seed))


def wanted(**options: object) -> Wanted:
    beam = options.pop("beam", 1)
    return Wanted(DecodeConfig(beam=beam), **options)


def said(path: tuple[int, ...]) -> bool:
    return all(label == BLANK or label > 3 for label in path)


def every(logits: torch.Tensor) -> dict[tuple[int, ...], float]:
    """Each output with the log p of all of its paths."""
    logp = logits[0].log_softmax(-1).tolist()
    found: dict[tuple[int, ...], float] = {}
    for path in filter(said, product(range(V), repeat=len(logp))):
        p = math.exp(sum(row[label] for row, label in zip(logp, path, strict=True)))
        ids = tuple(collapse(path, BLANK))
        found[ids] = found.get(ids, 0.0) + p
    return {ids: math.log(p) for ids, p in found.items()}


@pytest.mark.parametrize("seed", range(5))
def test_greedy_takes_the_likeliest_path(seed: int) -> None:
    logits = lattice(seed)
    ((found,),) = WAY.search(Fixed(logits), None, RULES, wanted())
    best = max(
        filter(said, product(range(V), repeat=5)),
        key=lambda path: sum(float(row[label]) for row, label in zip(logits[0], path, strict=True)),
    )
    assert found.ids == collapse(best, BLANK)
    assert not found.truncated


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_the_likeliest_outputs(seed: int) -> None:
    logits = lattice(seed, 4)
    (found,) = WAY.search(Fixed(logits), None, RULES, wanted(beam=200, n_best=5))
    outputs = every(logits)
    best = sorted(outputs, key=lambda ids: -outputs[ids])[:5]
    assert [tuple(each.ids) for each in found] == best
    for each in found:
        assert each.score == pytest.approx(outputs[tuple(each.ids)], rel=1e-4)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


def test_a_beam_of_one_adds_up_what_says_the_same() -> None:
    logp = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log()  # nothing, nothing: 0.36; some way to say it: 0.64
    assert prefix_beam(logp, 2, blank=0)[0][0] == [1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_length_is_kept_exactly(seed: int, length: int) -> None:
    ((found,),) = WAY.search(Fixed(lattice(seed)), None, RULES, wanted(length=length))
    assert len(found.ids) == length


@pytest.mark.parametrize("seed", range(5))
def test_no_output_has_more_characters_than_were_asked_for(seed: int) -> None:
    spelling = Spelling(torch.tensor([0, 0, 0, 0, 2, 3, 5, 7]), torch.tensor([0, 0, 0, 0, 1, 0, 1, 0]))
    asked = wanted(max_chars=6, spelling=spelling)
    ((found,),) = WAY.search(Fixed(lattice(seed)), None, RULES, asked)
    assert spelling.count(found.ids) <= 6


def test_bad_wishes_are_one_line_with_the_numbers() -> None:
    with pytest.raises(DataError, match=r"length \(6\) is above the 5 places"):
        WAY.search(Fixed(lattice(0)), None, RULES, wanted(length=6))
    with pytest.raises(UsageError, match=r"length \(0\) must be at least 1"):
        wanted(length=0)
    with pytest.raises(UsageError, match=r"n_best \(2\) must be at most beam \(1\)"):
        WAY.check(wanted(n_best=2))
    with pytest.raises(UsageError, match="drawn one after the other"):
        WAY.check(wanted(sampling=Sampling()))
