"""What this machine has and does, as one tree: for `regard machine --json`, and as lines for people.

Before this file: `machine.py` (what runs), `speed.py` (how fast). What the engine adds is handed in: its room
comes later.
"""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from regard import __version__
from regard.process import machine
from regard.process.cores import Cores, count_cores
from regard.process.cpu import advertises_tiles, processor
from regard.process.groups import read_memory_limit
from regard.process.kind import kind

PACKAGES = ("torch", "numpy", "tokenizers", "safetensors")
NAMED = (
    "REGARD_",
    "ONEDNN_",
    "DNNL_",
    "MKL_",
    "ATEN_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "CT2_",
)  # variables that matter


def total_memory() -> int:
    """Bytes that this process may fill: the machine's or its control group's; 0 where nobody can say."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 0
    return min(there, read_memory_limit() or there)


def take_inventory(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, measured anew. `engine`: its path, the paths that run, its operations a second."""
    found = machine.find_out_again()
    import torch  # not before: it is held to what was found

    from regard.process import speed

    bounds = count_cores()
    products = {"fp32": speed.multiplications(torch.float32)}
    if found.bf16:
        products["bf16"] = speed.multiplications(torch.bfloat16)
    return {
        "kind": kind(),
        "processor": processor().name,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": {"usable": bounds.usable, "why": _why(bounds), **vars(bounds)},
        "threads": torch.get_num_threads(),
        "memory": {"bytes": total_memory(), "bytes_per_second": speed.bandwidth()},
        "tiles": "run" if found.tiles else "do not run" if advertises_tiles() else "not advertised",
        "bf16": found.bf16,
        "operations_per_second": products,
        "engine": dict(engine),
        "gpu": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "versions": {"regard": __version__, "python": platform.python_version(), **_versions()},
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(NAMED)},
    }


def _why(cores: Cores) -> str:
    """What bounds the threads."""
    parts = [f"the machine has {cores.present}"]
    parts += [f"affinity allows {cores.allowed}"] if cores.allowed < cores.present else []
    parts += [f"quota is {cores.quota:g}"] if cores.quota is not None else []
    return ", ".join(parts)


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def lines(tree: Mapping[str, Any]) -> list[str]:
    """The same for people: a name and what is known of it."""
    engine, memory, products = tree["engine"], tree["memory"], tree["operations_per_second"]
    rows = [
        ("machine", f"{tree['processor']} ({tree['kind']})"),
        ("system", tree["system"]),
        ("cores", f"{tree['cores']['usable']} ({tree['cores']['why']}); {tree['threads']} threads"),
        (
            "memory",
            f"{memory['bytes'] / 2**30:.1f} GiB, copied at {memory['bytes_per_second'] / 1e9:.1f} GB/s",
        ),
        (
            "products",
            ", ".join(f"{name} {rate / 1e9:,.0f}" for name, rate in products.items()) + " GFLOP/s (torch)",
        ),
        ("bf16", "right" if tree["bf16"] else "not right or not alive: never used"),
        ("tiles", tree["tiles"] + (" (AMX)" if tree["tiles"] == "run" else "")),
        ("engine", _engine(engine)),
        ("GPU", ", ".join(tree["gpu"]) or "none"),
        ("versions", ", ".join(f"{name} {each}" for name, each in tree["versions"].items())),
    ]
    rows += [("set", f"{name}={value}") for name, value in tree["environment"].items()]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _engine(engine: Mapping[str, Any]) -> str:
    if engine.get("missing"):
        return f"not there: {engine['missing']}"
    others = [name for name in engine["runs"] if name != engine["path"]]
    rates = ", ".join(f"{name} {rate / 1e9:,.0f}" for name, rate in engine["operations_per_second"].items())
    return f"{engine['path']} ({rates} GFLOP/s)" + (f"; {', '.join(others)} run too" if others else "")
