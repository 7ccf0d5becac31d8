"""The generator that is tried."""

from drawing import generator, stripes  # noqa: F401  (fixtures)
