"""How good the model is on pairs it has not seen: loss per token, and BLEU of greedy translations.

Run by the loop on the averaged weights. It draws no random number that training would miss: the
random state is put back as it was. BLEU is sacreBLEU's (Post 2018), on subwords joined to text.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torch import nn

from regard.attention.structural import trees
from regard.config import DecodeConfig, TrainConfig
from regard.data.batch import pad_sources
from regard.data.store import Store
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.text.tokenizer import Tokenizer
from regard.training.device import autocast
from regard.training.feed import Feed, Rows, spread
from regard.training.loss import sequence_loss

LOSS_PAIRS = 1000  # at most, for the loss
BLEU_PAIRS = 200  # at most, for BLEU while training
BLEU_BATCH = 64  # sentences at most
BLEU_TOKENS = 64 * 256  # of their sources at most, so that documents go one by one


@dataclass(frozen=True)
class Score:
    """What was measured; `loss` is per token, without label smoothing."""

    loss: float
    bleu: float
    chrf: float
    sentences: int
    signature: str


class Validation:
    """The held-out pairs, ready to be measured on."""

    def __init__(
        self, store: Store, rows: Rows, tokenizer: Tokenizer, decode: DecodeConfig | None = None
    ) -> None:
        assert len(rows), "a validation needs pairs"
        self.decode = decode or DecodeConfig()
        self.store, self.rows, self.tokenizer = store, spread(rows, LOSS_PAIRS), tokenizer
        self.feed = Feed(store, self.rows, TrainConfig(seed=0), specials=tokenizer.specials)

    def measure(
        self, model: nn.Module, device: torch.device, train: TrainConfig, *, pairs: int = BLEU_PAIRS
    ) -> Score:
        """Loss over all pairs and BLEU over at most `pairs` of them, with the weights as they are."""
        with _evaluating(model):
            loss = self._loss(model, device, train.precision)
            if not math.isfinite(loss):
                return Score(loss, 0.0, 0.0, 0, "")
            rows = spread(self.rows, pairs)
            outputs = self._translate(model, device, rows)
        references = self.tokenizer.decode_batch(self.store.pair(int(row))[1].tolist() for row in rows)
        metric = BLEU()
        bleu = metric.corpus_score(outputs, [references]).score
        chrf = CHRF().corpus_score(outputs, [references]).score
        return Score(loss, bleu, chrf, len(rows), str(metric.get_signature()))

    def _loss(self, model: nn.Module, device: torch.device, precision: str) -> float:
        total, tokens = 0.0, 0
        for position in range(self.feed.count(0)):
            batch = self.feed.batch(0, position).to(device)
            with autocast(device, precision):
                total += float(sequence_loss(model, batch, label_smoothing=0.0))  # type: ignore[arg-type]
            tokens += batch.tokens
        return total / tokens

    def _translate(self, model: nn.Module, device: torch.device, rows: Rows) -> list[str]:
        """Greedy translations of the rows, in their order; batches of like length waste no steps."""
        outputs = [""] * len(rows)
        order = np.argsort(self.store.src_lengths[rows], kind="stable")
        for places in _batches(order, self.store.src_lengths[rows]):
            sources = [
                [*self.store.pair(int(rows[place]))[0].tolist(), self.tokenizer.end_id] for place in places
            ]
            src, src_mask = (part.to(device) for part in pad_sources(sources))
            longest: int | None = model.max_length  # type: ignore[assignment]
            rules = Rules.of(
                self.decode,
                map(len, sources),
                max_length=longest,
                specials=self.tokenizer.specials,
                device=device,
            )
            heads = self.store.src.padded_heads(rows[places])
            with trees(None if heads is None else torch.from_numpy(heads).to(device)):
                found = greedy(model, src, src_mask, rules)  # type: ignore[arg-type]
            for place, hypothesis in zip(places, found, strict=True):
                outputs[place] = self.tokenizer.decode(hypothesis.ids)
        return outputs


def _batches(order: Rows, lengths: npt.NDArray[np.integer]) -> Iterator[Rows]:
    """Places in `order`, which sorts them by length, in batches of bounded size."""
    start = 0
    while start < len(order):
        longest = lengths[order[start : start + BLEU_BATCH]]
        fitting = np.flatnonzero(longest * np.arange(1, len(longest) + 1) <= BLEU_TOKENS)
        end = start + (int(fitting[-1]) + 1 if len(fitting) else 1)
        yield order[start:end]
        start = end


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout, no gradients; model and random state are afterwards as they were."""
    training, state = model.training, torch.get_rng_state()
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
        torch.set_rng_state(state)
