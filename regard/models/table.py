"""A Markov chain as a model: the smallest thing that follows the step protocol.

log p(next | last, place in the source): a table is looked up by the token just written, and a second
one by the source token at the same place. Searches can be checked against it by counting everything.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.inputs import Tokens


@dataclass(frozen=True)
class TableState:
    """The sources, and how many tokens have been written."""

    src: Tensor  # (B, S)
    written: int

    def select(self, rows: Tensor) -> "TableState":
        """The given rows, in that order."""
        return TableState(self.src.index_select(0, rows), self.written)


class TableModel:
    """logits = chain[last] + echo[source token at this place]; nothing is learned.

    >>> chain = torch.log(torch.tensor([[0.1, 0.9], [0.5, 0.5]]))
    >>> model = TableModel(chain)
    >>> start = model.start(Tokens(torch.ones(1, 3).long()))
    >>> logits, state = model.step(torch.tensor([0]), start)
    >>> logits.exp()
    tensor([[0.1000, 0.9000]])
    """

    def __init__(self, chain: Tensor, echo: Tensor | None = None, *, max_length: int | None = None) -> None:
        """chain (V, V) and echo (V, V) hold logits of the next token, in rows."""
        self.chain, self.echo, self.max_length = chain, echo, max_length

    def start(self, inputs: Tokens) -> TableState:
        """Remember the sources; padding is id 0 after the end, so the mask says nothing new."""
        return TableState(inputs.ids.masked_fill(~inputs.real, 0), 0)

    def step(self, ids: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        """Logits (B, V) after the newest ids (B,)."""
        logits = self.chain[ids]  # (B, V)
        if self.echo is not None:
            written, end = state.written, state.src.shape[1]
            # Past the end of a source its padding is read, however wide the batch is.
            place = state.src[:, written] if written < end else torch.zeros_like(ids)
            logits = logits + self.echo[place]
        return logits, TableState(state.src, state.written + 1)
