"""Processes that train one model, for benchmarks: forked or under torchrun, on one host or on two."""

import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def forked(size: int, files: list[Path], out: Path, task: str, asked: Mapping[str, Any]) -> list[int]:
    """The exit codes of so many processes that train together; torch is loaded once for all."""
    from regard.tasks.train import train

    port, children = free_port(), []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in told.items()})
            os.environ["MASTER_ADDR"] = "127.0.0.1"
            code = 1
            try:
                train(*files, task=task, out=out, overrides=asked, quiet=True)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def command(files: Sequence[Path], out: Path, asked: Mapping[str, Any], *torchrun: str) -> list[str]:
    """`regard train`, under torchrun with these words if there are any."""
    words = [word for key, value in asked.items() for word in ("--set", f"{key}={value}")]
    start = [sys.executable, "-m", *(["torch.distributed.run", *torchrun, "-m"] if torchrun else [])]
    return [*start, "regard", "train", *map(str, files), "-o", str(out), *words]


def start(
    argv: Sequence[str], log: Path, space: int | None = None, core: int | None = None
) -> "subprocess.Popen[bytes]":
    """A process with one thread, in a network namespace if it is one of the two hosts, or on one core."""
    inside = [] if space is None else ["ip", "netns", "exec", f"regard{space}"]
    inside += [] if core is None else ["taskset", "-c", str(core)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    if space is not None:
        env["GLOO_SOCKET_IFNAME"] = f"regard{space}"
        env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else who comes back waits for a place told before
    with log.open("ab") as said:
        return subprocess.Popen([*inside, *argv], stdout=said, stderr=subprocess.STDOUT, env=env)


class Forked:
    """A process forked from this one; it is asked as `subprocess.Popen` is."""

    def __init__(self, work: Callable[[], None], log: Path) -> None:
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if ended else None
        return self.code

    def wait(self) -> int:
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


def supervised(files: Sequence[Path], out: Path, asked: Mapping[str, Any], size: int, log: Path) -> Forked:
    """So many processes under torchrun's own agent, which restarts them; they fork and load no torch anew."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from regard.tasks.train import train

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=size,
        run_id=out.name.replace(" ", "-"),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=3,
        start_method="fork",
    )

    def work() -> None:
        train(*files, task="translation", out=out, overrides=asked)

    return Forked(lambda: elastic_launch(config, work)(), log)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """A whole host at once."""
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    process.kill()
    process.wait()


def children(parent: int) -> list[int]:
    """The processes that one has started, as far as they still run."""
    try:
        words = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


@contextmanager
def two_hosts(rate: str = "") -> Iterator[None]:
    """Two network namespaces with a link between them, 10.77.0.1 and 10.77.0.2, as fast as `rate`."""

    def run(*words: str) -> None:
        subprocess.run(words, check=True)

    try:
        for host in "01":
            run("ip", "netns", "add", f"regard{host}")
        ends = ["regard0", "netns", "regard0", "type", "veth", "peer", "name", "regard1", "netns", "regard1"]
        run("ip", "link", "add", *ends)
        for host, address in zip("01", ("10.77.0.1/24", "10.77.0.2/24"), strict=True):
            name = f"regard{host}"
            run("ip", "-n", name, "addr", "add", address, "dev", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", name, "up")
            if rate:
                shape = ["tbf", "rate", rate, "burst", "1mb", "latency", "50ms"]
                run("tc", "-n", name, "qdisc", "add", "dev", name, "root", *shape)
        yield
    finally:
        for host in "01":
            subprocess.run(["ip", "netns", "del", f"regard{host}"], check=False)


def on_hosts(nodes: str, host: int) -> list[str]:
    """The words for torchrun on one of the two hosts."""
    conf = f"is_host={int(host == 0)},last_call_timeout=5"
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "10.77.0.1:29517", "--rdzv-conf", conf]
    place = ["--local-addr", f"10.77.0.{host + 1}", "--rdzv-id", "world", "--max-restarts", "5"]
    return ["--nnodes", nodes, "--nproc_per_node", "1", *meeting, *place]
