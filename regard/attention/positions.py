"""How a model knows order, one config word each (`positions.kind`); attention alone ignores it.

    sinusoidal  sin and cos of geometric frequencies, added to the embeddings    `absolute.py`
    learned     one vector a place, added to the embeddings; has an end          `absolute.py`
    relative    a vector for each clipped distance, on keys and values           `relative.py`
    rotary      queries and keys turned by an angle that grows with the place    `rotary.py`
    alibi       a cost of distance on the scores, a slope a head                 `alibi.py`
    structural  depth and distance in a dependency tree of the source            `structural.py`
    none        nothing

A kind is entered in two tables: what it does to the embeddings and what it does inside attention.
"""

from collections.abc import Callable

from regard.attention.absolute import Learned, Sinusoidal, sinusoids
from regard.attention.alibi import Alibi
from regard.attention.order import Positions
from regard.attention.relative import Relative
from regard.attention.rotary import Rotary
from regard.attention.structural import Depth, Structural
from regard.config import PositionsConfig

# On the embeddings: made for their width and the longest sequence.
POSITIONS: dict[str, Callable[[int, int], Positions]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "structural": Sinusoidal,
}

# Inside self-attention: made for H heads of width K.
RELATIONS: dict[str, Callable[[PositionsConfig, int, int], Positions]] = {
    "relative": lambda config, n_heads, d_head: Relative(d_head, config.clip),
    "rotary": lambda config, n_heads, d_head: Rotary(d_head, config.max_length),
    "alibi": lambda config, n_heads, d_head: Alibi(n_heads),
    "structural": lambda config, n_heads, d_head: Structural(d_head, config.clip),
}


def build_positions(kind: str, width: int, max_length: int) -> Positions:
    """What the kind does to embeddings of `width`."""
    return POSITIONS[kind](width, max_length) if kind in POSITIONS else Positions()


def build_source(kind: str, width: int) -> Positions:
    """What the kind does to the source's embeddings alone, after that."""
    return Depth(width) if kind == "structural" else Positions()


def build_relations(config: PositionsConfig, role: str, n_heads: int, d_head: int) -> Positions:
    """What the kind does inside an attention; role is "encoder", "decoder" or "cross".

    Between two sequences there is no distance, so cross-attention has none; the target has no tree.
    """
    unknown = role == "cross" or (role == "decoder" and config.kind == "structural")
    if unknown or config.kind not in RELATIONS:
        return Positions()
    return RELATIONS[config.kind](config, n_heads, d_head)


__all__ = [
    "POSITIONS",
    "RELATIONS",
    "Positions",
    "build_positions",
    "build_relations",
    "build_source",
    "sinusoids",
]
