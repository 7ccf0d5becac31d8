"""ALiBi: a key costs more the further away it is, by a slope of the head's own (Press et al. 2022).

    score_ij -= m_h |i - j|,   m_h = 2^(-8h/H) for h = 1 ... H

Nothing is learned and nothing added to the embeddings, so it can be used past the training length. In the
encoder distance counts in both directions. Used by `heads.py` on the scores.
"""

import math
from typing import Any

import torch
from torch import Tensor

from regard.attention.order import Positions


def slopes(n_heads: int) -> list[float]:
    """The heads' slopes; where H is no power of two, those of the next smaller one and some between.

    >>> slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(n_heads))
    own = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2 ** (-4 * (head + 1) / power) for head in range(0, 2 * (n_heads - power), 2)]
    return own + between


class Alibi(Positions):
    """A linear cost of distance, one slope a head."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.register_buffer(
            "slopes", torch.tensor(slopes(n_heads), device="cpu")[:, None, None], persistent=False
        )

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        here = torch.arange(offset, offset + q.shape[-2], device=q.device)[:, None]  # (T, 1)
        distance = (here - torch.arange(keys, device=q.device)).abs()  # (T, S)
        slope: Tensor = self.slopes  # type: ignore[assignment]
        return (distance * -slope).to(q.dtype)[None]  # (1, H, T, S)
