"""Which heads matter: the BLEU lost on a test set when one head alone is switched off (Michel et al. 2019).

Each head costs one pass over the test set, so `limit` sentences are taken. Before this file:
`regard.attention.switch`, `regard.tasks.translation.evaluate`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.attention.switch import heads_off
from regard.errors import ModelError
from regard.look.trace import attentions
from regard.tasks.translation.evaluate import score
from regard.tasks.translation.translator import Translator


@dataclass(frozen=True)
class HeadLoss:
    """What one head is worth on a test set."""

    name: str  # of the attention, as on the tape
    head: int
    bleu: float  # with this head off
    lost: float  # BLEU with all heads minus that


@dataclass(frozen=True)
class Ranking:
    """Every head, the most needed first."""

    bleu: float  # with all heads
    signature: str
    sentences: int
    heads: tuple[HeadLoss, ...]


def rank_heads(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beam: int = 1,
    batch_size: int = 32,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranking:
    """Every head by the BLEU lost when it alone is off; `progress` hears how many passes are done."""
    heads = every_head(translator)

    def measure(off: dict[str, list[int]]) -> tuple[float, str]:
        with heads_off(off):
            found = score(translator, sources, references, beam=beam, batch_size=batch_size)
        return found.bleu, found.signature

    whole, signature = measure({})
    losses = []
    for number, (name, head) in enumerate(heads, start=1):
        progress(number, len(heads) + 1)
        bleu, _ = measure({name: [head]})
        losses.append(HeadLoss(name, head, bleu, whole - bleu))
    progress(len(heads) + 1, len(heads) + 1)
    ranked = sorted(losses, key=lambda each: -each.lost)
    return Ranking(whole, signature, len(sources), tuple(ranked))


def every_head(translator: Translator) -> list[tuple[str, int]]:
    """The name of the attention and the number of every head that can be switched off."""
    found = [
        (module.site.name, head) for module in attentions(translator.model) for head in range(module.n_heads)
    ]
    if not found:
        raise ModelError("this model has no attention heads to switch off")
    return found
