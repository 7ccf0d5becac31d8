"""The places of a sentence become one vector: their mean, the first of them, or the largest of each number.

    mean   Σ_s real_s h_s / Σ_s real_s       first   h_0       max   max_s h_s over the real places

Reimers & Gurevych 2019, section 3. Padding is never seen. After this file: `regard.tasks.embed`.
"""

from torch import Tensor

POOLINGS = ("mean", "first", "max")


def pool(hidden: Tensor, real: Tensor, word: str) -> Tensor:
    """hidden (B, S, D), real (B, S) -> (B, D)."""
    if word == "first":
        return hidden[:, 0]
    seen = real[..., None]  # (B, S, 1)
    if word == "max":
        return hidden.masked_fill(~seen, float("-inf")).amax(1)
    assert word == "mean", word
    return (hidden * seen).sum(1) / seen.sum(1)
