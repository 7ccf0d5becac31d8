"""Multi-head attention: head_i = attend(x W_i^Q, m W_i^K, m W_i^V), joined, then W^O.

One module serves self-, masked and cross-attention: the caller hands in the keys and values, so
an encoder's are computed once and a decoder's are cached (Vaswani et al. 2017, 3.2.2). With fewer
key/value heads than heads, groups of heads share them (multi-query: Shazeer 2019; grouped: Ainslie
et al. 2023).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.kernel import Kernel
from regard.attention.linear import Linear
from regard.attention.positions import Positions
from regard.attention.record import Vectors, running_tape
from regard.attention.score import build_score
from regard.attention.site import ALONE, Site
from regard.attention.switch import off
from regard.errors import UsageError


class MultiHead(nn.Module):
    """H heads over D dimensions; the tape calls it by the name of its site."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        kv_heads: int = 0,
        site: Site = ALONE,
        kernel: Kernel | None = None,
        score: str = "scaled-dot",
        dropout: float = 0.0,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        if d_model % n_heads:
            raise UsageError(f"n_heads ({n_heads}) must divide d_model ({d_model})")
        self.kv_heads = kv_heads or n_heads
        if n_heads % self.kv_heads:
            raise UsageError(f"kv_heads ({kv_heads}) must divide n_heads ({n_heads})")
        self.site, self.n_heads, self.dropout = site, n_heads, dropout
        d_head = d_model // n_heads
        self.kernel = kernel or Kernel()
        self.kernel.fit(n_heads, site.name)
        self.score = build_score(score, n_heads, d_head)
        self.positions = positions or Positions()
        self.query = Linear(d_model, d_model)
        self.key_value = Linear(d_model, 2 * self.kv_heads * d_head)
        self.out = Linear(d_model, d_model)

    def keys_values(self, memory: Tensor, offset: int = 0, places: Any = None) -> KeyValue:
        """Keys and values of `memory` (B, S, D), whose first place is `offset`, for every head."""
        k, v = self.key_value(memory).chunk(2, -1)  # (B, S, D) each
        added = self.positions.add(memory, offset, places)
        if added is not None:  # W (m + p) = W m + W p
            k = k + F.linear(added, self.key_value.weight[: k.shape[-1]])
        k = self.positions.turn(_split(k, self.kv_heads), offset, places)
        return KeyValue(k, _split(v, self.kv_heads), offset)

    def forward(
        self,
        x: Tensor,
        seen: KeyValue,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        places: Any = None,
    ) -> Tensor:
        """x (B, T, D) looks at what is `seen`: (B, T, D). With `causal`, x is the last of what is seen.

        `places` is what the positions know beside the order: see `order.py`.
        """
        length = x.shape[1]
        first = seen.length - length if causal else 0  # the place of x among the keys
        added = self.positions.add(x, seen.start + first, places)
        q = self.query(x if added is None else x + added)
        q = self.positions.turn(_split(q, self.n_heads), seen.start + first, places)  # (B, H, T, K)
        k, v = self._shared(seen.k), self._shared(seen.v)
        options: dict[str, Any] = {
            "mask": mask,
            "causal": causal and length > 1,
            "bias": self.positions.bias(q, seen.length, first, places),
            "score": self.score,
            "dropout": self.dropout if self.training else 0.0,
        }
        tape = running_tape()
        if tape is None and not self.positions.needs_weights:
            gathered = self.kernel(q, k, v, **options)
        else:
            gathered, weights = self.kernel.show(q, k, v, **options)
            more = self.positions.gather(weights, first, places)
            gathered = gathered if more is None else gathered + more
            if tape is not None:
                tape.add(self.site, weights)
        joined = silence(gathered, self.site.name).transpose(1, 2).flatten(2)  # (B, T, D)
        out: Tensor = self.out(joined)
        if tape is not None and tape.wants_vectors:
            tape.explain(self.site, self._vectors(q, k, v, out, bias=options["bias"]))
        return out

    def draw(self) -> None:
        """Keys and values are two products, each drawn as one."""
        for part in self.key_value.weight.chunk(2):
            nn.init.xavier_uniform_(part)

    def _vectors(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor, *, bias: Tensor | None) -> Vectors:
        """The steps of one call, for the tape."""
        scores: Tensor = self.score(q, k)  # (B, H, T, S)
        added = None if bias is None else bias.expand_as(scores).detach()
        return Vectors(q.detach(), k.detach(), scores.detach(), v.detach(), out.detach(), added)

    def _shared(self, x: Tensor) -> Tensor:
        """Keys or values as every head sees them: (B, H, S, K)."""
        return x if self.kv_heads == self.n_heads else x.repeat_interleave(self.n_heads // self.kv_heads, 1)


def _split(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)  # (B, heads, T, K)


def silence(gathered: Tensor, name: str) -> Tensor:
    """What the heads of `name` gathered (B, H, T, K), with nothing from those that are switched off."""
    silent, heads = off(name), gathered.shape[1]
    if not silent:
        return gathered
    wrong = max(silent) if max(silent) >= heads else min(silent)
    if not 0 <= wrong < heads:
        raise UsageError(f"{name} has heads 0 to {heads - 1}, there is no head {wrong}")
    on = torch.tensor([head not in silent for head in range(heads)], device=gathered.device)
    return gathered.masked_fill(~on[:, None, None], 0.0)
