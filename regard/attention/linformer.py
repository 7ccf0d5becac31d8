"""Linformer: keys and values are projected along the length to `rank` rows, k' = E k and v' = F v.

Every query then attends to `rank` rows whatever the length, so the cost is T·rank (Wang et al. 2020, 4).
E and F have a column for each place up to `max_length`; a place that is padding has a key and a value of
zero, so it adds nothing. The sharing is the paper's: by all heads of a layer, by all layers (then E = F
too), or none. The projection is the kernel: its readable twin is this formula on ordinary attention.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.attend import attend, attend_readable
from regard.attention.kernel import Kernel, keys_seen
from regard.attention.linear import gaussian
from regard.attention.site import Site
from regard.config import AttentionConfig
from regard.errors import DataError, UsageError


class Linformer(Kernel):
    """`rank` rows made of up to `max_length` places; for encoders, as a row mixes all places."""

    def __init__(self, rank: int, max_length: int, *, share: str = "heads") -> None:
        super().__init__()
        if rank > max_length:
            raise UsageError(f"attention.rank ({rank}) must be at most attention.max_length ({max_length})")
        self.rank, self.max_length, self.share = rank, max_length, share
        self.tied = share == "layers"
        self._make(1)

    def fit(self, n_heads: int, name: str) -> None:
        if self.share == "none":
            self._make(n_heads)

    def _make(self, heads: int) -> None:
        """E and F (heads, rank, max_length), so that a mixture has the variance of what is mixed."""
        assert self.max_length is not None
        shape = (heads, self.rank, self.max_length)
        self.of_keys = gaussian(*shape)
        self.of_values = self.of_keys if self.tied else gaussian(*shape)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        k, v = self.project(k, v, options)
        return attend(q, k, v, score=options.get("score"), dropout=options.get("dropout", 0.0))

    def show(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        """The same with its weights (B, H, T, rank): they are of rows, and not of places."""
        k, v = self.project(k, v, options)
        return attend_readable(q, k, v, score=options.get("score"), dropout=options.get("dropout", 0.0))

    def project(self, k: Tensor, v: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, K) as (B, H, rank, K)."""
        if options.get("causal"):
            raise UsageError("attention.kind=linformer cannot be causal: a projected row mixes all places")
        if options.get("bias") is not None:
            raise UsageError(
                "attention.kind=linformer has no way for positions that add to the scores; "
                "use positions.kind=sinusoidal, learned or rotary"
            )
        length = k.shape[-2]
        if self.max_length is not None and length > self.max_length:
            raise DataError(
                f"a sequence of {length} tokens is longer than the {self.max_length} that this model "
                "projects (attention.max_length); shorten it, or train with a larger one"
            )
        real = keys_seen("linformer", options.get("mask"))
        if real is not None:
            k, v = (x.masked_fill(~real[:, None, :, None], 0.0) for x in (k, v))
        return _mix(self.of_keys, k), _mix(self.of_values, v)


def _mix(rows: Tensor, x: Tensor) -> Tensor:
    """rows (1 or H, rank, L), x (B, H, S, K) -> (B, H, rank, K)."""
    batch, heads, length, width = x.shape
    rows = rows[..., :length].to(x.dtype)
    if rows.shape[0] > 1:
        return torch.matmul(rows, x)  # (B, H, rank, K)
    # One product for all heads: they lie side by side in memory.
    mixed = torch.matmul(rows[0], x.transpose(1, 2).flatten(2))  # (B, rank, H K)
    return mixed.view(batch, -1, heads, width).transpose(1, 2)


def linformer(config: AttentionConfig, site: Site) -> Kernel:
    """The projection that the config asks for, where all places see each other."""
    if site.kind == "cross" or site.causal:
        return Kernel()
    return Linformer(config.rank, config.max_length, share=config.share)
