"""The Transformer that writes at once into more places than it needs (CTC; Libovický and Helcl 2018).

The source is up-sampled: `model.upsample` places for each of its tokens, rounded up. Each of them says a
token, or nothing (the blank); what is said twice in a row is said once, and the blanks fall out. So the
length comes by itself. Before this file: `parallel.py`; written with by `regard.decoding.ctc`, taught by
`regard.training.ctc`.
"""

from typing import ClassVar

import torch
from torch import Tensor

from regard.config import Config
from regard.models.parallel import AtOnce, Read


class Ctc(AtOnce):
    """Every place of the up-sampled source says a token or nothing."""

    native = "encoder and decoder aligned"
    objective = "regard.training.ctc:Aligned"
    way = "regard.decoding.ctc:WAY"
    own: ClassVar[tuple[str, ...]] = ()

    def build_more(self, config: Config) -> None:
        """Nothing but a number; the positions of the source bound what is written too."""
        self.upsample = config.model.upsample

    def places(self, state: Read, unknown: int) -> tuple[Tensor, Tensor]:
        """Outputs of which nothing is known yet: ids (B, T), and where they are real (B, T)."""
        return canvas((state.lengths.double() * self.upsample).ceil().long(), unknown)


def canvas(lengths: Tensor, unknown: int) -> tuple[Tensor, Tensor]:
    """Rows of so many places (B,), all `unknown`: ids (B, T), and where they are real (B, T)."""
    real = torch.arange(int(lengths.max()), device=lengths.device) < lengths[:, None]
    return torch.full(real.shape, unknown, device=lengths.device), real


__all__ = ["Ctc", "canvas"]
