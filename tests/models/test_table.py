"""The smallest model keeps the step protocol."""

import torch

from regard.data.inputs import Tokens
from regard.models.protocol import Stepper
from regard.models.table import TableModel, TableState

V = 7


def test_logits_come_from_both_tables() -> None:
    chain, echo = torch.randn(V, V), torch.randn(V, V)
    model: Stepper[Tokens, TableState] = TableModel(chain, echo)
    src = torch.tensor([[4, 5, 2], [6, 2, 0]])
    state = model.start(Tokens(src, src > 0))
    for place in range(5):
        logits, state = model.step(torch.tensor([3, 1]), state)
        read = src[:, place] if place < 3 else torch.tensor([0, 0])
        assert torch.equal(logits, chain[torch.tensor([3, 1])] + echo[read])


def test_rows_are_selected_repeated_and_reordered() -> None:
    model = TableModel(torch.zeros(V, V), torch.randn(V, V))
    src = torch.tensor([[4, 2], [5, 2], [6, 2]])
    state = model.start(Tokens(src, src > 0))
    rows = torch.tensor([2, 0, 2, 1])
    whole, _ = model.step(torch.ones(3).long(), state)
    picked, _ = model.step(torch.ones(4).long(), state.select(rows))
    assert torch.equal(picked, whole[rows])
