"""Asks a child process that may die, hang or lie (`probe.py`), and believes only what it proves."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PROBE = Path(__file__).with_name("probe.py")
# A busy machine can need a minute to load torch; a child that hangs costs this once.
LIMIT = 100.0  # seconds


def ask(
    who: str, names: Sequence[str], environment: Mapping[str, str], *, limit: float | None = None
) -> dict[str, list[str]]:
    """The words that the probe printed for each name that it came back from, whether they are right or not.

    The name at which the child ended counts as dead; those after it are tried in another child. OSError where
    no process may be started.
    """
    found: dict[str, list[str]] = {}
    waiting = list(names)
    deadline = time.monotonic() + (LIMIT if limit is None else limit)
    while waiting and time.monotonic() < deadline:
        lines = [line.split() for line in _run(who, waiting, environment, deadline).splitlines()]
        found |= {line[0]: line[1:] for line in lines if line and line[0] in waiting}
        waiting = [name for name in waiting if name not in found][1:]
    return found


def _run(who: str, names: Sequence[str], environment: Mapping[str, str], deadline: float) -> str:
    """What one child wrote before it ended."""
    command = [sys.executable, "-P", str(PROBE), who, *names]
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            command,
            env={**environment, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(deadline - time.monotonic(), 0.01),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace")
    return done.stdout.decode(errors="replace")
