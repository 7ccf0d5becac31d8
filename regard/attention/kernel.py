"""What computes attention, one config word each (`attention.kind`): modules that answer one call.

    full       every query sees every key (`attend.py`)
    local      the keys within a window (`local.py`)
    bigbird    a window, some global and some random blocks (`bigbird.py`)
    linformer  a fixed number of mixtures of the keys (`linformer.py`)

A kernel has the signature of `attend`. `show` gives the same output with the weights, for the tape.
Before this file: `attend.py`; after it: `heads.py`.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from regard.attention.attend import attend, attend_readable
from regard.attention.score import Dot
from regard.attention.site import Site
from regard.config import AttentionConfig
from regard.errors import UsageError
from regard.kinds import KERNELS

SHORT = 512  # up to this many queries and keys a mask on ordinary attention costs less than blocks


class Kernel(nn.Module):
    """Base of all kernels: full attention.

    `keep` is how many places a causal cache has to hold; None: all of them. `max_length` is the longest
    sequence of keys; None: any. `tied` says that all layers of a stack share one set of weights, `windowed`
    that a place sees `window` places before it and `ahead` after it, and no others.
    """

    native = "full"
    keep: int | None = None
    max_length: int | None = None
    tied = False
    windowed = False

    def fit(self, n_heads: int, name: str) -> None:
        """Told once by the attention it is built into, before any weight is drawn or loaded."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        """What `attend` gives: (B, H, T, K_v); the options are those of `attend`."""
        return attend(q, k, v, **options)

    def show(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Any]:
        """The same, and the weights (B, H, T, S) that made it; sparse ones where T × S is too much."""
        return attend_readable(q, k, v, **options)


def full(config: AttentionConfig, site: Site) -> Kernel:
    """Every query sees every key."""
    return Kernel()


def build_kernel(config: AttentionConfig, site: Site) -> Kernel:
    """The kernel that the config names, for an attention that stands there.

    Cross-attention is full: its queries are few. So is a decoder's own with BigBird and Linformer, which both
    mix in the future: the one by its global blocks, the other by its projection along the length.
    """
    made = KERNELS[config.kind](config, site)
    if not isinstance(made, Kernel):
        raise UsageError(f"attention.kind={config.kind} made a {type(made).__name__}, not a Kernel")
    return made


def tie(kernels: Sequence[Kernel]) -> None:
    """Let the kernels of a stack of layers share the weights of the first one where they are meant to."""
    for kernel in kernels[1:]:
        if kernel.tied:
            for name in dict(kernel.named_parameters(recurse=False, remove_duplicate=False)):
                setattr(kernel, name, getattr(kernels[0], name))


def short(q: Tensor, k: Tensor) -> bool:
    """Whether a mask on ordinary attention is the quicker way."""
    return max(q.shape[-2], k.shape[-2]) <= SHORT


def without_bias(kind: str, q: Tensor, k: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Queries and keys whose product is the score; refuses what would need T × S numbers."""
    if options.get("bias") is not None:
        raise UsageError(
            f"attention.kind={kind} has no way for positions that add to the scores of {k.shape[-2]} keys "
            f"(at most {SHORT}); use positions.kind=sinusoidal, learned or rotary"
        )
    factors = (options.get("score") or Dot(q.shape[-1] ** -0.5)).factors(q, k)
    if factors is None:
        raise UsageError(
            f"attention.kind={kind} needs a score that is a product for {k.shape[-2]} keys "
            f"(at most {SHORT}); use attention.score=scaled-dot, dot, cosine or general"
        )
    return factors[0], factors[1]


def keys_seen(kind: str, mask: Tensor | None) -> Tensor | None:
    """A padding mask (B, 1, 1, S) as (B, S)."""
    if mask is None:
        return None
    if mask.dim() != 4 or mask.shape[1:3] != (1, 1):
        shape = "x".join(str(size) for size in mask.shape)
        raise UsageError(f"attention.kind={kind} takes a mask of keys (B, 1, 1, S), not one of {shape}")
    return mask[:, 0, 0]
