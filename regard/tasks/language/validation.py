"""The text that a run is judged by: held-out rows, some of them while it learns, all of them at its end."""

from functools import cached_property

import torch
from torch import nn

from regard.config import TrainConfig
from regard.data.rows import Ids, cut_rows
from regard.process.device import autocast
from regard.tasks.language.scoring import batches, nats, scores, spelled
from regard.text.tokenizer import Tokenizer
from regard.training.feed import Rows, spread
from regard.training.objective import Limit, Measurement, shared, undisturbed

SOME = 2**15  # tokens that are measured on before the end


class Validation:
    """Rows that training never sees."""

    shares = True

    def __init__(self, ids: Ids, context: int, tokenizer: Tokenizer) -> None:
        self.ids, self.tokenizer = ids, tokenizer
        self.all = cut_rows(len(ids), context)
        self.some = spread(self.all, max(1, SOME // context))

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Loss, bits per byte and perplexity, of as many rows as the limit allows."""
        limit = limit or Limit()
        began, cost, done = limit.clock(), 0.0, 0
        rows = self.all if last else self.some
        # A part of the rows is a fair sample of them if they are not taken in their order.
        rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0)).numpy()]
        cut = list(batches(rows))

        def lost_in(spans: Rows) -> float:
            with autocast(device, train.precision):
                return nats(model, self.ids, spans, self.tokenizer, device)

        with undisturbed(model):
            for spans, lost in zip(cut, shared(lost_in, cut, limit), strict=False):
                cost, done = cost + lost, done + len(spans)
        measured = rows[:done]
        tokens, size = int((measured[:, 1] - measured[:, 0]).sum()), self._bytes(measured)
        seconds = (limit.clock() - began) * len(rows) / done
        return Measurement(scores(cost, tokens, size), done == len(rows), seconds)

    @cached_property
    def _of_all(self) -> int:
        return spelled(self.ids.tolist(), self.tokenizer)

    def _bytes(self, rows: Rows) -> int:
        """The bytes of text in some rows."""
        if len(rows) == len(self.all):
            return self._of_all
        return sum(spelled(self.ids[begin:end].tolist(), self.tokenizer) for begin, end in rows)
