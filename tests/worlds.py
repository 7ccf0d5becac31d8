"""Several processes of `regard`, started as torchrun starts them, but forked: torch is loaded once for all.

As a script it reads a list of worlds from stdin, each the arguments of its processes, runs one after the
other, and writes what became of each process: its exit code and what it said. Arguments may begin with
variables of the process's own, `NAME=VALUE`.
"""

import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from command import environment


def run_worlds(worlds: Sequence[Sequence[Sequence[object]]], **more: str) -> list[list[dict[str, Any]]]:
    """For each world and process, its `code` and its `said`; `more` are variables of the environment."""
    asked = json.dumps([[[str(word) for word in argv] for argv in world] for world in worlds])
    done = subprocess.run(
        [sys.executable, __file__],
        input=asked,
        env=environment() | more,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def settings(asked: Mapping[str, object]) -> list[str]:
    """As words of a command."""
    return [word for key, value in asked.items() for word in ("--set", f"{key}={value}")]


def of_run(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The hash of a folder's weights, and metrics.jsonl without what the clock said."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    told = [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")} for line in lines]
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(), told


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def variables(rank: int, size: int, port: int) -> Mapping[str, str]:
    """What torchrun tells a process."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}


def _start(argv: Sequence[str], told: Mapping[str, str], said: int) -> int:
    """A child that runs the command; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        own = list(takewhile(lambda word: word != "train", argv))
        os.environ.update({**told, **dict(word.split("=", 1) for word in own)})
        from regard.cli.main import run

        code = run(argv[len(own) :])
    except SystemExit as leave:
        code = int(leave.code or 0)
    finally:
        os._exit(code)


def _run(world: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    port = free_port()
    files = [tempfile.TemporaryFile() for _ in world]  # noqa: SIM115
    children = [
        _start(argv, variables(rank, len(world), port), file.fileno())
        for rank, (argv, file) in enumerate(zip(world, files, strict=True))
    ]
    found = []
    for child, file in zip(children, files, strict=True):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        file.seek(0)
        found.append({"code": code, "said": file.read().decode(errors="replace")})
    return found


if __name__ == "__main__":
    import torch.distributed

    import regard.training.run

    worlds = json.load(sys.stdin)
    if any("train.shard=true" in argv for world in worlds for argv in world):
        import torch.distributed.checkpoint.hf_storage  # noqa: F401

        import regard.training.shards  # noqa: F401
    print(json.dumps([_run(world) for world in worlds]))
