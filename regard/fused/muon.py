"""A step of Muon for all matrices in one call: momentum, what makes it orthogonal, the move.

Torch takes a dozen calls a shape, writes every product to memory, and computes both halves of symmetric ones.
The loops multiply in bf16, on processors with dots of such pairs; where there are tiles, too, torch's own
products are faster. The twin is `Muon._move` in regard/training/optimizer.py, which decides when to take it.
"""

from collections.abc import Sequence
from ctypes import c_float

import torch
from torch import Tensor

from regard.fused.library import Move, Rounds, call_for, dots
from regard.process import machine

PANEL = 32  # of muon.inc: matrices have whole ones of rows and columns
WIDEST = 1024  # the smaller side of a matrix that one thread makes orthogonal by itself


def fits(weight: Tensor, cut: int) -> bool:
    """Whether the loops can move it, as `cut` matrices: shape and machine decide, so that processes agree."""
    rows, columns = weight.shape[0] // cut, weight.shape[1:].numel()
    whole = rows % PANEL == columns % PANEL == 0 and 0 < min(rows, columns) <= WIDEST
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous()
    return whole and plain and torch.is_autocast_enabled("cpu") and dots() and not machine.facts().tiles


class Moves:
    """What is moved in one call."""

    def __init__(self) -> None:
        self._moves: list[Move] = []
        self._held: list[Tensor] = []  # what they point to

    def add(
        self, weight: Tensor, grad: Tensor, past: Tensor, cut: int, *, fresh: float, keep: float, rate: float
    ) -> None:
        """A weight of `cut` matrices: weight <- keep weight - rate U V' of momentum and gradient."""
        rows, columns, grad = weight.shape[0] // cut, weight.shape[1:].numel(), grad.contiguous()
        self._held += [weight, grad, past]
        for step in range(0, weight.numel() * 4, rows * columns * 4):
            places = (x.data_ptr() + step for x in (weight, grad, past))
            self._moves.append(Move(*places, rows, columns, fresh, keep, rate))

    def __bool__(self) -> bool:
        return bool(self._moves)

    def make(self, rounds: Sequence[tuple[float, float, float]]) -> None:
        """All of them, the longest first, so that no thread waits long."""
        self._moves.sort(key=lambda each: -each.rows * each.columns * min(each.rows, each.columns))
        numbers = Rounds(*((c_float * len(rounds))(*each) for each in zip(*rounds, strict=True)))
        call_for("muon", self._moves, first=numbers)
