"""What the control groups of Linux (cgroup, versions 1 and 2) leave to this process: time and memory.

A container sees the whole machine and owns a part of it. What counts is the tightest bound on the way from
the process's own group to the root. Next: `cores.py`, `inventory.py`.
"""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
HOME = "sys/fs/cgroup"


def read_quota(root: Path | None = None) -> float | None:
    """Cores' worth of time; None where nothing bounds it. `root` is where /proc and /sys are."""
    found = []
    for version, folder in _groups("cpu", root or ROOT):
        if version == 1:  # a quota of -1 is none
            found.append(_ratio(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")))
        else:  # "max 100000" is none
            quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
            found.append(_ratio(quota, period))
    return min((quota for quota in found if quota is not None), default=None)


def read_memory_limit(root: Path | None = None) -> int | None:
    """Bytes; None where nothing bounds them. Version 1 writes a number larger than any machine for that."""
    found = []
    for version, folder in _groups("memory", root or ROOT):
        text = _text(folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")).strip()
        found += [int(text)] if text.isdecimal() and int(text) < 2**60 else []
    return min(found, default=None)


def _groups(controller: str, root: Path) -> Iterator[tuple[int, Path]]:
    """The folders of our groups for a controller and of those around them, with the version."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if (number, controllers) == ("0", ""):
            homes, version = ["", "unified"], 2
        elif controller in controllers.split(","):
            homes, version = [controllers, *controllers.split(",")], 1
        else:
            continue
        for home in dict.fromkeys(homes):
            for folder in _to_the_root(root / HOME / home, group):
                yield version, folder


def _to_the_root(home: Path, group: str) -> list[Path]:
    """The folders of a group and of those around it. A group outside of what we see has its root alone."""
    parts = [part for part in group.split("/") if part]
    if ".." in parts:
        return [home]
    return [home.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]


def _ratio(quota: str, period: str) -> float | None:
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
