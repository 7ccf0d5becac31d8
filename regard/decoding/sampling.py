"""Sampling: the next token is drawn from what the model finds likely.

p ∝ p_model ** (1 / temperature), among the `top_k` likeliest, among the fewest that hold `top_p` of the
mass (Holtzman et al. 2020), among those with at least `min_p` times the likeliest's (Nguyen et al. 2024).
A sentence's random numbers come from the seed and its own ids alone, so that batch
neighbours, batch size and order change nothing.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from regard.data.inputs import Inputs
from regard.decoding.search import Hypothesis, Rules, write
from regard.errors import UsageError
from regard.models.protocol import Stepper, StepState

S = TypeVar("S", bound=StepState)
In = TypeVar("In", bound=Inputs)


@dataclass(frozen=True)
class Sampling:
    """How to draw."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 1
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature <= 100:
            raise UsageError(
                f"temperature ({self.temperature:g}) must be above 0 and at most 100; "
                "for the likeliest words search with a beam instead"
            )
        if self.top_k < 0:
            raise UsageError(f"top_k ({self.top_k}) must be 0, for all tokens, or more")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p ({self.top_p:g}) must be above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise UsageError(f"min_p ({self.min_p:g}) must be at least 0 and at most 1")


def sample(
    model: Stepper[In, S], inputs: In, rules: Rules, *, sampling: Sampling, draws: int = 1
) -> list[list[Hypothesis]]:
    """`draws` outputs for each row of the inputs, in the order they were drawn; they may be equal."""
    state = model.start(inputs)
    rows = torch.arange(len(inputs), device=inputs.device).repeat_interleave(draws)  # (B * draws,)
    if draws > 1:
        state = state.select(rows)
    chance = chances(inputs, rules, sampling.seed, draws).to(inputs.device)
    first = None if rules.first is None else rules.first[rows]
    each = replace(rules, least=rules.least[rows], most=rules.most[rows], first=first)
    drawn = write(model, state, each, lambda logp, step, row: draw(logp, chance[row, step], sampling))
    return [drawn[i : i + draws] for i in range(0, len(drawn), draws)]


def draw(logp: Tensor, chance: Tensor, sampling: Sampling) -> Tensor:
    """Ids (R,) drawn from log p (R, V) by walking its cumulated mass up to `chance` (R,) in [0, 1)."""
    ranked, tokens = (logp / sampling.temperature).sort(descending=True, stable=True)  # (R, V)
    if sampling.top_k:
        ranked = ranked[:, : sampling.top_k]
    mass = ranked.softmax(-1)
    before = mass.cumsum(-1) - mass
    mass = mass.masked_fill((before >= sampling.top_p) | (mass < sampling.min_p * mass[:, :1]), 0.0)
    walked = mass.cumsum(-1)
    place = (walked > chance[:, None] * walked[:, -1:]).int().argmax(-1)  # (R,) the first beyond
    return tokens.gather(1, place[:, None])[:, 0]


def chances(inputs: Inputs, rules: Rules, seed: int, draws: int) -> Tensor:
    """Random numbers (B * draws, T), each row from a generator of its own."""
    found = torch.zeros(len(inputs) * draws, int(rules.most.max()))
    rows = iter(found)
    sentences = inputs.contents()
    if rules.first is not None:
        sentences = [[*ids, last] for ids, last in zip(sentences, rules.first.tolist(), strict=True)]
    for sentence, length in zip(sentences, rules.most.tolist(), strict=True):
        for number in range(draws):
            key = hashlib.blake2b(repr((seed, number, sentence)).encode(), digest_size=7).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(key, "little"))
            next(rows)[:length] = torch.rand(length, generator=generator)
    return found
