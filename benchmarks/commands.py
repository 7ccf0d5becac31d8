"""`regard` as a person runs it: one command and its output, its scores, what a training run tells."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AHEAD = re.compile(r"; about [^:]*: ([\d,]+) steps, ([\d.]+) epochs")

UNMOVED = "nothing was better than the model that it began with"


def regard(*words: object) -> str:
    """Run one `regard` command; its standard output."""
    command = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def scores(model: Path, *words: object) -> dict[str, Any]:
    """What `regard evaluate` finds on two files."""
    return dict(json.loads(regard("evaluate", "-m", model, *words, "--json")))


@dataclass(frozen=True)
class Told:
    """One training command from outside."""

    seconds: float  # everything included
    megabytes: float  # most resident memory
    ahead: tuple[int, float] | None  # steps and epochs that were foreseen
    better: bool  # than the model that it began with, as the run itself says


def trained(*words: object) -> Told:
    """Run `regard train`; what it says is passed on line by line."""
    began, ahead, better = time.perf_counter(), None, True
    command = [sys.executable, "-m", "regard", "train", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        sys.stderr.write(line)
        ahead = ahead or foreseen(line)
        better = better and UNMOVED not in line
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"training ended with status {status}")
    return Told(time.perf_counter() - began, usage.ru_maxrss / 1024, ahead, better)


def foreseen(line: str) -> tuple[int, float] | None:
    """Steps and epochs of the line that says what is ahead, and nothing of any other."""
    found = AHEAD.search(line)
    return (int(found[1].replace(",", "")), float(found[2])) if found else None
