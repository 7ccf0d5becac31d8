"""What writes of a window of sound, token by token: a model of ours or the engine, with a tape under both.

Used by `whisper.py`. Before this file: `regard.models.speech`, `regard.engine.listener`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import record
from regard.engine.listener import PackedListener, Remembered
from regard.models.speech import Speech


class Pen(ABC):
    """What writes of one window, after what it heard."""

    def __init__(self, model: Any, heard: Any, *, taped: bool = False) -> None:
        self.model, self.heard, self.taped = model, heard, taped

    def begin(self) -> Any:
        """Before the first token."""
        return self.model.begin(self.heard)

    def read(self, ids: Sequence[int], state: Any, rows: list[Any] | None = None) -> tuple[Tensor, Any]:
        """The logits (V,) after ids; where the last one listened is put to `rows`, if that is taped."""
        listened: list[Tensor] | None = None if rows is None or not self.taped else []
        logits, state = self.read_taped(ids, state, listened)
        if rows is not None and listened:
            rows.append(_upper(listened))
        return logits, state

    @abstractmethod
    def read_taped(self, ids: Sequence[int], state: Any, listened: list[Tensor] | None) -> tuple[Tensor, Any]:
        """The logits (V,) after ids; where the last one listened, (H, S) a layer, is put to `listened`."""


class ModelPen(Pen):
    """A model of ours; `heard` is its memory (1, S, D)."""

    model: Speech

    def read_taped(self, ids: Sequence[int], state: Any, listened: list[Tensor] | None) -> tuple[Tensor, Any]:
        given = torch.tensor([ids], device=self.heard.device)
        if listened is None:
            logits, state = self.model.read(given, state)
            return logits[0], state
        with record() as tape:
            logits, state = self.model.read(given, state)
        cross = [tape[site.name][-1] for site in tape.sites() if site.kind == "cross"]
        listened += [weights[0, :, -1] for weights in cross]
        return logits[0], state


class EnginePen(Pen):
    """The engine."""

    model: PackedListener
    heard: Remembered

    def read_taped(self, ids: Sequence[int], state: Any, listened: list[Tensor] | None) -> tuple[Tensor, Any]:
        tape: list[Tensor] | None = None if listened is None else []
        logits, state = self.model.read(ids, state, tape)
        if listened is not None and tape:
            listened += tape[0].unbind()
        return logits, state


def _upper(layers: Sequence[Tensor]) -> Any:
    """The mean (S,) over the heads of the upper layers, of weights (H, S) a layer."""
    return torch.cat(list(layers[len(layers) // 2 :])).mean(0).cpu().numpy()
