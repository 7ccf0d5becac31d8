"""Rotary positions against transformers' own, and the law that made them."""

import pytest
import torch

from regard.attention.rotary import Rotary
from regard.errors import UsageError

B, H, T, K = 2, 3, 7, 10


def test_equals_transformers() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    x, places = torch.randn(B, H, T, K), torch.arange(5, 5 + T)[None]
    rates = 10000.0 ** (-torch.arange(0, K, 2).float() / K)
    angles = torch.cat([places[..., None] * rates] * 2, -1)  # (1, T, K)
    expected, _ = llama.apply_rotary_pos_emb(x, x, angles.cos(), angles.sin())
    torch.testing.assert_close(Rotary(K, 64).turn(x, 5), expected, atol=1e-5, rtol=1e-5)


def test_each_pair_of_dimensions_is_turned_by_its_angle() -> None:
    x, turned = torch.randn(T, K), Rotary(K, 64)
    out = turned.turn(x[None, None], 3)[0, 0]
    for place in range(T):
        for m in range(K // 2):
            angle = torch.tensor((place + 3) * 10000.0 ** (-2 * m / K))
            pair = torch.stack([x[place, m], x[place, m + K // 2]])
            matrix = torch.stack(
                [torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])]
            )
            expected = matrix @ pair
            torch.testing.assert_close(out[place, [m, m + K // 2]], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shift", [1, 13, 900])
def test_scores_depend_on_the_distance_alone(shift: int) -> None:
    positions, q, k = Rotary(K, 1024), torch.randn(B, H, T, K), torch.randn(B, H, T, K)
    here = positions.turn(q) @ positions.turn(k).mT
    there = positions.turn(q, shift) @ positions.turn(k, shift).mT
    torch.testing.assert_close(here, there, atol=1e-4, rtol=1e-4)


def test_angles_go_on_past_the_table() -> None:
    x = torch.randn(B, H, T, K)
    torch.testing.assert_close(Rotary(K, 4).turn(x, 30), Rotary(K, 64).turn(x, 30))


def test_an_odd_width_has_no_pairs() -> None:
    with pytest.raises(UsageError, match=r"\(11\) must be even"):
        Rotary(11, 8)
