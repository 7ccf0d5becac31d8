import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import UsageError
from regard.process.lock import LOCK, locked

HOLDER = """
import sys, time
from pathlib import Path
from regard.process.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_trainer_is_told_who_is_at_work(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"is being trained by process {holder.pid}$"), locked(tmp_path):
            pass
        holder.kill()
        holder.wait()
    with locked(tmp_path):  # however its owner ended, the lock ended with it
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"


def test_the_lock_is_gone_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path):
            assert (tmp_path / LOCK).exists()
        assert not (tmp_path / LOCK).exists()


def test_one_process_does_not_lock_twice(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UsageError, match=str(os.getpid())), locked(tmp_path):
        pass
