"""Two losses in one step: the discriminator's, then, once it has moved, the generator's.

    discriminator   max(0, 1 - D(real)) + max(0, 1 + D(drawn))
    generator       -D(drawn)                                       (Lim and Ye 2017)

Both losses are of the same drawings: the generator has not moved in between, so its pass is computed once.
Each learns at its own rate (Heusel et al. 2017), and with little momentum: what was right is not for long.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.gan import GanConfig
from regard.tasks.gan.augment import augmented
from regard.tasks.gan.pixels import as_numbers
from regard.training.objective import Group, Loss, Objective

BETAS = (0.5, 0.99)  # more momentum would push against an adversary that has moved on


@dataclass(frozen=True)
class PictureBatch:
    """Pictures (B, C, S, S) in bytes, and their labels (B,) if they have any."""

    pictures: Tensor
    labels: Tensor | None

    @property
    def targets(self) -> int:
        """Pictures."""
        return len(self.pictures)

    def to(self, device: torch.device | str) -> "PictureBatch":
        """The same on a device."""
        return PictureBatch(self.pictures.to(device), None if self.labels is None else self.labels.to(device))


class Adversaries(Objective):
    """A generator and a discriminator, one against the other."""

    sums_over, fills_with = "pictures", "picture"

    def __init__(self, how: GanConfig) -> None:
        self.how = how

    def groups(self, model: Any) -> Mapping[str, Group]:
        """Two rates."""
        return {
            "discriminator": Group(list(model.discriminator.parameters()), self.how.pace, betas=BETAS),
            "generator": Group(list(model.generator.parameters()), betas=BETAS),
        }

    def losses(self, model: Any, batch: PictureBatch) -> Iterator[Loss]:
        """The discriminator's, then the generator's; drawings are of the classes of the real pictures."""
        labels, kind = batch.labels, self.how.augment
        real = as_numbers(batch.pictures)
        drawn = model.make(torch.randn(len(real), model.noise, device=real.device), labels).float()
        shown = torch.cat([augmented(real, kind), augmented(drawn.detach(), kind)])
        twice = None if labels is None else torch.cat([labels, labels])
        true, false = model.judge(shown, twice, 2).float().chunk(2)
        yield Loss((F.relu(1 - true) + F.relu(1 + false)).sum(), "discriminator")
        with _fixed(model.discriminator):
            pleased = model.judge(augmented(drawn, kind), labels)
        yield Loss(-pleased.float().sum(), "generator")


class _fixed:  # noqa: N801
    """Inside, nothing is computed that the gradients of a part's weights would need."""

    def __init__(self, part: nn.Module) -> None:
        self.part = part

    def __enter__(self) -> None:
        self.part.requires_grad_(False)

    def __exit__(self, *_: object) -> None:
        self.part.requires_grad_(True)
