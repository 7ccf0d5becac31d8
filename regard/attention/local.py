"""Truncated attention: each query sees the keys at most `window` places before it and `ahead` after it.

With a window w the cost is T·w instead of T². In a decoder the window looks back only, and a cache of
w + 1 places is enough. The twin is `band_mask` on ordinary attention (`show_dense`), which also computes
whatever is short. Child et al. 2019; Beltagy et al. 2020, 3.1. Computed by `blocks.py`.
"""

from typing import Any

from torch import Tensor

from regard.attention.attend import attend, attend_readable
from regard.attention.blocks import Plan, attend_blocks, show_blocks
from regard.attention.kernel import Kernel, keys_seen, short, without_bias
from regard.attention.masks import band_mask, join
from regard.attention.site import Site
from regard.attention.sparse import Part, SparseWeights
from regard.config import AttentionConfig

BLOCK = 64  # queries computed together; measured: docs/log.md


class Local(Kernel):
    """A window of `window` places to the left and, unless it looks back only, of `ahead` to the right."""

    windowed = True

    def __init__(self, window: int, *, back: bool = False, ahead: int | None = None) -> None:
        super().__init__()
        self.window, self.back = window, back
        self.ahead = 0 if back else window if ahead is None else ahead
        self.keep = window + 1 if back else None

    def mask(self, q: Tensor, k: Tensor, causal: bool) -> Tensor:
        """The twin: the band (T, S) that the window is."""
        after = 0 if causal else self.ahead
        return band_mask(q.shape[-2], k.shape[-2], self.window, after, q.device)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        if q.device.type == "cuda":
            from regard.attention.flex import attend_flex, band_rule

            after = 0 if options.get("causal") else self.ahead
            rule = band_rule(self.window, after, k.shape[-2] - q.shape[-2])
            return attend_flex(q, k, v, rule, dense=self.dense, **options)
        if self._whole(q, k):
            return attend(q, k, v, **options)
        if short(q, k):
            window = self.window, 0 if options.get("causal") else self.ahead
            return attend(q, k, v, window=window, **options)
        q, k = without_bias("local", q, k, options)
        plan = self._plan(q, k, options.get("causal", False))
        real = keys_seen("local", options.get("mask"))
        return attend_blocks(q, k, v, real=real, plan=plan, dropout=options.get("dropout", 0.0))

    def show(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Any]:
        """The same with its weights: (B, H, T, S) where that is short, else sparse ones."""
        if short(q, k) or self._whole(q, k):
            return self.dense(q, k, v, **options)
        out = self(q, k, v, **options)
        q, k = without_bias("local", q, k, options)
        plan = self._plan(q, k, options.get("causal", False))
        values, places = show_blocks(q, k, real=keys_seen("local", options.get("mask")), plan=plan)
        part = Part(0, values[:, :, : q.shape[-2]], places, BLOCK)
        return out, SparseWeights((part,), (*q.shape[:3], k.shape[-2]))

    def dense(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        """The twin: the window as a mask on ordinary attention; (output, weights (B, H, T, S))."""
        band = self.mask(q, k, options.get("causal", False))
        return attend_readable(q, k, v, **(options | {"mask": join(options.get("mask"), band)}))

    def _whole(self, q: Tensor, k: Tensor) -> bool:
        """Whether the window hides nothing that is not hidden anyway."""
        reach = min(self.window, self.window if q.shape[-2] == 1 else self.ahead)
        return k.shape[-2] <= reach + 1

    def _plan(self, q: Tensor, k: Tensor, causal: bool) -> Plan:
        after = 0 if causal else self.ahead
        left, right = (-(-reach // BLOCK) * BLOCK for reach in (self.window, after))
        return Plan(BLOCK, left, right, k.shape[-2] - q.shape[-2], (self.window, after))


def local(config: AttentionConfig, site: Site) -> Kernel:
    """The window that the config asks for; one that looks back only where the site does."""
    if site.kind == "cross":
        return Kernel()
    return Local(config.window, back=site.causal, ahead=None if config.ahead < 0 else config.ahead)
