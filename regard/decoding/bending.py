"""Models around a model: what they give a search is bent on the way, and no search knows of it.

    Penalised   what was read already comes less often (repetition penalty, Keskar et al. 2019, 4.1)
    Tallied     what was written comes less often, by how often it was; some ids are favoured or kept out
    Sliding     what was written outgrows the model's positions: it reads the last part anew and goes on

All follow the step protocol that they ask of the model inside. Before this file: `regard.models.protocol`;
after it: whoever writes on (`regard.decoding.search.walk`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from regard.data.inputs import Tokens
from regard.errors import UsageError
from regard.models.protocol import Stepper, StepState

S = TypeVar("S", bound=StepState)


class Bent:
    """Base of these: a step of the model inside, and what is made of it."""

    model: Any

    @property
    def max_length(self) -> int | None:
        """That of the model inside."""
        length: int | None = self.model.max_length
        return length

    def ready(self, state: Any) -> Any:
        """The state to step from."""
        return state

    def bend(self, ids: Tensor, state: Any, logits: Tensor, inner: Any) -> tuple[Tensor, Any]:
        """What the model inside gave for ids (B,), logits (B, V) and its state after them, bent."""
        raise NotImplementedError

    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits (B, V), bent."""
        state = self.ready(state)
        return self.bend(ids, state, *self.model.step(ids, state.inner))


@dataclass(frozen=True)
class Marked(Generic[S]):
    """A state, and which ids each of its rows has read (B, V)."""

    inner: S
    seen: Tensor

    def select(self, rows: Tensor) -> "Marked[S]":
        """The given rows, in that order."""
        return Marked(self.inner.select(rows), self.seen.index_select(0, rows))


class Penalised(Bent, Generic[S]):
    """Logits of what a row has read are divided by `penalty` where above 0, multiplied where below."""

    def __init__(self, model: Stepper[Tokens, S], vocab_size: int, penalty: float) -> None:
        if not 0 < penalty <= 10:
            raise UsageError(f"repetition_penalty ({penalty:g}) must be above 0 and at most 10; 1 is none")
        self.model, self.vocab_size, self.penalty = model, vocab_size, penalty

    def start(self, inputs: Tokens) -> Marked[S]:
        """The ids of a prompt count as read."""
        seen = torch.zeros(len(inputs), self.vocab_size + 1, dtype=torch.bool, device=inputs.device)
        nobody = inputs.ids.masked_fill(~inputs.real, self.vocab_size)  # padding marks what is cut off
        return Marked(self.model.start(inputs), seen.scatter(1, nobody, True)[:, :-1])

    def bend(self, ids: Tensor, state: Marked[S], logits: Tensor, inner: S) -> tuple[Tensor, Marked[S]]:
        """Less of what was read."""
        seen = state.seen.scatter(1, ids[:, None], True)
        bent = torch.where(logits > 0, logits / self.penalty, logits * self.penalty)
        return torch.where(seen, bent, logits), Marked(inner, seen)


@dataclass(frozen=True)
class Tally(Generic[S]):
    """A state, and how often each of its rows has written each id (B, V); None: nothing is written yet."""

    inner: S
    counts: Tensor | None

    def select(self, rows: Tensor) -> "Tally[S]":
        """The given rows, in that order."""
        counts = None if self.counts is None else self.counts.index_select(0, rows)
        return Tally(self.inner.select(rows), counts)


class Tallied(Bent, Generic[S]):
    """logits + bias - presence · [written] - frequency · times written; a prompt is not written."""

    def __init__(
        self,
        model: Stepper[Tokens, S],
        presence: float = 0.0,
        frequency: float = 0.0,
        bias: Sequence[tuple[int, float]] = (),
    ) -> None:
        self.model, self.presence, self.frequency = model, presence, frequency
        self.ids = torch.tensor([number for number, _ in bias], dtype=torch.int64)
        self.bias = torch.tensor([each for _, each in bias])

    def start(self, inputs: Tokens) -> Tally[S]:
        """Read the prompts."""
        return Tally(self.model.start(inputs), None)

    def bend(self, ids: Tensor, state: Tally[S], logits: Tensor, inner: S) -> tuple[Tensor, Tally[S]]:
        """Less of what was written."""
        if state.counts is None:  # what is read now is the last of the prompt
            counts = torch.zeros_like(logits)
        else:
            counts = state.counts.scatter_add(1, ids[:, None], torch.ones_like(logits[:, :1]))
        bent = logits - self.frequency * counts - self.presence * (counts > 0)
        bent[:, self.ids.to(bent.device)] += self.bias.to(bent.device)
        return bent, Tally(inner, counts)


@dataclass(frozen=True)
class Window(Generic[S]):
    """A state, and what of its rows it has read: ids (B, T), real where `real` is True, padded in front."""

    inner: S
    ids: Tensor
    real: Tensor

    def select(self, rows: Tensor) -> "Window[S]":
        """The given rows, in that order."""
        ids, real = self.ids.index_select(0, rows), self.real.index_select(0, rows)
        return Window(self.inner.select(rows), ids, real)


class Sliding(Bent, Generic[S]):
    """Writes on past the model's positions: a row that has used them up goes on from its last `keep` ids.

    Each row slides by what it has read itself, so that its neighbours change nothing; the others are read
    anew with it, as they stand.
    """

    @property
    def max_length(self) -> int | None:
        """None: it has no end."""
        return None

    def __init__(self, model: Stepper[Tokens, S], keep: int = 0, *, context: int = 0) -> None:
        """`context`: places that are used, 0: all that the model has; `keep` 0: half of them."""
        self.model, self.context = model, context or model.max_length or 0
        assert self.context, "a model without a bound needs no window"
        self.keep = keep or max(1, self.context // 2)
        if not 1 <= self.keep < self.context:
            raise UsageError(
                f"keep ({self.keep}) must be at least 1 and below the model's {self.context} positions"
            )

    def start(self, inputs: Tokens) -> Window[S]:
        """Read the prompts, or the last of those that do not fit."""
        return self._read(inputs.ids, inputs.real)

    def ready(self, state: Window[S]) -> Window[S]:
        """The state, read anew where a row has used its places up."""
        full = bool((state.real.sum(1) >= self.context).any())
        return self._read(state.ids, state.real) if full else state

    def bend(self, ids: Tensor, state: Window[S], logits: Tensor, inner: S) -> tuple[Tensor, Window[S]]:
        """As they are; what was read is noted."""
        grown = torch.cat([state.ids, ids[:, None]], 1)
        real = torch.cat([state.real, torch.ones_like(ids[:, None], dtype=torch.bool)], 1)
        return logits, Window(inner, grown, real)

    def _read(self, ids: Tensor, real: Tensor) -> Window[S]:
        """Every row from nothing: whole, or its last `keep` ids where it has used its places up."""
        full = real.sum(1, keepdim=True) >= self.context  # (B, 1)
        recent = torch.arange(ids.shape[1], device=ids.device) >= ids.shape[1] - self.keep  # (T,)
        real = real & (recent | ~full)
        columns = int(real.sum(1).max()) if real.numel() else 0
        ids, real = ids[:, ids.shape[1] - columns :], real[:, real.shape[1] - columns :]
        inputs: Any = Tokens(ids, None if bool(real.all()) else real)
        return Window(self.model.start(inputs), ids, real)
