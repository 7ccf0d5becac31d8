"""Several processes that train one model: who takes which share of a step, and how they stay of one mind.

    torchrun --nproc_per_node 4 -m regard train ...

What one process would do is the plan; the others do parts of it (`step.py`) and sum them in an order that
does not depend on how many they are (`sums.py`). Process 0 decides, writes and speaks. Alone, all of this is
nothing, and nothing of torch.distributed is loaded.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from regard.errors import DivergedError, UsageError, shown
from regard.process.stopping import Stopped

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.training.sums import Node

T = TypeVar("T")
R = TypeVar("R")
_SAID = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells each process


class World:
    """The processes of a run; as it stands, one alone."""

    rank = 0
    size = 1
    local = 0  # its number on its machine

    @property
    def first(self) -> bool:
        """Whether it is the one that decides, writes and speaks."""
        return self.rank == 0

    def share(self, count: int, rank: int | None = None) -> range:
        """Which of `count` things are this process's, or another's; the first has one if there is one.

        >>> from regard.training.several import Several
        >>> [list(Several(rank, 3, rank).share(4)) for rank in range(3)]
        [[0, 1], [2], [3]]
        """
        rank = self.rank if rank is None else rank
        return range(-(-rank * count // self.size), -(-(rank + 1) * count // self.size))

    def numbers(self, *values: float) -> list[list[float]]:
        """What each process has, in order."""
        return [list(values)]

    def gather(self, value: Any) -> list[Any]:
        """What each process has, in order: anything that JSON can say."""
        return [value]

    def tell(self, value: Any, source: int = 0) -> Any:
        """What process 0 has, or another, for all."""
        return value

    def done(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """What `work` makes of each item, in order; the processes take them in turn.

        It must be something that JSON can say. What fails in one process fails in all.
        """
        return [work(item) for item in items]

    def tell_tensors(self, tensors: "Mapping[str, Tensor] | None", source: int = 0) -> "dict[str, Tensor]":
        """The same of tensors on the CPU by name; the others give None."""
        return dict(tensors or {})

    def scattered(
        self,
        nodes: "Sequence[Node]",
        count: int,
        lengths: Sequence[int],
        device: "torch.device",
        kind: "torch.dtype | None" = None,
    ) -> "Tensor":
        """This process's part of the sum of `count` leaves, whose nodes are one flat tensor each.

        The tensors are laid out in parts, one for each process, of these lengths; they travel as `kind`.
        """
        from regard.training.sums import fold

        (total,) = fold(nodes)
        assert total is not None
        return total

    def exchanged(self, sent: "Sequence[Tensor]", lengths: Sequence[int]) -> "list[Tensor]":
        """What each process has sent to this one, flat, of these lengths; `sent` has one for each."""
        return list(sent)

    def gathered(
        self, mine: "Tensor", lengths: Sequence[int], kind: "torch.dtype | None" = None
    ) -> "list[Tensor]":
        """The flat tensor of each process, of these lengths, as it comes out after the journey."""
        return [mine]

    @contextmanager
    def together(self) -> Iterator[None]:
        """What fails in one process inside the block fails in all, and process 0 says it."""
        yield

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Process 0 goes first, then one of each other machine, then the rest: they find what was made."""
        yield

    def same(self, facts: Mapping[str, Any]) -> None:
        """Refuse processes that do not agree on these; what one does not know (None) it takes from others."""


ALONE = World()


_here: World = ALONE


def here() -> World:
    """The world that this process is in."""
    return _here


def told_number(name: str) -> int:
    """A number that torchrun tells each process in its environment."""
    value = os.environ[name]
    if not value.isdecimal():
        raise UsageError(f"{name}={shown(value)} in the environment is no number; start it with torchrun")
    return int(value)


@contextmanager
def joined() -> Iterator[World]:
    """The processes that torchrun started, met inside the block; this one alone where it started none.

    What all of them fail at together, process 0 says alone. Inside another such block it is the same world.
    """
    global _here
    size = told_number("WORLD_SIZE") if all(name in os.environ for name in _SAID) else 1
    if size == 1 or _here is not ALONE:
        yield _here
        return
    from regard.training.several import meet, part

    _here = meet(size)
    well = False
    try:
        yield _here
        well = True
    except (Stopped, DivergedError) as error:  # decided together
        if _here.first:
            raise
        raise SystemExit(error.exit_code) from None
    finally:
        _here = ALONE
        part(well=well)
