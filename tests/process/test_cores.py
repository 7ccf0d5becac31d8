import os
import shutil
import subprocess
import sys

import pytest
from command import environment

from regard.process.cores import Cores, count_cores


@pytest.mark.parametrize(
    ("cores", "usable"),
    [(Cores(8, 8, None), 8), (Cores(96, 96, 2.0), 2), (Cores(96, 3, 7.5), 3), (Cores(4, 4, 0.1), 1)],
)
def test_the_tighter_of_affinity_and_quota_counts(cores: Cores, usable: int) -> None:
    assert cores.usable == usable


def test_an_affinity_of_one_core_is_seen() -> None:
    code = "from regard.process import machine; print(machine.cores())"
    one = str(min(os.sched_getaffinity(0)))
    taskset = shutil.which("taskset")
    assert taskset, "taskset is part of util-linux"
    done = subprocess.run(
        [taskset, "-c", one, sys.executable, "-c", code], env=environment(), capture_output=True, text=True
    )
    assert done.stdout == "1\n", done.stderr
    assert 1 <= count_cores().usable <= count_cores().allowed <= count_cores().present
