"""Killed by the system, not by an exception: the benchmark's own script, with few kills."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_kill_9_and_the_same_command_again_end_bit_for_bit_the_same() -> None:
    few = ["--kills", "4", "--per-run", "2", "--steps", "16", "--pairs", "150", "--dry"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "resume.py"), *few],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "4 kills" in done.stdout.splitlines()[-1]
