"""Positions on the embeddings against their formulas, and the property that made sinusoids the choice."""

import math

import pytest
import torch

from regard.attention.absolute import sinusoids, sinusoids_at
from regard.attention.positions import build_positions
from regard.config import PositionsConfig
from regard.errors import DataError


def test_sinusoids_are_the_papers_in_two_halves() -> None:
    table = sinusoids(7, 10)
    for place in range(7):
        for i in range(5):
            angle = place / 10000 ** (2 * i / 10)
            assert table[place, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[place, 5 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("shift", [1, 4, 19])
def test_a_shift_is_one_linear_map_for_every_place(shift: int) -> None:
    """p_{i+k} = T(k) p_i, where T(k) turns each (sin, cos) pair by k times its rate."""
    table, rates = sinusoids(120, 16), 10000.0 ** (-torch.arange(8) / 8)
    turn, lift = (shift * rates).cos().diag(), (shift * rates).sin().diag()
    linear = torch.cat([torch.cat([turn, -lift], 1), torch.cat([lift, turn], 1)])  # T(k) for rows
    torch.testing.assert_close(table[:-shift] @ linear, table[shift:], atol=1e-5, rtol=0)


def test_sinusoids_go_on_past_their_table() -> None:
    short, long = (
        build_positions(PositionsConfig("sinusoidal", 4), 6),
        build_positions(PositionsConfig("sinusoidal", 40), 6),
    )
    x = torch.randn(2, 11, 6)
    torch.testing.assert_close(short.embed(x, 3), long.embed(x, 3))


def test_sinusoids_of_any_whole_numbers_are_rows_of_the_table() -> None:
    places = torch.tensor([[3, 0], [7, 5]])
    torch.testing.assert_close(sinusoids_at(places, 10), sinusoids(8, 10)[places])


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_offset_continues_where_the_last_call_ended(kind: str) -> None:
    positions = build_positions(PositionsConfig(kind, 16), 6)
    x = torch.randn(2, 9, 6)
    pieces = torch.cat([positions.embed(x[:, :4]), positions.embed(x[:, 4:], 4)], 1)
    torch.testing.assert_close(pieces, positions.embed(x))


def test_learned_positions_end_with_a_clear_error() -> None:
    positions = build_positions(PositionsConfig("learned", 8), 6)
    with pytest.raises(DataError, match="9 tokens is longer than the 8 learned positions"):
        positions.embed(torch.randn(1, 2, 6), 7)
