"""Embedding against its formula, and the tie between the way in and the way out."""

import torch

from regard.attention.positions import Positions, build_positions, sinusoids
from regard.config import PositionsConfig
from regard.layers import Embedding


def test_scaled_rows_plus_positions() -> None:
    layer = Embedding(17, 6, positions=build_positions(PositionsConfig("sinusoidal", 8), 6))
    ids = torch.tensor([[3, 5, 16], [0, 1, 2]])
    expected = layer.weight[ids] * 6**0.5 + sinusoids(3, 6, 2)
    torch.testing.assert_close(layer(ids, 2), expected)


def test_the_output_layer_is_the_same_matrix() -> None:
    layer = Embedding(17, 6, positions=Positions())
    hidden = torch.randn(2, 3, 6)
    torch.testing.assert_close(layer.project(hidden), hidden @ layer.weight.t())
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_embeddings_start_with_unit_size_after_scaling() -> None:
    torch.manual_seed(0)
    layer = Embedding(997, 64, positions=Positions())
    assert 0.9 < (layer.weight * 8).std().item() < 1.1
