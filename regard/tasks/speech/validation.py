"""How good the model is on recordings it has not heard: loss, and WER and CER of greedy texts.

Run by the loop on the averaged weights. Given a time to be done by, it measures on as many recordings as that
allows. Before this file: `lesson.py`, whose batches are made here without making them harder.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.config import Config, TrainConfig
from regard.config.speech import SpeechConfig
from regard.decoding.greedy import likeliest
from regard.decoding.joint import listening
from regard.decoding.search import Rules, write
from regard.measure.score import Score
from regard.measure.wer import ErrorRates
from regard.process.device import autocast
from regard.training.feed import Rows, spread
from regard.training.loss import token_loss
from regard.training.objective import Limit, Measurement, shared, undisturbed

HEARD = 200  # recordings at most while training
TOGETHER = 2048  # places of a batch


class Validation:
    """Held-out recordings, ready to be measured on."""

    shares = True

    def __init__(self, maker: Any, rows: Rows, config: Config) -> None:
        self.maker, self.rows, self.config = maker, rows, config

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Loss, WER and CER."""
        limit = limit or Limit()
        began, done, total, tokens = limit.clock(), 0, 0.0, 0
        rates = ErrorRates(plain=self.config.of(SpeechConfig).scored == "words")
        rows = self.rows if last else spread(self.rows, HEARD)
        with undisturbed(model):
            parts = self._batches(rows)

            def heard(part: Rows) -> tuple[int, float, list[str]]:
                batch = self.maker(part).to(device)
                with autocast(device, train.precision):
                    return batch.targets, *self._heard(model, batch)

            for part, (targets, lost, written) in zip(parts, shared(heard, parts, limit), strict=False):
                total, tokens, done = total + lost, tokens + targets, done + len(part)
                if not math.isfinite(total):
                    break
                for given, row in zip(written, part, strict=True):
                    ids = self.maker.store["ids"].row(row).tolist()
                    rates.add(given, self.maker.tokenizer.decode(ids))
        spent = (limit.clock() - began) * len(rows) / max(1, done)
        scores = {"loss": Score(total / max(1, tokens), higher=False)} | rates.scores()
        return Measurement(scores, done == len(rows), spent)

    def _batches(self, rows: Rows) -> list[Rows]:
        """The rows in batches of like length, the order of the batches mixed: the first are a fair sample."""
        places = self.maker.lengths(rows)[0]
        order = np.argsort(places, kind="stable")
        cuts, start = [], 0
        for at in range(len(order)):
            if at > start and (at + 1 - start) * places[order[at]] > TOGETHER:
                cuts.append(rows[order[start:at]])
                start = at
        cuts.append(rows[order[start:]])
        return [cuts[place] for place in np.random.default_rng(1).permutation(len(cuts))]

    def _heard(self, model: Any, batch: Any) -> tuple[float, list[str]]:
        """The summed loss, and what greedy search writes, a little beyond what is needed at most."""
        memory, real = model.encode(batch.inputs)
        hidden = model.write(memory, real, batch.tgt_in)
        lost = float(token_loss(model, hidden, batch.tgt_out, batch.tgt_mask, label_smoothing=0.0))
        most = batch.lengths + batch.lengths // 2 + 8
        specials = self.maker.tokenizer.specials
        rules = Rules(torch.zeros_like(most), most, specials=specials)
        way = listening(model, memory, real, self.config.of(SpeechConfig).joint, specials)
        found = write(*way, rules, likeliest)
        return lost, [self.maker.tokenizer.decode(each.ids) for each in found]
