"""How a model knows order, one config word each (`positions.kind`); attention alone ignores it.

    sinusoidal  sin and cos of geometric frequencies, added to the embeddings    `absolute.py`
    learned     one vector a place, added to the embeddings; has an end          `absolute.py`
    relative    a vector for each clipped distance, on keys and values           `relative.py`
    rotary      queries and keys turned by an angle that grows with the place    `rotary.py`
    alibi       a cost of distance on the scores, a slope a head                 `alibi.py`
    quadratic   a cost of the distance from an offset that each head learns      `quadratic.py`
    structural  depth and distance in a dependency tree of the source            `structural.py`
    none        nothing

A kind is a `Scheme`: what it does to the embeddings and what it does inside attention; `POSITIONS` has them
all (`regard.kinds`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from regard.attention.absolute import Learned, Sinusoidal, sinusoids
from regard.attention.alibi import Alibi
from regard.attention.order import Positions
from regard.attention.quadratic import Quadratic
from regard.attention.relative import Relative
from regard.attention.rotary import Rotary
from regard.attention.site import Site
from regard.attention.structural import Depth, Structural
from regard.config import PositionsConfig
from regard.errors import UsageError
from regard.kinds import POSITIONS


@dataclass(frozen=True)
class Scheme:
    """What a kind does, and where; None: nothing there."""

    added: Callable[[PositionsConfig, int], Positions] | None = None  # to embeddings of that width
    source: Callable[[PositionsConfig, int], Positions] | None = None  # to the source's alone, after that
    inside: Callable[[PositionsConfig, int, int], Positions] | None = None  # of attention: H heads of width K
    target: bool = True  # whether it is known of what is being written


def _sinusoidal(config: PositionsConfig, width: int) -> Positions:
    return Sinusoidal(width, config.max_length, config.base)


SINUSOIDAL = Scheme(added=_sinusoidal)
LEARNED = Scheme(added=lambda config, width: Learned(width, config.max_length))
RELATIVE = Scheme(inside=lambda config, n_heads, d_head: Relative(d_head, config.clip))
ROTARY = Scheme(inside=lambda config, n_heads, d_head: Rotary(d_head, config.max_length))
ALIBI = Scheme(inside=lambda config, n_heads, d_head: Alibi(n_heads))
QUADRATIC = Scheme(inside=lambda config, n_heads, d_head: Quadratic(n_heads))
STRUCTURAL = Scheme(
    added=_sinusoidal,
    source=lambda config, width: Depth(width),
    inside=lambda config, n_heads, d_head: Structural(d_head, config.clip),
    target=False,  # what is being written has no tree
)
NONE = Scheme()


def _scheme(kind: str) -> Scheme:
    found = POSITIONS[kind]
    if not isinstance(found, Scheme):
        raise UsageError(f"positions.kind={kind} is a {type(found).__name__}, not a Scheme")
    return found


def _checked(kind: str, made: object) -> Positions:
    if not isinstance(made, Positions):
        raise UsageError(f"positions.kind={kind} made a {type(made).__name__}, not Positions")
    return made


def build_positions(config: PositionsConfig, width: int) -> Positions:
    """What the kind does to embeddings of `width`."""
    added = _scheme(config.kind).added
    return Positions() if added is None else _checked(config.kind, added(config, width))


def build_source(config: PositionsConfig, width: int) -> Positions:
    """What the kind does to the source's embeddings alone, after that."""
    source = _scheme(config.kind).source
    return Positions() if source is None else _checked(config.kind, source(config, width))


def build_relations(config: PositionsConfig, site: Site, n_heads: int, d_head: int) -> Positions:
    """What the kind does inside the attention that stands there.

    Between two sequences there is no distance, so cross-attention has none.
    """
    scheme = _scheme(config.kind)
    if scheme.inside is None or site.kind == "cross" or (site.causal and not scheme.target):
        return Positions()
    return _checked(config.kind, scheme.inside(config, n_heads, d_head))


__all__ = ["Positions", "Scheme", "build_positions", "build_relations", "build_source", "sinusoids"]
