"""How many cores this process may keep busy, and why: what the machine has, the affinity, the quota.

A container on a large machine often owns two cores of ninety-six; threads for all of them would wait for
each other. Before this file: `groups.py`, where the quota comes from.
"""

import math
import os
from dataclasses import dataclass

from regard.process.groups import read_quota


@dataclass(frozen=True)
class Cores:
    """What bounds the threads of this process; `quota` is None where no control group sets one."""

    present: int
    allowed: int  # by the affinity (taskset, cpusets)
    quota: float | None  # cores' worth of time

    @property
    def usable(self) -> int:
        """Threads that can run at the same time. Part of a core is a core: it does its part of the work.

        >>> Cores(present=8, allowed=4, quota=1.5).usable
        2
        """
        return self.allowed if self.quota is None else max(1, min(self.allowed, math.ceil(self.quota)))


def count_cores() -> Cores:
    """The cores of this process as it runs now."""
    present = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else present
    return Cores(present, allowed, read_quota())
