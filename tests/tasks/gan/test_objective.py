"""The two losses against their formulas, whose weights they move, and that nothing is left behind."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.gan import GanConfig
from regard.tasks.gan.objective import Adversaries, PictureBatch
from regard.tasks.gan.pixels import as_bytes, as_numbers


class Plain(nn.Module):
    """Two products in the place of ladders."""

    noise = 3

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.discriminator = nn.Linear(3, 16), nn.Linear(16, 1)

    def make(self, noise: Tensor, labels: Tensor | None) -> Tensor:
        made: Tensor = self.generator(noise).tanh().view(-1, 1, 4, 4)
        return made

    def judge(self, pictures: Tensor, labels: Tensor | None, sets: int = 1) -> Tensor:
        found: Tensor = self.discriminator(pictures.flatten(1))[:, 0]
        return found


BATCH = PictureBatch(torch.arange(5 * 16, dtype=torch.uint8).view(5, 1, 4, 4), None)


def test_they_are_the_hinge() -> None:
    torch.manual_seed(1)
    model, objective = Plain(), Adversaries(GanConfig(augment="none"))
    torch.manual_seed(2)
    first, second = objective.losses(model, BATCH)
    torch.manual_seed(2)
    drawn = model.make(torch.randn(5, 3), None)
    real = model.judge(as_numbers(BATCH.pictures), None)
    wanted = (1 - real).clamp(min=0).sum() + (1 + model.judge(drawn, None)).clamp(min=0).sum()
    torch.testing.assert_close(first.total, wanted)
    torch.testing.assert_close(second.total, -model.judge(drawn, None).sum())
    assert (first.group, second.group) == ("discriminator", "generator")


def test_each_loss_moves_its_own_and_the_second_sees_the_first_moved() -> None:
    torch.manual_seed(1)
    model, objective = Plain(), Adversaries(GanConfig(augment="none"))
    losses = objective.losses(model, BATCH)
    first = next(losses)
    first.total.backward()
    assert model.generator.weight.grad is None
    assert model.discriminator.weight.grad is not None
    model.zero_grad()
    with torch.no_grad():
        model.discriminator.weight.mul_(-2)
    second = next(losses)
    second.total.backward()
    assert model.discriminator.weight.grad is None  # nothing is computed that nobody needs
    assert all(weight.requires_grad for weight in model.parameters())
    toward = F.linear(torch.ones(1, 1), model.discriminator.weight.T)
    assert torch.equal(model.generator.bias.grad.sign(), -toward[0].sign())


def test_two_rates_and_little_momentum() -> None:
    groups = Adversaries(GanConfig(pace=3.0)).groups(Plain())
    assert {name: group.lr for name, group in groups.items()} == {"discriminator": 3.0, "generator": 1.0}
    assert all(group.betas[0] <= 0.5 for group in groups.values())


def test_bytes_are_numbers_and_back() -> None:
    every = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(as_bytes(as_numbers(every)), every)
    assert float(as_numbers(every).min()) == -1
    assert float(as_numbers(every).max()) == 1
