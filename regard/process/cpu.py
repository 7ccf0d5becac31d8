"""What the system says of the processor. Flags are claims: `machine.py` finds out which of them hold."""

import functools
import os
import platform
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
SIMULATE = "REGARD_SIMULATE"  # for tests: tiles:die, and what else probe.py reads
TILES = frozenset({"amx_tile", "amx_bf16", "amx_int8"})


@dataclass(frozen=True)
class Processor:
    """One core as it describes itself."""

    name: str
    flags: frozenset[str]
    block: str  # all that it says and that does not change by the minute


@functools.cache
def processor() -> Processor:
    """The first core of the machine; the others are taken to be alike."""
    fields = dict(_fields())
    flags = frozenset((fields.get("flags") or fields.get("Features") or "").split())
    if os.environ.get(SIMULATE, "").startswith("tiles:"):
        flags |= TILES
    name = fields.get("model name") or platform.processor() or platform.machine()
    changing = ("cpu MHz", "bogomips", "BogoMIPS", "processor", "apicid", "initial apicid", "core id")
    lasting = sorted(f"{key}={value}" for key, value in fields.items() if key not in changing)
    return Processor(name, flags, "\n".join([platform.machine(), *lasting, " ".join(sorted(flags))]))


def advertises_tiles() -> bool:
    """Whether the processor claims to have AMX."""
    return "amx_tile" in processor().flags


def _fields() -> list[tuple[str, str]]:
    """The first block of /proc/cpuinfo; a large machine has hundreds, and each costs time."""
    found = []
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():
                    break
                key, _, value = line.partition(":")
                found.append((key.strip(), value.strip()))
    except OSError:
        return []
    return found
