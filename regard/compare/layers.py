"""The layers that are compared, each with what theory says of it (Vaswani et al. 2017, table 1).

Convolution and recurrence are torch's own, attention is ours with every kernel there is. Each maps
(B, L, d) to (B, L, d). `cost.py` times them, `reach.py` probes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.kernel import build_kernel
from regard.attention.site import reading
from regard.config import Config, merge
from regard.kinds import KERNELS

WINDOW = 3  # k, the width of the convolution
D_HEAD = 64  # as in the paper's models: more width is more heads, so that the softmax grows with d too


@dataclass(frozen=True)
class Theory:
    """A row of the table: orders as they are written, and the exponents of L and d."""

    cost: str
    length: float
    width: float
    sequential: str
    path: str


@dataclass(frozen=True)
class Contender:
    """A layer to compare. `theory` is None where nobody has written one down."""

    name: str
    theory: Theory | None
    build: Callable[[int], nn.Module]  # a layer of width d
    hops: Callable[[int, int], nn.Module]  # width d, n: what n layers, or n steps, make of their input
    causal: bool = False  # the past alone is seen, so only the past can be reached
    core: Callable[[int], Callable[[Tensor], Any]] | None = None  # attention without its projections
    batch: int = 1  # sequences that are timed together; the time is that of one


class Convolution(nn.Module):
    """Each place sees k of its neighbours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(width, width, WINDOW, padding="same")

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x.mT).mT
        return out


class DilatedConvolution(nn.Module):
    """Each place sees k places of its past, `dilation` apart; layers of growing dilation leave no gap."""

    def __init__(self, width: int, dilation: int = WINDOW) -> None:
        super().__init__()
        self.past = (WINDOW - 1) * dilation
        self.layer = nn.Conv1d(width, width, WINDOW, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(F.pad(x.mT, (self.past, 0))).mT
        return out


class Recurrence(nn.Module):
    """An LSTM: each place waits for the one before it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)[0]
        return out


class Steps(nn.Module):
    """What n steps of a recurrence know: output i is read from x_{i-n} to x_i, from an empty state on."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.layer = Recurrence(width)

    def forward(self, x: Tensor) -> Tensor:
        windows = F.pad(x, (0, 0, self.steps, 0)).unfold(1, self.steps + 1, 1)  # (B, L, d, n + 1)
        read = self.layer(windows.mT.flatten(0, 1))  # (B·L, n + 1, d)
        out: Tensor = read[:, -1].view_as(x)
        return out


class SelfAttention(nn.Module):
    """Every place looks at the places that its kernel shows it."""

    def __init__(self, width: int, kind: str, longest: int) -> None:
        super().__init__()
        longest = max(longest, Config().attention.max_length)
        config = merge(Config(), {"attention.kind": kind, "attention.max_length": longest})
        kernel = build_kernel(config.attention, reading(0))
        self.heads = MultiHead(width, heads_of(width), kernel=kernel)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.heads(x, self.heads.keys_values(x))
        return out

    def core(self, x: Tensor) -> Tensor:
        """The kernel alone, with x (B, L, d) as queries, keys and values."""
        heads = self.heads.n_heads
        q = x.view(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)  # (B, H, L, K)
        out: Tensor = self.heads.kernel(
            q, q, q, mask=None, causal=False, bias=None, score=self.heads.score, dropout=0.0
        )
        return out


def heads_of(width: int) -> int:
    """As many heads as there are whole D_HEAD in the width, at least one."""
    return max(1, width // D_HEAD) if width % max(1, width // D_HEAD) == 0 else 1


# What is known of the kernels; one that is not here is measured all the same.
_KERNELS = {
    "full": Theory("L² d", 2, 1, "1", "1"),
    "local": Theory("w L d", 1, 1, "1", "L / w"),
    "bigbird": Theory("(w + g + r) L d", 1, 1, "1", "1"),
    "linformer": Theory("k L d", 1, 1, "1", "1"),
}


def _stack(build: Callable[[int], nn.Module]) -> Callable[[int, int], nn.Module]:
    return lambda width, layers: nn.Sequential(*(build(width) for _ in range(layers)))


def _dilated(width: int, layers: int) -> nn.Module:
    return nn.Sequential(*(DilatedConvolution(width, WINDOW**i) for i in range(layers)))


def _attention(kind: str, longest: int) -> Contender:
    def build(width: int) -> SelfAttention:
        return SelfAttention(width, kind, longest)

    name = "self-attention" if kind == "full" else f"self-attention, {kind}"
    return Contender(name, _KERNELS.get(kind), build, _stack(build), core=lambda width: build(width).core)


def contenders(longest: int = 4096) -> list[Contender]:
    """Every layer there is to compare, for sequences up to `longest`: the paper's, then each other kernel."""
    convolution = Theory("k L d²", 1, 2, "1", "L / k")
    dilated = Theory("k L d²", 1, 2, "1", "log_k L")
    recurrence = Theory("L d²", 1, 2, "L", "L")
    return [
        Contender(f"convolution, k = {WINDOW}", convolution, Convolution, _stack(Convolution)),
        Contender("convolution, dilated", dilated, DilatedConvolution, _dilated, causal=True),
        # One sequence alone would time the memory: each step reads all weights, which outgrow the cache.
        Contender("recurrence", recurrence, Recurrence, Steps, causal=True, batch=32),
        *(_attention(kind, longest) for kind in KERNELS),
    ]
