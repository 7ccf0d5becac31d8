"""Pictures as bytes, as they are kept and shown, and as numbers from -1 to 1, as they are drawn."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


def as_numbers(pictures: Tensor) -> Tensor:
    """Bytes as numbers from -1 to 1."""
    return pictures.float() / 127.5 - 1


def as_bytes(pictures: Tensor) -> Tensor:
    """Numbers from -1 to 1 as bytes."""
    return ((pictures.float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
