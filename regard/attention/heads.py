"""Multi-head attention: head_i = attend(x W_i^Q, m W_i^K, m W_i^V), joined, then W^O.

One module serves self-, masked and cross-attention: the caller hands in the keys and values, so
an encoder's are computed once and a decoder's are cached (Vaswani et al. 2017, 3.2.2).
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from regard.attention.attend import attend, attend_readable
from regard.attention.cache import KeyValue
from regard.attention.positions import Positions
from regard.attention.record import running_tape
from regard.attention.score import build_score
from regard.errors import UsageError

# What answers `attention.kind`: kernels of one signature, that of `attend`.
KERNELS: dict[str, Callable[..., Tensor]] = {"full": attend}


class MultiHead(nn.Module):
    """H heads over D dimensions; `name` is what the tape calls it."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        name: str = "attention",
        kind: str = "full",
        score: str = "scaled-dot",
        dropout: float = 0.0,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        if d_model % n_heads:
            raise UsageError(f"n_heads ({n_heads}) must divide d_model ({d_model})")
        self.name, self.n_heads, self.dropout = name, n_heads, dropout
        self.kernel = KERNELS[kind]
        self.score = build_score(score, d_model // n_heads)
        self.positions = positions or Positions()
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def keys_values(self, memory: Tensor) -> KeyValue:
        """Keys and values of `memory` (B, S, D) for every head."""
        k, v = self.key_value(memory).chunk(2, -1)  # (B, S, D) each
        return KeyValue(self._split(k), self._split(v))

    def forward(
        self, x: Tensor, seen: KeyValue, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """x (B, T, D) looks at what is `seen`: (B, T, D)."""
        q = self._split(self.query(x))  # (B, H, T, K)
        bias = self.positions.bias(q, seen.length, seen.length - x.shape[1] if causal else 0)
        options: dict[str, Any] = {
            "mask": mask,
            "causal": causal and x.shape[1] > 1,
            "bias": bias,
            "score": self.score,
            "dropout": self.dropout if self.training else 0.0,
        }
        tape = running_tape()
        if tape is None:
            gathered = self.kernel(q, seen.k, seen.v, **options)
        else:
            gathered, weights = attend_readable(q, seen.k, seen.v, **options)
            tape.add(self.name, weights)
        joined = gathered.transpose(1, 2).flatten(2)  # (B, T, D)
        out: Tensor = self.out(joined)
        return out

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.n_heads, x.shape[2] // self.n_heads).transpose(1, 2)  # (B, H, T, K)
