"""Muon against the singular value decomposition; every parameter moved by exactly one optimiser."""

import pytest
import torch
from torch import nn

from regard.config import REPLACED, Config, TrainConfig, merge
from regard.layers.convolution import GatedConvolution
from regard.layers.recurrent import LSTM, LSTMCell
from regard.models import build
from regard.training.optimizer import Muon, build_optimizers, orthogonalise


@pytest.mark.parametrize("shape", [(2, 5, 11), (3, 11, 5), (2, 5, 7), (2, 7, 5), (1, 7, 7)])
def test_orthogonalise_keeps_the_directions_and_levels_the_sizes(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(shape)
    for before, after in zip(matrices, orthogonalise(matrices), strict=True):
        u, _, v = torch.linalg.svd(before, full_matrices=False)
        inside = u.t() @ after @ v.t()  # diagonal if the singular vectors are kept
        sizes = inside.diagonal()
        assert (inside - sizes.diag()).abs().max() < 1e-3
        assert sizes.min() > 0.6
        assert sizes.max() < 1.3


def test_under_autocast_the_products_are_bf16_and_the_moves_are_not() -> None:
    torch.manual_seed(0)
    for shape in ((3, 31, 17), (2, 17, 71), (2, 17, 17)):
        matrices = torch.randn(shape)
        exact = orthogonalise(matrices)
        with torch.autocast("cpu", torch.bfloat16):
            rough = orthogonalise(matrices)
        assert rough.dtype == torch.float32
        assert 0 < (rough - exact).norm() < 0.05 * exact.norm()


def test_a_muon_step_is_the_formula() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(5, 11))
    start, optimizer = weight.detach().clone(), Muon([weight], lr=0.1, momentum=0.9, weight_decay=0.5)
    past = torch.zeros(5, 11)
    for _ in range(3):
        weight.grad = torch.randn(5, 11)
        past = 0.9 * past + 0.1 * weight.grad
        ahead = 0.1 * weight.grad + 0.9 * past
        start = start * (1 - 0.1 * 0.5) - 0.1 * 0.2 * 11**0.5 * orthogonalise(ahead[None])[0]
        optimizer.step()
        torch.testing.assert_close(weight.detach(), start, atol=1e-5, rtol=1e-4)


def test_matrices_of_one_shape_do_not_mix() -> None:
    torch.manual_seed(0)
    pair = [nn.Parameter(torch.randn(5, 7)) for _ in range(2)]
    alone = nn.Parameter(pair[1].detach().clone())
    for weight in pair:
        weight.grad = torch.randn(5, 7)
    alone.grad = pair[1].grad.clone() if pair[1].grad is not None else None
    Muon(pair, lr=0.1).step()
    Muon([alone], lr=0.1).step()
    torch.testing.assert_close(pair[1], alone)


def test_a_cut_parameter_moves_as_the_matrices_in_it() -> None:
    """A convolution's (2D, D, k) as two of (D, D · k)."""
    torch.manual_seed(0)
    whole = nn.Parameter(torch.randn(6, 5, 2))
    halves = [nn.Parameter(half.detach().clone()) for half in whole.flatten(1).chunk(2)]
    whole.grad = torch.randn(6, 5, 2)
    for half, grad in zip(halves, whole.grad.flatten(1).chunk(2), strict=True):
        half.grad = grad.clone()
    Muon([{"params": [whole], "cut": 2}], lr=0.1).step()
    Muon(halves, lr=0.1).step()
    torch.testing.assert_close(whole.flatten(1), torch.cat(halves))


def test_muon_takes_what_modules_say() -> None:
    """A gate's halves, no recurrence; what says nothing is one matrix if it has two dimensions, or none."""
    model = nn.Sequential(
        LSTM(3, 3), LSTMCell(3, 3), GatedConvolution(3, 5), nn.Conv1d(3, 4, 5), nn.Linear(3, 3)
    )
    muon, _ = build_optimizers(model, TrainConfig(optimizer="muon"))
    assert {group["cut"]: [p.shape for p in group["params"]] for group in muon.param_groups} == {
        2: [(6, 3, 5)],
        1: [(3, 3)],
    }


@pytest.mark.parametrize("kind", ["adam", "muon"])
@pytest.mark.parametrize("kind_of_model", ["transformer", *REPLACED])
def test_every_parameter_is_moved_once(kind: str, kind_of_model: str) -> None:
    shape = {"model.vocab_size": 31, "model.d_model": 12, "model.n_heads": 3, "model.d_ff": 7}
    model = build(merge(Config(), shape | {"model.kind": kind_of_model}))
    optimizers = build_optimizers(model, TrainConfig(optimizer=kind))
    held = [id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_it_finds_the_bottom_of_a_bowl(kind: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(7, 5)
    goal = torch.randn(5, 7)
    optimizers = build_optimizers(model, TrainConfig(optimizer=kind, lr=0.1))
    for step in range(300):
        loss = (model.weight - goal).square().sum() + model.bias.square().sum()
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 300)
            optimizer.step()
    assert loss.item() < 0.02


def test_muon_takes_no_matrix_whose_rows_are_tokens() -> None:
    shape = {"model.vocab_size": 31, "model.d_model": 12, "model.n_heads": 3, "positions.kind": "relative"}
    for tied in ("all", "embeddings", "target", "none"):
        model = build(merge(Config(), shape | {"model.tied": tied}))
        muon, adam = build_optimizers(model, TrainConfig(optimizer="muon"))
        taken = {p.shape for group in muon.param_groups for p in group["params"]}
        assert (31, 12) not in taken
        assert (12, 12) in taken
        left = [p.shape for group in adam.param_groups for p in group["params"]]
        assert left.count((31, 12)) == {"all": 1, "embeddings": 2, "target": 2, "none": 3}[tied]
