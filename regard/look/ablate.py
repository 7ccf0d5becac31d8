"""Which heads matter: what a score loses when one head alone is switched off (Michel et al. 2019).

Each head costs one pass over the examples, so few are taken. The task says what is measured: BLEU of a
translator, bits per byte of a language model, perplexity of gaps, accuracy of labels (`Task.judge`). Before
this file: `regard.attention.switch`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from regard.attention.record import attentions
from regard.attention.switch import heads_off
from regard.errors import ModelError
from regard.measure.score import Score


@dataclass(frozen=True)
class HeadLoss:
    """What one head is worth."""

    name: str  # of the attention, as on the tape
    head: int
    value: float  # the score with this head off
    lost: float  # by how much that is worse than with all heads


@dataclass(frozen=True)
class Ranking:
    """Every head, the most needed first."""

    score: str  # its name: bleu, bits_per_byte
    value: float  # with all heads
    higher: bool  # a higher one is better
    signature: str
    heads: tuple[HeadLoss, ...]
    label: str = ""  # the name as a person reads it
    digits: int = 2


def rank_heads(
    model: Any,
    measure: Callable[[], Mapping[str, Score]],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranking:
    """Every head of a model by what the first score loses when it alone is off; the score is measured anew
    for each. `progress` hears how many passes are done.
    """
    heads = every_head(model)

    def first(off: dict[str, list[int]]) -> tuple[str, Score]:
        with heads_off(off):
            return next(iter(measure().items()))

    name, whole = first({})
    losses = []
    for number, (site, head) in enumerate(heads, start=1):
        progress(number, len(heads) + 1)
        value = first({site: [head]})[1].value
        lost = whole.value - value if whole.higher else value - whole.value
        losses.append(HeadLoss(site, head, value, lost))
    progress(len(heads) + 1, len(heads) + 1)
    ranked = tuple(sorted(losses, key=lambda each: -each.lost))
    return Ranking(
        name, whole.value, whole.higher, whole.signature, ranked, whole.label or name, whole.digits
    )


def every_head(model: Any) -> list[tuple[str, int]]:
    """The name of the attention and the number of every head that can be switched off."""
    found = [(module.site.name, head) for module in attentions(model) for head in range(module.n_heads)]
    if not found:
        raise ModelError("this model has no attention heads to switch off")
    return found
