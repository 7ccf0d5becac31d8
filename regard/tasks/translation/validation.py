"""How good the model is on pairs it has not seen: loss per token, and BLEU of greedy translations.

Run by the loop on the averaged weights. It draws no random number that training would miss: the
random state is put back as it was. BLEU is sacreBLEU's (Post 2018), on subwords joined to text.
Given a time to be done by, it measures on as many pairs as that allows, spread over all of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from regard.config import DecodeConfig, TrainConfig
from regard.data.inputs import pad_sources
from regard.data.store import Store
from regard.decoding.search import Rules
from regard.decoding.way import Wanted, way_of
from regard.measure.bleu import translation_scores
from regard.measure.score import Score
from regard.process.device import autocast
from regard.tasks.translation.feed import PairFeed
from regard.text.tokenizer import Tokenizer
from regard.training.feed import Rows, spread
from regard.training.loss import Forced, OfPairs
from regard.training.objective import Evaluator, Limit, Measurement, shared, undisturbed
from regard.training.world import here

LOSS_PAIRS = 1000  # at most, for the loss
BLEU_PAIRS = 200  # at most, for BLEU while training
BLEU_BATCH = 64  # sentences at most
BLEU_TOKENS = 64 * 256  # of their sources at most, so that documents go one by one
ENOUGH_RATIO, ENOUGH_EXTRA = 1.5, 8  # longest output while training: extra + ratio * reference length
LOSS_SHARE = 0.4  # of the time for a measurement, where it has a limit
PILOT = 8  # sentences that tell how many more there is time for
CAUTION = 0.8  # of the time left is planned for: sentences differ


class _LateError(Exception):
    """The limit has passed while translations were being written; for ourselves."""


class Validation:
    """The held-out pairs, ready to be measured on."""

    shares = True

    def __init__(
        self,
        store: Store,
        rows: Rows,
        tokenizer: Tokenizer,
        decode: DecodeConfig | None = None,
        objective: OfPairs | None = None,
    ) -> None:
        assert len(rows), "a validation needs pairs"
        self.objective = objective or Forced(0.0)
        self.decode = decode or DecodeConfig()
        self.store, self.rows, self.tokenizer = store, spread(rows, LOSS_PAIRS), tokenizer
        self.feed = PairFeed(store, self.rows, TrainConfig(seed=0), specials=tokenizer.specials)

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Loss over all pairs, BLEU and chrF over some of them, or as many as the limit allows.

        Before the last time, an output ends a little beyond what its reference needs: a model that has not
        learned to stop would write to the bound of `decode` every time.
        """
        limit = limit or Limit()
        began = limit.clock()
        with undisturbed(model):
            loss, share = self._loss(model, device, train.precision, limit.part(LOSS_SHARE))
            scores = {"loss": Score(loss, higher=False)}
            if not math.isfinite(loss):
                return Measurement(scores)
            halfway = limit.clock()
            rows = spread(self.rows, LOSS_PAIRS if last else BLEU_PAIRS)
            outputs = self._translate_in_time(model, device, rows, limit, cut=not last)
        spent = halfway - began, limit.clock() - halfway
        whole = spent[0] / share + (spent[1] * len(rows) / len(outputs) if outputs else math.inf)
        # The loss decides what is kept: with all of it measured, few translations spoil no judgement.
        return Measurement(scores | self._score(outputs), share == 1, whole)

    def _score(self, outputs: dict[int, str]) -> dict[str, Score]:
        """BLEU and chrF of the outputs by row."""
        if not outputs:
            return {}
        references = self.tokenizer.decode_batch(self.store.pair(row)[1].tolist() for row in outputs)
        return translation_scores(list(outputs.values()), references)

    def _loss(
        self, model: nn.Module, device: torch.device, precision: str, limit: Limit
    ) -> tuple[float, float]:
        """The loss per token, and the share of the pairs that it was measured on before the limit.

        The order of the batches is shuffled, so the first ones are a fair sample.
        """
        total, tokens, done, count = 0.0, 0, 0, self.feed.count(0)

        def measured(position: int) -> tuple[float, int]:
            torch.manual_seed(position)  # what is hidden is the same every time
            batch = self.feed.batch(0, position).to(device)
            with autocast(device, precision):
                lost = sum(float(loss.total) for loss in self.objective.losses(model, batch))
            return lost, batch.targets

        for lost, targets in shared(measured, range(count), limit):
            total, tokens, done = total + lost, tokens + targets, done + 1
        return total / tokens, done / count

    def _translate_in_time(
        self, model: nn.Module, device: torch.device, rows: Rows, limit: Limit, *, cut: bool
    ) -> dict[int, str]:
        """Greedy translations by row, as many as there is time for, evenly spread over the rows."""
        if limit.left() == math.inf:
            return self._translate(model, device, rows, limit, cut=cut)
        outputs: dict[int, str] = {}
        began, waiting, count = limit.clock(), rows[_even_order(len(rows))], PILOT
        while len(waiting) and count:
            try:
                outputs |= self._translate(model, device, waiting[:count], limit, cut=cut)
            except _LateError:
                break
            waiting = waiting[count:]
            each = (limit.clock() - began) / len(outputs)
            left = int(max(0.0, CAUTION * limit.left()) / each) if each else len(waiting)
            count = here().tell(left)
        return outputs

    def _translate(
        self, model: nn.Module, device: torch.device, rows: Rows, limit: Limit, *, cut: bool
    ) -> dict[int, str]:
        """Greedy translations by row; batches of like length waste no steps."""
        outputs: dict[int, str] = {}
        order = np.argsort(self.store.src_lengths[rows], kind="stable")
        batches = [rows[places] for places in _batches(order, self.store.src_lengths[rows])]

        def written(some: Rows) -> list[str] | None:
            try:
                return self._written(model, device, some, limit, cut=cut)
            except _LateError:
                return None

        for some, texts in zip(batches, shared(written, batches, Limit()), strict=False):
            if texts is None:
                raise _LateError
            outputs |= zip(map(int, some), texts, strict=True)
        return outputs

    def _written(
        self, model: nn.Module, device: torch.device, rows: Rows, limit: Limit, *, cut: bool
    ) -> list[str]:
        """Greedy translations of one batch."""
        pairs = [[side.tolist() for side in self.store.pair(int(row))] for row in rows]
        sources = [[*src, self.tokenizer.end_id] for src, _ in pairs]
        longest: int | None = model.max_length  # type: ignore[assignment]
        rules = Rules.of(
            self.decode,
            map(len, sources),
            max_length=longest,
            specials=self.tokenizer.specials,
            device=device,
        )
        rules = _cut(rules, [len(tgt) for _, tgt in pairs]) if cut else rules
        heads = self.store.src.padded_heads(rows)
        inputs = replace(pad_sources(sources), heads=None if heads is None else torch.from_numpy(heads))
        wanted = Wanted(replace(self.decode, beam=1), late=_in_time(limit))
        found = way_of(model).search(model, inputs.to(device), rules, wanted)
        return [self.tokenizer.decode(hypotheses[0].ids) for hypotheses in found]


