"""The fast CPU runtime: a Transformer in packed weights, searched by compiled code."""

from regard.engine.engine import Engine

__all__ = ["Engine"]
