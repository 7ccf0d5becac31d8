"""Random dependency trees, as heads of tokens (`regard.attention.structural.Trees.of`)."""

import torch
from torch import Tensor


def random_heads(length: int, *, width: int | None = None, seed: int = 0) -> Tensor:
    """The heads (width,) of a sentence of `length` tokens, the end counted; padding after it."""
    random = torch.Generator().manual_seed(seed)
    width = width or length
    heads = torch.full((width,), width)
    order = torch.randperm(length - 1, generator=random).tolist()  # each hangs on one that came before it
    for number, token in enumerate(order):
        above = int(torch.randint(number + 1, (), generator=random))
        heads[token] = length - 1 if above == number else order[above]
    return heads
