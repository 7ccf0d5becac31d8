"""Products of norm 1: against the singular values themselves, in training and out of it."""

import pytest
import torch
from torch import nn

from regard.layers.bounded import bound, largest


def test_every_product_gets_the_norm_one_and_the_rest_is_left() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.ConvTranspose2d(5, 7, 4), nn.Linear(7, 11), nn.Embedding(5, 3), nn.LayerNorm(3)
    )
    gain = model[4].weight.detach().clone()
    bound(model)
    for _ in range(60):
        [part.weight for part in model[:4]]  # an access in training is a step of the power iteration
    norms = [largest(model[0].weight), largest(model[1].weight, rows=1), largest(model[2].weight)]
    assert norms == pytest.approx([1, 1, 1], abs=1e-3)
    assert largest(model[3].weight) == pytest.approx(1, abs=0.2)
    assert torch.equal(model[4].weight, gain)


def test_out_of_training_nothing_moves() -> None:
    torch.manual_seed(1)
    model = nn.Linear(5, 7)
    bound(model)
    model.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model(torch.randn(3, 5))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    model.train()(torch.randn(3, 5))
    assert not all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
