"""Machines that are not here: a probe that answers at once, and the ways in which one can fail to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.process import cpu, machine, survival

VARIABLES = (machine.ISA, machine.OLD_ISA, machine.MKL, machine.ATEN, machine.THREADS)

# The protocol of probe.py without its torch: right answers, and the faults of REGARD_SIMULATE.
QUICK = """
import sys
sys.path.insert(0, {home!r})
from probe import expected, misbehave

with open({heard!r}, "a") as file:
    print(*sys.argv[1:], file=file)
for name in sys.argv[2:]:
    if misbehave(name):
        continue
    numbers = expected() if sys.argv[1] == "torch" else [0]
    print(name, {{"fp32": 0.5, "bf16": 0.25}}.get(name, 0.0), *numbers, flush=True)
"""


class Bench:
    """A machine of a test: its cache, its probe, and what the probe was asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, monkeypatch
        self.cache = folder / "cache"
        self.heard = folder / "heard"
        self.probe(QUICK.format(home=str(survival.PROBE.parent), heard=str(self.heard)))
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        for name in (*VARIABLES, machine.OVERRIDE, machine.OURS, cpu.SIMULATE, "REGARD_ENGINE_PATH"):
            monkeypatch.setenv(name, "")  # so that it is put back
            monkeypatch.delenv(name)
        self.forget()

    def probe(self, text: str) -> None:
        """Another probe."""
        path = self.folder / "probe.py"
        path.write_text(text, encoding="utf-8")
        self.patch.setattr(survival, "PROBE", path)

    def simulate(self, what: str) -> None:
        self.patch.setenv(cpu.SIMULATE, what)
        self.forget()

    def forget(self) -> None:
        """What a new process does not know."""
        machine.facts.cache_clear()
        cpu.processor.cache_clear()

    def asked(self) -> list[str]:
        """The questions so far, one a child."""
        return sorted(self.heard.read_text(encoding="utf-8").splitlines()) if self.heard.exists() else []


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A machine whose cache and probe are the test's own."""
    made = Bench(tmp_path, monkeypatch)
    yield made
    monkeypatch.undo()
    made.forget()
