"""What computes attention, one config word each (`attention.kind`): modules that answer one call.

    full   every query sees every key (`attend.py`)

A kernel has the signature of `attend`. `show` gives the same output with the weights, for the tape.
Before this file: `attend.py`; after it: `heads.py`.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from regard.attention.attend import attend, attend_readable
from regard.config import AttentionConfig


class Kernel(nn.Module):
    """Base of all kernels: full attention.

    `keep` is how many places a causal cache has to hold; None: all of them.
    """

    keep: int | None = None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        """What `attend` gives: (B, H, T, K_v); the options are those of `attend`."""
        return attend(q, k, v, **options)

    def show(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        """The same, and the weights (B, H, T, S) that made it."""
        return attend_readable(q, k, v, **options)


# `role` is "encoder", "decoder" or "cross": where the attention stands.
KERNELS: dict[str, Callable[[AttentionConfig, str], Kernel]] = {"full": lambda config, role: Kernel()}


def build_kernel(config: AttentionConfig, role: str) -> Kernel:
    """The kernel that the config names, for an attention in that role."""
    return KERNELS[config.kind](config, role)
