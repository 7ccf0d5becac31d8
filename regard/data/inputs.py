"""What a model is fed: rows of one batch, padded to one shape, with all that belongs to them.

`Tokens` are rows of ids, `Frames` rows of sound. What else is known of a row (its dependency tree) is a field
beside them, so that it goes wherever they go. Other tasks have inputs of their own; whoever hands them on
asks what `Inputs` says. Made by `batch.py`; read by the models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor


class Inputs(Protocol):
    """What searches and loops ask of a batch, whatever is in it."""

    def __len__(self) -> int:
        """Rows."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        ...

    def contents(self) -> list[list[int]]:
        """What tells a row from others, without its padding: what is drawn for it depends on nothing else."""
        ...


@dataclass(frozen=True)
class Tokens:
    """Rows of ids (B, S), real where `mask` (B, S) is True; None: everywhere.

    Sources are padded at their ends. A prompt, which is written on, is padded in front: its places count from
    its own first token. `heads` (B, S) are the rows' dependency trees (`regard.attention.structural`).
    """

    ids: Tensor
    mask: Tensor | None = None
    heads: Tensor | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.ids.device

    @property
    def real(self) -> Tensor:
        """Where the ids are real (B, S)."""
        return torch.ones_like(self.ids, dtype=torch.bool) if self.mask is None else self.mask

    def to(self, device: torch.device | str) -> "Tokens":
        """The same on a device."""
        parts = (self.ids, self.mask, self.heads)
        return Tokens(*(None if part is None else part.to(device, non_blocking=True) for part in parts))  # type: ignore[arg-type]

    def contents(self) -> list[list[int]]:
        """The ids of each row without its padding."""
        return [ids[real].tolist() for ids, real in zip(self.ids, self.real, strict=True)]


@dataclass(frozen=True)
class Frames:
    """Rows of log-mel frames (B, T, mels), real where `mask` (B, T) is True, at their ends not; None: all."""

    values: Tensor
    mask: Tensor | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.values.device

    @property
    def real(self) -> Tensor:
        """Where the frames are real (B, T)."""
        shape = self.values.shape[:2]
        return torch.ones(shape, dtype=torch.bool, device=self.device) if self.mask is None else self.mask

    def to(self, device: torch.device | str) -> "Frames":
        """The same on a device."""
        mask = None if self.mask is None else self.mask.to(device, non_blocking=True)
        return Frames(self.values.to(device, non_blocking=True), mask)

    def contents(self) -> list[list[int]]:
        """The frames of each row without its padding, in thousandths."""
        rows = zip(self.values, self.real, strict=True)
        return [(frames[real] * 1000).round().int().flatten().tolist() for frames, real in rows]


def pad_frames(rows: Sequence[Tensor]) -> Frames:
    """Rows of frames (T, mels) each, filled up with zeros."""
    lengths = torch.tensor([len(row) for row in rows])
    values = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    return Frames(values, torch.arange(values.shape[1]) < lengths[:, None])


def pad_sources(
    rows: Sequence[Sequence[int]], *, pad_id: int = 0, heads: Sequence[Sequence[int]] | None = None
) -> Tokens:
    """Rows of ids, each with its end token already; `heads`, a number for each token before the end."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    longest = max((len(row) for row in rows), default=0)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    trees = None if heads is None else torch.full_like(ids, longest)
    for number, row in enumerate(heads or ()):
        assert trees is not None
        trees[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return Tokens(ids, torch.arange(longest) < lengths[:, None], trees)


def pad_prompts(rows: Sequence[Sequence[int]], *, pad_id: int = 0) -> Tokens:
    """Rows of ids that are written on, padded in front, so that what comes next stands in one column."""
    longest = max((len(row) for row in rows), default=0)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.int64)
    for number, row in enumerate(rows):
        ids[number, longest - len(row) :] = torch.tensor(row, dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    equal = all(len(row) == longest for row in rows)
    return Tokens(ids, None if equal else torch.arange(longest) >= longest - lengths[:, None])
