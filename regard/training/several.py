"""Processes that torchrun started, met by torch.distributed: `World` in earnest (gloo on CPUs, NCCL on GPUs).

How they find each other, what they send, and what becomes of it when one of them fails or is gone.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from regard.errors import DivergedError, RegardError, StorageError, UsageError, error_line, shown
from regard.foreign import loads
from regard.training.world import R, T, World, told_number

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.training.sums import Node

PATIENCE = timedelta(hours=2)  # for a process that neither answers nor dies: preparing data takes long
MEETING = timedelta(minutes=10)  # for processes that are started
KNOCK = 2.0  # seconds, at the door of a meeting that may be over
_PLACE = "regard/place"


class Several(World):
    """One of several."""

    def __init__(self, rank: int, size: int, local: int) -> None:
        self.rank, self.size, self.local = rank, size, local

    def numbers(self, *values: float) -> list[list[float]]:
        import torch

        mine = torch.tensor(values, dtype=torch.float64)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        with reaching() as dist:
            dist.all_gather(found, mine)
        return [each.tolist() for each in found]

    def gather(self, value: Any) -> list[Any]:
        import torch

        text = b"" if value is None else json.dumps(value).encode()
        lengths = [int(length) for (length,) in self.numbers(len(text))]
        if not any(lengths):
            return [None] * self.size
        mine = torch.frombuffer(bytearray(text.ljust(max(lengths))), dtype=torch.uint8)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        with reaching() as dist:
            dist.all_gather(found, mine)
        texts = [each.numpy().tobytes()[:length] for each, length in zip(found, lengths, strict=True)]
        return [loads(text) if text else None for text in texts]

    def tell(self, value: Any, source: int = 0) -> Any:
        return self.gather(value if self.rank == source else None)[source]

    def done(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        with self.together():
            mine = [work(item) for item in items[self.rank :: self.size]]
        every = self.gather(mine)
        return [every[number % self.size][number // self.size] for number in range(len(items))]

    def tell_tensors(self, tensors: "Mapping[str, Tensor] | None", source: int = 0) -> "dict[str, Tensor]":
        import torch

        held = tensors or {}
        kinds = {name: [str(each.dtype).removeprefix("torch."), *each.shape] for name, each in held.items()}
        told: dict[str, Tensor] = {}
        for name, (kind, *shape) in self.tell(kinds, source).items():
            dtype = getattr(torch, kind)
            here = self.rank == source
            each = held[name].contiguous() if here else torch.empty(shape, dtype=dtype)
            if each.numel():
                with reaching() as dist:
                    dist.broadcast(each.view(-1).view(torch.uint8), source)
            told[name] = each
        return told

    def scattered(
        self,
        nodes: "Sequence[Node]",
        count: int,
        lengths: Sequence[int],
        device: "torch.device",
        kind: "torch.dtype | None" = None,
    ) -> "Tensor":
        """Each process is sent its part of every node, and joins them."""
        import torch

        from regard.training.sums import Node, fold, push, spans

        kind = kind or torch.float32
        flat = [value.to(kind) for node in nodes for value in node.values if value is not None]
        parts = zip(*(torch.split(value, list(lengths)) for value in flat), strict=True)
        sent = torch.cat([row for some in parts for row in some]) if flat else torch.empty(0, dtype=kind)
        every = [spans(part.start, part.stop) for part in (self.share(count, r) for r in range(self.size))]
        came = torch.empty(sum(map(len, every)), lengths[self.rank], device=device, dtype=kind)
        with reaching() as dist:
            dist.all_to_all_single(
                came.view(-1).view(torch.uint8),
                sent.to(device).view(torch.uint8),
                [len(each) * lengths[self.rank] * kind.itemsize for each in every],
                [len(flat) * length * kind.itemsize for length in lengths],
            )
        joined: list[Node] = []
        for (start, size), row in zip((each for spanned in every for each in spanned), came, strict=True):
            push(joined, Node(start, size, [row.float()]))
        (mine,) = fold(joined)
        assert mine is not None
        return mine

    def exchanged(self, sent: "Sequence[Tensor]", lengths: Sequence[int]) -> "list[Tensor]":
        import torch

        flat = torch.cat(list(sent))
        came = flat.new_empty(sum(lengths))
        with reaching() as dist:
            dist.all_to_all_single(came, flat, list(lengths), [len(each) for each in sent])
        return list(torch.split(came, list(lengths)))

    def gathered(
        self, mine: "Tensor", lengths: Sequence[int], kind: "torch.dtype | None" = None
    ) -> "list[Tensor]":
        import torch

        kind, longest = kind or mine.dtype, max(lengths)
        sent = torch.nn.functional.pad(mine, (0, longest - len(mine))).to(kind)
        whole = torch.empty(self.size, longest, device=mine.device, dtype=kind)
        with reaching() as dist:
            dist.all_gather(list(whole.view(torch.uint8).unbind(0)), sent.view(torch.uint8))
        return [row[:length].to(mine.dtype) for row, length in zip(whole, lengths, strict=True)]

    @contextmanager
    def together(self) -> Iterator[None]:
        problem: RegardError | OSError | None = None
        try:
            yield
        except (RegardError, OSError) as error:
            problem = error
        said = None if problem is None else [_code(problem), _words(problem)]
        found = self.gather(said)
        for rank, each in enumerate(found):
            if each is None:
                continue
            if not self.first:
                raise SystemExit(each[0])
            if problem is not None:
                raise problem
            raise _of_code(each[0], f"process {rank}: {each[1]}")

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        turn = 0 if self.first else 1 + (self.local > 0)
        for _ in range(turn):
            self.numbers(0)
        try:
            yield
        finally:
            for _ in range(3 - turn):
                self.numbers(0)

    def same(self, facts: Mapping[str, Any]) -> None:
        found = self.gather({"machine": socket.gethostname(), "facts": dict(facts)})
        with self.together():
            mine = found[0]["facts"]
            for rank, other in enumerate(found if self.first else []):
                for name in sorted(mine.keys() | other["facts"].keys()):
                    ours, theirs = mine.get(name), other["facts"].get(name)
                    if None not in (ours, theirs) and ours != theirs:
                        raise UsageError(
                            f"process {rank} on {other['machine']} has {name} {shown(theirs, 40)} where "
                            f"process 0 has {shown(ours, 40)}; every process must be started alike"
                        )


def _code(error: RegardError | OSError) -> int:
    return error.exit_code if isinstance(error, RegardError) else StorageError.exit_code


def _words(error: RegardError | OSError) -> str:
    return str(error) if isinstance(error, RegardError) else error_line(error)


def _of_code(code: int, message: str) -> RegardError:
    """The error of another process, as one of this."""
    kinds = {kind.exit_code: kind for kind in (RegardError, StorageError, DivergedError, UsageError)}
    return kinds.get(code, RegardError)(message)


@contextmanager
def reaching() -> Iterator[Any]:
    """torch.distributed; a process that cannot be reached any more is the network's failure."""
    import torch.distributed as dist

    try:
        yield dist
    except RuntimeError as error:
        raise StorageError(
            f"another process of this run is gone ({error_line(error)[:200]}); "
            "the same command goes on from the newest checkpoint"
        ) from error


