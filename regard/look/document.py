"""A look as plain values: the JSON that files, the page and the server speak (docs/look.md describes it).

Weights are rounded to four decimals, vectors to three. Before this file: `look.py`; after it: the page.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor, tensor

from regard.look.behaviour import behaviour, examples
from regard.look.outlook import TEMPERATURES
from regard.look.words import Side, join_keys, join_queries

if TYPE_CHECKING:
    from regard.look.inside import Entered, Fed
    from regard.look.look import Look, Passed
    from regard.look.maps import Map
    from regard.look.tree import Branch

FORMAT, VERSION = "regard-look", 1


def document(seen: "Look", *, vectors: bool = True) -> dict[str, Any]:
    """Everything that a look holds."""
    named = {"translation": seen.answer} if seen.task == "translation" else {}
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": seen.origin.name, "card": seen.origin.card},
        "task": seen.task,
        "text": seen.text,
        "answer": seen.answer,
        **named,
        "given": seen.given,
        "score": round(seen.score, 4),
        "truncated": seen.truncated,
        "beam": seen.beam,
        "off": {name: sorted(heads) for name, heads in seen.off.items()},
        "sides": {name: _side(seen, name, side) for name, side in seen.sides.items()},
        "alignment": _alignment(seen),
        **({"passes": [_pass(each) for each in seen.passes]} if seen.passes else {}),
        **({"output": _output(seen)} if seen.outlook else {}),
        **({"tree": [_branch(each) for each in seen.tree]} if seen.tree else {}),
        **(_beside(seen) if vectors else {}),
        "maps": [_map(seen, each, vectors=vectors) for each in seen.maps],
    }


def _pass(one: "Passed") -> dict[str, Any]:
    return {
        "tokens": list(one.tokens),
        "written": list(one.written),
        "confidence": [round(each, 4) for each in one.confidence],
        "looked": None if one.looked is None else rounded(one.looked, 4),
    }


def _output(seen: "Look") -> dict[str, Any]:
    """What could have come next at each place, for every temperature."""
    places = [
        {
            "pieces": list(each.pieces),
            "logp": rounded(tensor(each.logp), 4),
            "rest": rounded(tensor(each.rest), 4),
        }
        for each in seen.outlook
    ]
    return {"temperatures": list(TEMPERATURES), "places": places}


def _branch(one: "Branch") -> dict[str, Any]:
    told = {"parent": one.parent, "piece": one.piece, "total": round(one.total, 4), "fate": one.fate}
    return told if one.score is None else told | {"score": round(one.score, 4)}


def _beside(seen: "Look") -> dict[str, Any]:
    """How pieces came in, and what the feed-forward parts did."""
    told: dict[str, Any] = {}
    if seen.entered:
        told["entered"] = {name: _entered(each) for name, each in seen.entered.items()}
    return told | ({"fed": [_fed(each) for each in seen.fed]} if seen.fed else {})


def _entered(one: "Entered") -> dict[str, Any]:
    return {
        "width": one.width,
        "dimensions": list(one.dimensions),
        "tokens": rounded(one.tokens, 3),
        "positions": None if one.positions is None else rounded(one.positions, 3),
        "alike": [[[piece, round(near, 3)] for piece, near in each] for each in one.alike],
    }


def _fed(one: "Fed") -> dict[str, Any]:
    return {
        "side": one.side,
        "layer": one.layer,
        "units": one.units,
        "active": rounded(one.active, 4),
        "moved": rounded(one.moved, 4),
        "strongest": [
            [
                {"unit": each.number, "value": round(each.value, 3), "writes": list(each.writes)}
                for each in place
            ]
            for place in one.strongest
        ],
    }


def as_json(tree: dict[str, Any]) -> str:
    """The text of a JSON object, as short as it can be."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def rounded(tensor: Tensor, digits: int) -> list[Any]:
    """The numbers of a tensor in nested lists."""
    finite = tensor.double().nan_to_num(posinf=1e9, neginf=-1e9)  # JSON knows no infinity
    numbers: list[Any] = (finite.round(decimals=digits) + 0.0).tolist()  # and -0.0 is 0
    return numbers


def _side(seen: "Look", name: str, side: Side) -> dict[str, Any]:
    title = seen.titles.get(name, name.capitalize())
    words = [{"text": word.text, "first": word.first, "end": word.end} for word in side.words]
    special = [i for i, each in enumerate(side.special) if each]
    edge = {"title": title, "tokens": list(side.tokens), "special": special, "words": words}
    return edge | _guesses(seen, name)


def _guesses(seen: "Look", name: str) -> dict[str, Any]:
    """How sure the model was of each piece of the target, and what else it thought of."""
    if name != "target":
        return {}
    return {
        "confidence": [round(guess.confidence, 4) for guess in seen.guesses],
        "runners": [[[piece, round(p, 4)] for piece, p in guess.runners] for guess in seen.guesses],
    }


def _alignment(seen: "Look") -> dict[str, Any] | None:
    if not any(each.kind == "cross" for each in seen.maps):
        return None
    found = seen.alignment()
    return {"layer": found.layer, "pharaoh": str(found)}


def _map(seen: "Look", one: "Map", *, vectors: bool) -> dict[str, Any]:
    queries, keys = one.sides
    walk = one.vectors if vectors else None
    score = one.score if walk is not None else None
    tree: dict[str, Any] = {
        "name": one.name,
        "kind": one.kind,
        "layer": one.layer,
        "queries": queries,
        "keys": keys,
        "causal": one.site.causal,
        "heads": [_head(one, number, score) | habits for number, habits in enumerate(_habits(seen, one))],
    }
    return tree if walk is None else {**tree, "score": score, "out": rounded(walk.out, 3)}


def _habits(seen: "Look", one: "Map") -> Iterator[dict[str, Any]]:
    """What each head does: in shares, and by the words that it looks at most sharply."""
    queries, keys = (seen.side(name) for name in one.sides)
    fits = one.weights.shape[2] == len(keys.tokens)  # not where keys were projected to rows
    joined = join_queries(join_keys(one.weights, keys.words), queries.words) if fits else None
    for number, weights in enumerate(one.weights):
        habits = behaviour(weights, queries.tokens, keys.tokens)
        found = () if joined is None else examples(joined[number], queries, keys)
        yield {
            "entropy": round(habits.entropy, 3),
            "behaviour": habits.kind,
            "shares": {place: round(share, 3) for place, share in habits.shares.items()},
            "examples": [[each.query, each.key, round(each.weight, 4)] for each in found],
        }


def _head(one: "Map", number: int, score: str | None) -> dict[str, Any]:
    tree: dict[str, Any] = {"weights": rounded(one.weights[number], 4)}
    if score is None or one.vectors is None:
        return tree
    walk = one.vectors
    tree |= {name: rounded(getattr(walk, name)[number], 3) for name in ("q", "k", "v")}
    if score == "other":
        tree["scores"] = rounded(walk.scores[number], 3)
    if walk.bias is not None:
        tree["bias"] = rounded(walk.bias[number], 3)
    return tree
