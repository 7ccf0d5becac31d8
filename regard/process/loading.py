"""The moment before torch is loaded is the last at which it can be kept off instructions that die here.

`import regard` calls `watch`, whichever way torch then comes in: a verb, a script, a test, a child of ours.
Nothing is asked or read before that moment. Next: `machine.py`.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

LIBRARY = "torch"


class _Watch(MetaPathFinder):
    """Finds nothing itself; it is asked first."""

    def __init__(self) -> None:
        self.seen = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == LIBRARY and not self.seen:
            self.seen = True  # what follows looks for torch, too
            from regard.process.machine import prepare

            prepare()
        return None


def watch() -> None:
    """Prepare this process when torch is loaded; where it is, now, but without asking a child."""
    if LIBRARY in sys.modules:
        from regard.process.machine import prepare

        prepare(patient=False)
    else:
        sys.meta_path.insert(0, _Watch())
