"""Products that stretch nothing: every matrix divided by its largest singular value (Miyato et al. 2018).

A discriminator whose every product has the norm 1 cannot be infinitely sure, and a generator can learn from
it. The singular value is followed by one step of the power iteration a forward pass in training; its two
vectors are buffers, so a run that goes on has them. Torch's own does it; here is what it is done to.
"""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


def bound(module: nn.Module | None) -> None:
    """Give every product and table beneath `module`, if there is one, the norm 1: all weights with rows.

    The last thing that is done to first weights.
    """
    parts = [] if module is None else list(module.modules())
    for part in [each for each in parts if getattr(each, "weight", torch.empty(0)).ndim > 1]:
        spectral_norm(part)


def largest(weight: torch.Tensor, rows: int = 0) -> float:
    """The largest singular value of a weight as a product sees it; `rows` is the axis that comes out."""
    matrix = weight.detach().movedim(rows, 0).flatten(1)
    return float(torch.linalg.matrix_norm(matrix, 2))
