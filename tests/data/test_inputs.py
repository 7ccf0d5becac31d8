"""Rows of unequal length as one batch: where padding stands, and what is real."""

import torch

from regard.data.inputs import Tokens, pad_prompts, pad_sources

END, PAD = 2, 0


def test_sources_are_padded_at_their_ends() -> None:
    found = pad_sources([[5, 6, END], [END], [7, END]])
    assert found.ids.tolist() == [[5, 6, END], [END, PAD, PAD], [7, END, PAD]]
    assert found.real.tolist() == [[True] * 3, [True, False, False], [True, True, False]]
    assert (found.ids.dtype, found.real.dtype) == (torch.int64, torch.bool)
    assert pad_sources([[5], [5, 5]], pad_id=9).ids.tolist() == [[5, 9], [5, 5]]


def test_no_sources() -> None:
    found = pad_sources([])
    assert found.ids.shape == found.real.shape == (0, 0)


def test_trees_end_past_the_sentence() -> None:
    found = pad_sources([[5, 6, END], [7, END]], heads=[[1, 2], [1]])
    assert found.heads is not None
    assert found.heads.tolist() == [[1, 2, 3], [1, 3, 3]]


def test_prompts_are_padded_in_front() -> None:
    found = pad_prompts([[5, 6, 7], [], [8]])
    assert found.ids.tolist() == [[5, 6, 7], [PAD] * 3, [PAD, PAD, 8]]
    assert found.real.tolist() == [[True] * 3, [False] * 3, [False, False, True]]
    assert found.contents() == [[5, 6, 7], [], [8]]
    assert pad_prompts([[5, 6], [7, 8]]).mask is None


def test_everything_moves() -> None:
    heads = torch.zeros(2, 3, dtype=torch.int64)
    moved = Tokens(heads, heads > 0, heads).to("meta")
    assert moved.mask is not None
    assert moved.heads is not None
    assert {moved.device.type, moved.mask.device.type, moved.heads.device.type} == {"meta"}
    assert len(moved) == 2
