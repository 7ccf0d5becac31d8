"""What writes of a window of sound, token by token: a model of ours or the engine, with a tape under both.

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
        taped = rows if self.taped else None
        if isinstance(self.model, PackedListener):
            listened: list[Tensor] | None = None if taped is None else []
            logits, state = self.model.read(ids, state, listened)
            if taped is not None and listened:
                taped.append(_upper(list(listened[0])))
            return logits, state
        given = torch.tensor([ids], device=self.heard.device)
        if taped is None:
            logits, state = self.model.read(given, state)
            return logits[0], state
        with record() as tape:
            logits, state = self.model.read(given, state)
        cross = [tape[site.name][-1] for site in tape.sites() if site.kind == "cross"]
        taped.append(_upper([weights[0, :, -1] for weights in cross]))
        return logits[0], state


def _upper(layers: Sequence[Tensor]) -> Any:
    """The mean (S,) over the heads of the upper layers, of weights (H, S) a layer."""
    return torch.cat(list(layers[len(layers) // 2 :])).mean(0).cpu().numpy()