def _in_time(limit: Limit) -> Callable[[], None]:
    """Gives up when the limit has passed."""

    def check() -> None:
        if limit.left() <= 0:
            raise _LateError

    return check


def _cut(rules: Rules, references: Sequence[int]) -> Rules:
    """The rules with outputs bounded by what their references, of so many tokens, need."""
    enough = torch.tensor(references, device=rules.most.device) * ENOUGH_RATIO + ENOUGH_EXTRA
    most = torch.minimum(rules.most, enough.long())  # (B,)
    return replace(rules, least=torch.minimum(rules.least, most - 1), most=most)


def _even_order(count: int) -> Rows:
    """0 .. count - 1 in an order of which every beginning is spread evenly, by the golden ratio."""
    return np.argsort(np.arange(count) * (5**0.5 - 1) / 2 % 1, kind="stable")


def _batches(order: Rows, lengths: npt.NDArray[np.integer]) -> Iterator[Rows]:
    """Places in `order`, which sorts them by length, in batches of bounded size."""
    start = 0
    while start < len(order):
        longest = lengths[order[start : start + BLEU_BATCH]]
        fitting = np.flatnonzero(longest * np.arange(1, len(longest) + 1) <= BLEU_TOKENS)
        end = start + (int(fitting[-1]) + 1 if len(fitting) else 1)
        yield order[start:end]
        start = end


def together(parts: Mapping[str, Validation]) -> Evaluator | None:
    """One evaluator of the groups that are measured; None where there is none."""
    return Groups(parts) if len(parts) > 1 else next(iter(parts.values()), None)


class Groups:
    """Several validations, one a group: the means of their scores decide, BLEU is told of each."""

    def __init__(self, parts: Mapping[str, Validation]) -> None:
        self.parts = parts

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Each in its turn, in an equal part of the time that is left."""
        limit = limit or Limit()
        found: dict[str, Measurement] = {}
        for number, (name, part) in enumerate(self.parts.items()):
            share = limit.part(1 / (len(self.parts) - number)) if limit.left() < math.inf else limit
            found[name] = part.measure(model, device, train, limit=share, last=last)
        names = [
            name for name in ("loss", "bleu", "chrf") if all(name in each.scores for each in found.values())
        ]
        scores = {name: _mean([each.scores[name] for each in found.values()]) for name in names}
        if "bleu" in scores:
            each = {name: measured.scores["bleu"] for name, measured in found.items()}
            scores |= {
                f"bleu_{name}": replace(score, label=f"{score.label} {name}", signature="")
                for name, score in each.items()
            }
        complete = all(each.complete for each in found.values())
        return Measurement(scores, complete, sum(each.seconds for each in found.values()))


def _mean(scores: Sequence[Score]) -> Score:
    value = sum(score.value for score in scores) / len(scores)
    return replace(scores[0], value=value, count=sum(score.count for score in scores))
