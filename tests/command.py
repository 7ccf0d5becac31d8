"""The command line as tests use it: as a process of its own, on small files that are learned in seconds."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
POSITIONS = 64  # of the small model: longer lines are refused

Run = Callable[..., subprocess.CompletedProcess[Any]]

# Training that ends in seconds; settings after these win.
QUICK = [
    *("--preset", "tiny", "--set", "train.max_steps=150", "--set", "train.lr=0.01"),
    *("--set", "model.d_model=32", "--set", "model.n_heads=2", "--set", "model.d_ff=64"),
    *("--set", "model.dropout=0.0", "--set", "train.optimizer=adam"),
    *("--set", "train.batch_tokens=512", "--set", "train.valid_every=150", "--set", "train.precision=fp32"),
]
# The settings of the small model that all tests share.
SMALL = [
    *(*QUICK, "--set", "positions.kind=learned"),
    *("--set", f"positions.max_length={POSITIONS}", "--set", f"data.max_length={POSITIONS}"),
]


def environment() -> dict[str, str]:
    """For a process of ours: the package of this checkout, one thread."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes started inside heed SIGINT and SIGHUP, also where who runs the tests ignores them (nohup)."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def command(*arguments: object) -> list[str]:
    """`regard` with these arguments, as a process is started with."""
    return [sys.executable, "-m", "regard", *map(str, arguments)]


def call(*arguments: object, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run `regard` with these arguments and wait for it; `options` are those of subprocess.run."""
    given: dict[str, Any] = {"text": True, "capture_output": True, "env": environment(), "timeout": 900}
    if "input" not in options and "stdin" not in options:
        given["stdin"] = subprocess.DEVNULL
    if "stdout" in options:
        given |= {"capture_output": False, "stderr": subprocess.PIPE}
    return subprocess.run(command(*arguments), **(given | options), check=False)


def complaint(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The one line that a failure prints; everything before it is no error."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    *before, last = done.stderr.splitlines()
    assert not any(line.startswith("regard:") for line in before)
    assert last.startswith("regard: error: ")
    return last.removeprefix("regard: error: ")


def letters(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Lines of spelled-out letters, and the same in capitals."""
    rng = random.Random(seed)
    lines = [" ".join(rng.choices("abcdefgh", k=rng.randint(1, 5))) for _ in range(count)]
    return lines, [line.upper() for line in lines]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path
