"""The fast CPU runtime: a Transformer in packed weights, searched by compiled code."""

from regard.engine.engine import Engine
from regard.engine.load import load

__all__ = ["Engine", "load"]
