"""Greedy search: the most probable token at every step. Beam search with a beam of one is the same."""

from typing import TypeVar

from torch import Tensor

from regard.data.inputs import Inputs
from regard.decoding.search import Hypothesis, Rules, write
from regard.models.protocol import Stepper, StepState

S = TypeVar("S", bound=StepState)
In = TypeVar("In", bound=Inputs)


def greedy(model: Stepper[In, S], inputs: In, rules: Rules) -> list[Hypothesis]:
    """One output for each row of the inputs.

    >>> import torch
    >>> from regard.data.inputs import Tokens
    >>> from regard.models.table import TableModel
    >>> chain = torch.full((6, 6), -9.0)
    >>> chain[1, 4] = chain[4, 5] = chain[5, 2] = 0.0  # begin, 4, 5, end
    >>> rules = Rules(least=torch.tensor([0]), most=torch.tensor([9]))
    >>> greedy(TableModel(chain), Tokens(torch.tensor([[4, 2]])), rules)[0].ids
    [4, 5]
    """
    return write(model, model.start(inputs), rules, likeliest)


def likeliest(logp: Tensor, step: int, rows: Tensor) -> Tensor:
    """The best of each row (R, V); the first of equals."""
    return logp.argmax(-1)
