"""Where an attention stands in a model, as a value: what looks at what, and whether at the past alone.

    Site("decoder", 3, "cross", queries="target", keys="source").name     decoder.3.cross

The tape and the heads that are switched off go by the name; whoever has to decide something asks the site.
Carried by `heads.py`; read by the kernels, the positions, `regard.look` and the server.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Site:
    """One attention of a model; a `stack` alone names one that stands by itself."""

    stack: str = "attention"  # encoder, decoder
    layer: int | None = None
    kind: str = "self"  # self: a sequence looks at itself; cross: at another one
    causal: bool = False  # no place looks at a later one
    queries: str = "source"  # whose places look: source, read (by a decoder), target (what it writes)
    keys: str = "source"  # and whose are looked at

    @property
    def name(self) -> str:
        """What the tape calls it."""
        return self.stack if self.layer is None else f"{self.stack}.{self.layer}.{self.kind}"

    @property
    def view(self) -> str:
        """What a person calls it: encoder, decoder or cross."""
        return "cross" if self.kind == "cross" else self.stack


ALONE = Site()


def reading(layer: int) -> Site:
    """A source that looks at itself."""
    return Site("encoder", layer)


def pooling() -> Site:
    """One query looks at all that was read."""
    return Site("pool", 0, "cross", queries="whole")


def writing(layer: int) -> Site:
    """What is written looks back at itself."""
    return Site("decoder", layer, causal=True, queries="read", keys="read")


def filling(layer: int) -> Site:
    """What is written at once looks at all of itself."""
    return Site("decoder", layer, queries="target", keys="target")


def finding(layer: int) -> Site:
    """Objects that are looked for see each other."""
    return Site("decoder", layer, queries="objects", keys="objects")


def crossing(layer: int) -> Site:
    """What is written looks at the source."""
    return Site("decoder", layer, "cross", queries="target")
