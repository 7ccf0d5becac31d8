"""A look as plain values: the JSON that files, the page and the server speak (docs/look.md describes it).

Weights are rounded to four decimals, vectors to three. Before this file: `look.py`; after it: the page.
"""

import json
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.look.behaviour import behaviour
from regard.look.words import Side

if TYPE_CHECKING:
    from regard.look.look import Look
    from regard.look.maps import Map

FORMAT, VERSION = "regard-look", 1


def document(seen: "Look", *, vectors: bool = True) -> dict[str, Any]:
    """Everything that a look holds."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": seen.origin.name, "card": seen.origin.card},
        "text": seen.text,
        "translation": seen.translation,
        "score": round(seen.score, 4),
        "truncated": seen.truncated,
        "beam": seen.beam,
        "off": {name: sorted(heads) for name, heads in seen.off.items()},
        "sides": {
            "source": _side(seen.source),
            "target": {**_side(seen.target), "confidence": [round(p, 4) for p in seen.confidence]},
            "read": _side(seen.read),
        },
        "alignment": _alignment(seen),
        "maps": [_map(each, vectors=vectors) for each in seen.maps],
    }


def as_json(tree: dict[str, Any]) -> str:
    """The text of a JSON object, as short as it can be."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def rounded(tensor: Tensor, digits: int) -> list[Any]:
    """The numbers of a tensor in nested lists."""
    finite = tensor.double().nan_to_num(posinf=1e9, neginf=-1e9)  # JSON knows no infinity
    numbers: list[Any] = (finite.round(decimals=digits) + 0.0).tolist()  # and -0.0 is 0
    return numbers


def _side(side: Side) -> dict[str, Any]:
    words = [{"text": word.text, "first": word.first, "end": word.end} for word in side.words]
    special = [i for i, each in enumerate(side.special) if each]
    return {"tokens": list(side.tokens), "special": special, "words": words}


def _alignment(seen: "Look") -> dict[str, Any] | None:
    if not any(each.kind == "cross" for each in seen.maps):
        return None
    found = seen.alignment()
    return {"layer": found.layer, "pharaoh": str(found)}


def _map(one: "Map", *, vectors: bool) -> dict[str, Any]:
    queries, keys = one.sides
    walk = one.vectors if vectors else None
    score = one.score if walk is not None else None
    tree: dict[str, Any] = {
        "name": one.name,
        "kind": one.kind,
        "layer": one.layer,
        "queries": queries,
        "keys": keys,
        "heads": [_head(one, number, score) for number in range(len(one.weights))],
    }
    return tree if walk is None else {**tree, "score": score, "out": rounded(walk.out, 3)}


def _head(one: "Map", number: int, score: str | None) -> dict[str, Any]:
    weights = one.weights[number]
    habits = behaviour(weights)
    tree: dict[str, Any] = {
        "weights": rounded(weights, 4),
        "entropy": round(habits.entropy, 3),
        "behaviour": habits.kind,
        "shares": {place: round(share, 3) for place, share in habits.shares.items()},
    }
    if score is None or one.vectors is None:
        return tree
    walk = one.vectors
    tree |= {name: rounded(getattr(walk, name)[number], 3) for name in ("q", "k", "v")}
    if score == "other":
        tree["scores"] = rounded(walk.scores[number], 3)
    if walk.bias is not None:
        tree["bias"] = rounded(walk.bias[number], 3)
    return tree
