"""The forecast of memory: against what autograd really holds, the batch that decides, the words."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.models import build
from regard.tasks.translation import memory as module
from regard.tasks.translation.memory import FLOAT, Memory, Shape, batch_numbers, memory_of


def held(model: torch.nn.Module, rows: int, src: int, tgt: int) -> int:
    """Bytes of all tensors that a forward pass keeps for the backward one, weights aside."""
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids, real = torch.randint(4, 50, (rows, src)), torch.ones(rows, src, dtype=torch.bool)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = model(Tokens(ids, real), torch.randint(4, 50, (rows, tgt)))
    assert out.requires_grad
    return sum(kept.values())


@pytest.mark.parametrize(("rows", "src", "tgt"), [(16, 60, 50), (3, 500, 40), (1, 3000, 20)])
def test_what_a_batch_holds_is_foreseen(rows: int, src: int, tgt: int) -> None:
    shape = {"model.vocab_size": 50, "model.d_model": 64, "model.d_ff": 256, "model.dropout": 0.1}
    config = merge(Config(), shape)
    model = build(config)
    sizes = (np.array([size]) for size in (rows, src, tgt))
    foreseen = int(batch_numbers(Shape.of(config), *sizes)[0]) * FLOAT
    assert held(model, rows, src, tgt) == pytest.approx(foreseen, rel=0.25)


def test_layers_that_are_computed_again_hold_less() -> None:
    shape = Shape(64, 256, 4, 6, 1, "never")
    sizes = np.array([1]), np.array([8192]), np.array([20])
    much = batch_numbers(shape, *sizes)[0]
    for recompute in ("auto", "always"):
        assert batch_numbers(Shape(64, 256, 4, 6, 1, recompute), *sizes)[0] < much / 2.5


def test_the_largest_batch_decides(toy: Any, tmp_path: Any) -> None:
    trainer = toy.trainer(tmp_path)
    found = memory_of(trainer, toy.config())
    assert found is not None
    rows, src, _ = trainer.feed.shapes()
    assert found.tokens in (rows * src).tolist()
    assert found.peak > found.now > 0


def test_too_much_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "total_memory", lambda: 8_000_000_000)
    line = Memory(10**9, 10**9, 9 * 10**9, 16384).line()
    assert "about 11.0 GB at most, 9.0 GB of it for the largest batch (16,384 source tokens)" in line
    assert "this machine has 8.0 GB: too much" in line
    assert "too much" not in Memory(10**9, 10**9, 10**9, 16384).line()
