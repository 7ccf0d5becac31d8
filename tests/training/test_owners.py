"""Matrices with owners: all are dealt out, evenly, and whose they are does not decide what moves together."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from regard.training import optimizer
from regard.training.optimizer import Muon
from regard.training.owners import Owners
from regard.training.several import Several

shapes = st.lists(st.sampled_from([(3, 5), (5, 3), (7, 7), (2, 11)]), min_size=1, max_size=30)


@given(shapes, st.integers(2, 8))
def test_every_matrix_has_one_owner_and_pieces_stay_whole(sizes: list[Any], size: int) -> None:
    weights = [torch.nn.Parameter(torch.zeros(shape)) for shape in sizes]
    muon = Muon(weights, lr=0.1)
    before, optimizer.PIECE = optimizer.PIECE, 40  # two of the smaller ones at once
    try:
        every = [Owners(weights, [muon], Several(rank, size, rank)) for rank in range(size)]
        pieces = [{id(each) for each in piece} for piece in muon.pieces()]
    finally:
        optimizer.PIECE = before
    held = [id(each) for owners in every for each in owners.mine]
    assert sorted(held) == sorted(map(id, weights))
    for owners in every:
        mine = {id(each) for each in owners.mine}
        assert all(piece <= mine or not piece & mine for piece in pieces)
        assert owners.owner == every[0].owner
        assert owners.rest == []
    assert max(map(len, pieces)) <= 2
    loads = [sum(each.numel() * min(each.shape) for each in owners.mine) for owners in every]
    assert max(loads) - min(loads) <= 7 * 49


def test_pieces_move_as_one_stack_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(piece: int) -> list[torch.Tensor]:
        monkeypatch.setattr(optimizer, "PIECE", piece)
        random = torch.Generator().manual_seed(1)
        weights = [torch.nn.Parameter(torch.randn(6, 10, generator=random)) for _ in range(5)]
        for weight in weights:
            weight.grad = torch.randn(6, 10, generator=random)
        Muon(weights, lr=0.1).step()
        return weights

    for ours, theirs in zip(moved(120), moved(10_000), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_alone_everything_is_its_own(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path)
    (owners,) = trainer.owners.values()
    assert owners.muons == []
    assert len(owners.rest) == len(trainer.weights)
