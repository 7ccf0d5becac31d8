"""The moment before torch is loaded is the last at which it can be kept off instructions that die here.

`import regard` calls `watch`, whichever way torch then comes in: a verb, a script, a test, a child of ours.
Nothing is asked or read before that moment. Where the machine is not known yet, torch is loaded, then copies
of this process find out; nobody can use torch before that is done. Next: `machine.py`.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

LIBRARY = "torch"


class _Asking(Loader):
    """Loads as `loader` does, then asks; afterwards everything is as if there had been no such loader."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        from regard.process.machine import prepare_after

        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self.loader
        prepare_after(lambda: self.loader.exec_module(module))


class _Watch(MetaPathFinder):
    """Finds nothing itself; it is asked first."""

    def __init__(self) -> None:
        self.seen = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != LIBRARY or self.seen:
            return None
        self.seen = True  # what follows looks for torch, too
        from regard.process.machine import known, prepare
        from regard.process.survival import FORKS

        spec = None if known() or not FORKS else find_spec(LIBRARY)
        if spec is None or spec.loader is None:
            prepare()
            return None
        spec.loader = _Asking(spec.loader)
        return spec


def watch() -> None:
    """Prepare this process when torch is loaded; where it is, now, but without asking a child."""
    if LIBRARY in sys.modules:
        from regard.process.machine import prepare

        prepare(patient=False)
    else:
        sys.meta_path.insert(0, _Watch())
