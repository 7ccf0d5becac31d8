"""The beam as a tree: every continuation that a search considered, and what became of it.

A branch is one token after another branch. Of a step's candidates some go on, some end as outputs, the others
are dropped. The tree is that of the very search whose attention is shown. Before this file:
`regard.decoding.beam`; after it: `translated.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.decoding.beam import Round

MOST = 2000  # branches; in a larger tree those that were dropped at once are left out, or all


@dataclass(frozen=True)
class Branch:
    """One token that a search considered."""

    parent: int  # the branch that it goes on from; -1: the beginning
    piece: str
    total: float  # log p of everything up to it
    fate: str  # on, ended, cut (at the longest output allowed), dropped
    score: float | None = None  # of an output: log p / length ** length_penalty


def grow(rounds: Sequence[Round], tokenizer: Any, *, penalty: float, most: int = MOST) -> tuple[Branch, ...]:
    """The tree of a search for one sentence, parents before their branches; () where it is too large."""
    every = sum(len(each.candidates.total) for each in rounds) <= most
    branches: list[Branch] = []
    live = [-1]  # the branch of each row that goes on
    for length, each in enumerate(rounds, 1):
        tokens = each.candidates.ids[:, -1].tolist()
        pieces = tokenizer.shown(tokens, target=True)
        going = []
        for at, (parent, total) in enumerate(
            zip(each.candidates.parent.tolist(), each.candidates.total.tolist(), strict=True)
        ):
            output, stays = bool(each.output[at]), bool(each.stays[at])
            if not (output or stays or every):
                continue
            ended = "ended" if tokens[at] == tokenizer.end_id else "cut"
            fate = ended if output else "on" if stays else "dropped"
            score = total / length**penalty if output else None
            branches.append(Branch(live[parent], pieces[at], total, fate, score))
            if stays:
                going.append(len(branches) - 1)
        live = going
    return tuple(branches) if len(branches) <= most else ()


def path(branches: Sequence[Branch], leaf: int) -> list[int]:
    """The branches from the beginning to one of them."""
    found = []
    while leaf >= 0:
        found.append(leaf)
        leaf = branches[leaf].parent
    return found[::-1]
