from pathlib import Path

import pytest

from regard.process.groups import read_memory_limit, read_quota


def tree(root: Path, files: dict[str, str]) -> Path:
    """A /proc and a /sys of one's own."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


SECOND = {"proc/self/cgroup": "0::/pod/box\n", "sys/fs/cgroup/pod/cpu.max": "150000 100000\n"}
FIRST = {"proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a/b\n0::/a\n"}
QUOTA = "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us"
PERIOD = "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        (SECOND, 1.5),
        (SECOND | {"sys/fs/cgroup/pod/box/cpu.max": "50000 100000\n"}, 0.5),
        (SECOND | {"sys/fs/cgroup/pod/box/cpu.max": "max 100000\n"}, 1.5),
        (SECOND | {"sys/fs/cgroup/pod/cpu.max": "what is this"}, None),
        ({"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        (FIRST | {QUOTA: "-1\n", PERIOD: "100000\n"}, None),
        (FIRST | {QUOTA: "250000\n", PERIOD: "100000\n"}, 2.5),
        (FIRST | {QUOTA: "250000\n"}, None),
        (FIRST | {QUOTA: "250000\n", PERIOD: "0\n"}, None),
        (
            {
                "proc/self/cgroup": "1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "70000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "10000",
            },
            7,
        ),
    ],
)
def test_the_tightest_group_on_the_way_to_the_root_counts(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    assert read_quota(tree(tmp_path, files)) == quota


MEMORY = "sys/fs/cgroup/memory/a/memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": "1073741824\n"}, 2**30),
        (FIRST | {MEMORY: "9223372036854771712\n"}, None),
        (FIRST | {MEMORY: "7000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9000\n"}, 7000),
    ],
)
def test_the_same_holds_for_memory(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    assert read_memory_limit(tree(tmp_path, files)) == limit
