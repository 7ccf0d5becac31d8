"""What writes of a window of sound, token by token: a model of ours, whose attention is taped, or the engine.

Used by `whisper.py`. Before this file: `regard.models.speech`, `regard.engine.listener`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import record
from regard.engine.listener import PackedListener


class Pen:
    """What writes of one window: a model of ours or the engine, after what it heard."""

    def __init__(self, model: Any, heard: Any, *, taped: bool = False) -> None:
        self.model, self.heard, self.taped = model, heard, taped

    def begin(self) -> Any:
        """Before the first token."""
        return self.model.begin(self.heard)

    def read(self, ids: Sequence[int], state: Any, rows: list[Any] | None = None) -> tuple[Tensor, Any]:
        """The logits (V,) after ids; where the last one listened is put to `rows`, if that is taped."""
        if isinstance(self.model, PackedListener):
            return self.model.read(ids, state)
        given = torch.tensor([ids], device=self.heard.device)
        if rows is None or not self.taped:
            logits, state = self.model.read(given, state)
            return logits[0], state
        with record() as tape:
            logits, state = self.model.read(given, state)
        cross = [tape[site.name][-1] for site in tape.sites() if site.kind == "cross"]
        upper = cross[len(cross) // 2 :]  # the mean over the heads of the upper layers (S,)
        rows.append(torch.cat([weights[0, :, -1] for weights in upper]).mean(0).cpu().numpy())
        return logits[0], state