def meet(size: int) -> World:
    """This process among the others, when all are there."""
    import torch.distributed as dist

    rank, _ = told_number("RANK"), told_number("MASTER_PORT")
    if rank >= size:
        raise UsageError(f"RANK ({rank}) must be below WORLD_SIZE ({size})")
    if not dist.is_available() or not dist.is_gloo_available():
        raise UsageError("this torch cannot train with several processes (torch.distributed with gloo)")
    if not dist.is_initialized():
        # Loaded once they have met, this would keep them as its defaults: their threads would outlive the
        # meeting, and abort a process that ends.
        import torch.distributed.nn.functional  # noqa: F401

        try:
            store = _met_anew(rank) if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else None
            dist.init_process_group(timeout=PATIENCE, store=store, rank=rank, world_size=size)
        except (RuntimeError, ValueError, OSError) as error:
            place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            raise StorageError(
                f"process {rank} cannot meet the others at {place}: {error_line(error)}"
            ) from error
    return Several(rank, size, int(os.environ.get("LOCAL_RANK", rank)))


def part(*, well: bool) -> None:
    """Leave the others; `well`, if nothing failed: on GPUs the one who leaves waits for all of them."""
    import torch
    import torch.distributed as dist

    if well or not torch.cuda.is_available():
        dist.destroy_process_group()
    if "torch.distributed.tensor" in sys.modules:
        from torch.distributed.tensor.debug import _clear_sharding_prop_cache

        # Weights were cut: what torch remembers of their shapes would keep the others, and their threads.
        _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]


def _met_anew(rank: int) -> Any:
    """A store of this start's own, for the one that torchrun lends lives on when processes are restarted.

    What the dead have left there would be taken for the living, and all would wait for ever. So process 0
    opens one that dies with it, and says there where it is; the others knock until they find it.
    """
    import torch.distributed as dist

    store: Any = dist.TCPStore  # type: ignore[attr-defined]
    host = os.environ["MASTER_ADDR"]
    lent = store(host, int(os.environ["MASTER_PORT"]), is_master=False, timeout=MEETING)
    if rank == 0:
        own = store(host, 0, is_master=True, wait_for_workers=False, timeout=MEETING)
        lent.set(_PLACE, str(own.port))
        return own
    until = time.monotonic() + MEETING.total_seconds()
    while True:
        port = int(lent.get(_PLACE))
        try:
            socket.create_connection((host, port), KNOCK).close()
            return store(host, port, is_master=False, timeout=MEETING)
        except (OSError, RuntimeError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
