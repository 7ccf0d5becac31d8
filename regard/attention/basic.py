"""Basic self-attention: the whole idea without a parameter, the first page of the story.

    e_ij = x_i·x_j,   a_ij = softmax over j,   out_i = Σ_j a_ij x_j

Each output is a mean of all inputs, weighted by how like they are. The weights of a row sum to 1; permuting
the inputs permutes the outputs, so order must come from somewhere else (`positions.py`). `attend.py` is the
same with queries, keys and values of their own.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import UsageError


def basic_weights(x: Tensor, similarity: str = "dot") -> Tensor:
    """How much each input looks at each: (..., T, D) -> (..., T, T); similarity is "dot" or "cosine".

    >>> basic_weights(torch.zeros(2, 3))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if similarity not in ("dot", "cosine"):
        raise UsageError(f"similarity ({similarity}) must be dot or cosine")
    like = F.normalize(x, dim=-1) if similarity == "cosine" else x
    return torch.matmul(like, like.transpose(-2, -1)).softmax(-1)


def basic_self_attention(x: Tensor, similarity: str = "dot") -> Tensor:
    """Every input as a mean of all inputs, the like ones most: (..., T, D) -> (..., T, D).

    >>> basic_self_attention(torch.tensor([[5.0, 0.0], [4.0, 0.0], [0.0, 5.0]])).round(decimals=1)
    tensor([[5., 0.],
            [5., 0.],
            [0., 5.]])
    """
    return torch.matmul(basic_weights(x, similarity), x)
