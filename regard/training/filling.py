"""What teaches a model to write all places at once: some tokens of a target are hidden and foreseen.

    loss = mean over the hidden (-log p(token | the others, source)) + 0.1 (-log p(length | source))

How many are hidden is drawn evenly from 1 to all of them, so that the model knows every state that
mask-predict comes through (Ghazvininejad et al. 2019). One row in eight has more places than it needs, all
beyond the target filled with the end and what is hidden marked by another sign: so it learns to be cut there.
The model is `regard.models.parallel`.
"""

from collections.abc import Iterator
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.batch import Batch
from regard.models.parallel import REACH
from regard.text.tokenizer import OUR_SPECIALS, Specials
from regard.training.loss import OfPairs, token_loss
from regard.training.objective import Loss

OPEN = 8  # one row in so many is to be cut at the end
LENGTH = 0.1  # what the length counts, against the tokens


class MaskPredict(OfPairs):
    """Hidden tokens, and how many there are."""

    def __init__(self, label_smoothing: float, specials: Specials = OUR_SPECIALS) -> None:
        super().__init__(label_smoothing)
        self.specials = specials

    @classmethod
    def of(cls, config: Config, specials: Specials, *, measuring: bool = False) -> Self:
        """With the signs for what is hidden."""
        return cls(0.0 if measuring else config.train.label_smoothing, specials)

    def losses(self, model: Any, batch: Batch) -> Iterator[Loss]:
        """One loss, as large as one that is summed over all targets."""
        state = model.start(batch.inputs)
        words = batch.tgt_mask.sum(1) - 1  # (B,)
        goals, real, open_ended = self._canvas(batch, words)
        hidden = draw_hidden(real)
        signs = torch.where(open_ended[:, None], self.specials.begin, self.specials.mask)
        seen = torch.where(hidden, signs, goals)
        written = model.write(seen, real, state)
        tokens = token_loss(model, written, goals, hidden, label_smoothing=self.label_smoothing)
        longer = (words - (state.lengths - 1)).clamp(-REACH, REACH) + REACH
        length = F.cross_entropy(model.lengths(state), longer)
        yield Loss(batch.targets * (tokens / hidden.sum() + LENGTH * length))

    def _canvas(self, batch: Batch, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is asked for (B, T), where there are places (B, T), and which rows are to be cut (B,)."""
        device = words.device
        open_ended = torch.rand(len(words), device=device) * OPEN < 1
        spare = 1 + (torch.rand(len(words), device=device) * (words // 2 + 4)).long()
        places = torch.where(open_ended, words + spare, words.clamp(min=1))
        more = max(0, int(places.max()) - batch.tgt_out.shape[1])
        goals = F.pad(batch.tgt_out, (0, more), value=self.specials.end)[:, : int(places.max())]
        columns = torch.arange(goals.shape[1], device=device)
        goals = torch.where(columns < words[:, None], goals, self.specials.end)
        return goals, columns < places[:, None], open_ended


def draw_hidden(real: Tensor) -> Tensor:
    """Of the real places (B, T) of each row, some: their number drawn evenly from 1 to all."""
    places = real.sum(1)
    count = 1 + (torch.rand(len(real), device=real.device) * places).long().clamp(max=places.max())
    drawn = torch.rand(real.shape, device=real.device).masked_fill(~real, 2.0)
    rank = drawn.argsort(1).argsort(1)
    return (rank < torch.minimum(count, places)[:, None]) & real


__all__ = ["MaskPredict", "draw_hidden"]
