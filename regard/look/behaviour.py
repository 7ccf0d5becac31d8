"""What a head does, in a few numbers: how sharply it looks, at which place, and at which words.

    entropy   H_t = -Σ_j a_tj log2 a_tj, the mean over queries, in bits
    spread    H_t over that of even weights on what is seen: 0 one place, 1 all alike
    previous, next, same, first, last   mean weight on that place
    twin      mean weight on the same word elsewhere, over the queries that have one
    marks     mean weight on punctuation

The heads of a trained encoder often settle on one of these (Voita et al. 2019; Clark et al. 2019). What no
such habit explains is shown by its strongest examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.look.words import Side
from regard.text.normalise import SPACE_MARK

TYPICAL = 0.4  # a head that gives one place this much of its weight is named after it
EVEN = 0.75  # a head whose entropy is this share of the highest possible is spread
EXAMPLES = 2


@dataclass(frozen=True)
class Behaviour:
    """One head's habits."""

    kind: str  # previous, next, same, first, last, twin, marks, spread; or content, where none explains it
    entropy: float  # bits
    shares: dict[str, float]  # of the weight, on each place; and `spread`


@dataclass(frozen=True)
class Example:
    """A word that looks sharply at another."""

    query: str
    key: str
    weight: float


def behaviour(weights: Tensor, queries: Sequence[str] = (), keys: Sequence[str] = ()) -> Behaviour:
    """The habits of one head from its weights (T, S); rows that see nothing are left out.

    With the pieces at both edges it is also known which words are the same, and which are punctuation.

    >>> import torch
    >>> behaviour(torch.eye(5)).kind, behaviour(torch.full((5, 5), 0.2)).kind
    ('same', 'spread')
    """
    weights = weights.double()
    seeing = weights.sum(-1) > 0.5
    bits = -(weights.clamp(min=1e-12).log2() * weights).sum(-1)[seeing]  # (T',)
    visible = (weights > 0).sum(-1)[seeing].clamp(min=2).double().log2()
    shares = {
        "previous": _mean(weights.diagonal(-1)),
        "next": _mean(weights.diagonal(1)),
        "same": _mean(weights.diagonal()),
        "first": _mean(weights[seeing, 0]),
        "last": _mean(weights[seeing, -1]),
        **(_by_words(weights, queries, keys) if weights.shape == (len(queries), len(keys)) else {}),
        "spread": _mean(bits / visible),
    }
    return Behaviour(_named(shares), _mean(bits), shares)


def _by_words(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
    """The shares that the pieces (T,) and (S,) tell of; one that nothing could have is left out."""
    looking, seen = ([piece.strip(SPACE_MARK).casefold() for piece in side] for side in (queries, keys))
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys([*looking, *seen]))}
    rows, columns = (torch.tensor([numbers[piece] for piece in side]) for side in (looking, seen))
    words = torch.tensor([piece.isalnum() for piece in looking])
    twins = ((rows[:, None] == columns) & words[:, None]).fill_diagonal_(False)
    marks = torch.tensor([bool(piece) and not any(map(str.isalnum, piece)) for piece in seen])
    sees = (weights > 0) & twins
    has = sees.any(-1)
    return {
        **({"twin": _mean((weights * sees).sum(-1)[has])} if int(has.sum()) > 1 else {}),
        **({"marks": _mean(weights[:, marks].sum(-1))} if marks.any() else {}),
    }


def _named(shares: dict[str, float]) -> str:
    places = {place: share for place, share in shares.items() if place != "spread"}
    likeliest = max(places, key=places.__getitem__)
    if places[likeliest] >= TYPICAL:
        return likeliest
    return "spread" if shares["spread"] >= EVEN else "content"


def examples(joined: Tensor, queries: Side, keys: Side) -> tuple[Example, ...]:
    """The words that look most sharply at another, from weights (words, words): two at most, of unlike keys.

    Words that only say where they stand, a mark or an end, and a word that looks at itself, tell nothing.
    """
    if joined.shape != (len(queries.words), len(keys.words)):
        return ()
    speaks = [
        torch.tensor([any(map(str.isalnum, word.text)) for word in side.words]) for side in (queries, keys)
    ]
    plain = [~torch.tensor([side.special[word.first] for word in side.words]) for side in (queries, keys)]
    table = joined.double() * (speaks[0] & plain[0])[:, None] * (speaks[1] & plain[1])
    if queries is keys:
        table = table.clone().fill_diagonal_(0.0)
    found: list[Example] = []
    for _ in range(min(EXAMPLES, *table.shape)):
        row, column = divmod(int(table.argmax()), table.shape[1])
        if table[row, column] <= 0:
            break
        found.append(Example(queries.words[row].text, keys.words[column].text, float(table[row, column])))
        table[row], table[:, column] = 0.0, 0.0
    return tuple(found)


def _mean(numbers: Tensor) -> float:
    return float(numbers.mean()) if numbers.numel() else 0.0
