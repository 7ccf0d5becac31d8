"""A model of speech in the engine: frames in, logits of what is written next out.

    heard = packed.hear(inputs)                      the encoder, once
    logits, state = packed.read(ids, packed.begin(heard))

torch makes places of frames (two convolutions and their positions); the engine's encoder takes them as rows
of a table that stands where the embeddings of a text would. Its decoder reads on as one that stands alone
does, with the memory beside it. In fp32 it gives what `regard.models.speech` gives. Before this file:
`library.py`; after it: `regard.tasks.speech.whisper`.
"""

import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor

from regard.data.inputs import Frames
from regard.engine.engine import at_most, precision_named, refusal
from regard.engine.library import Line, Packed
from regard.engine.path import NARROW, path
from regard.engine.places import Places
from regard.engine.weights import HEARD, lay_out
from regard.errors import UsageError
from regard.models.speech import Speech


@dataclass(frozen=True)
class Remembered:
    """What the encoder made of one recording."""

    memory: Tensor  # keys and values of all decoder layers, as the engine lays them
    states: Tensor  # (S, D)


@dataclass(frozen=True)
class HeardState:
    """Where a decoding stands: what it heard, and what it has read."""

    heard: Remembered
    line: Line


class PackedListener:
    """One model in packed weights. Calls from several threads at once are fine."""

    def __init__(self, model: Speech, *, precision: str = "auto", threads: int = 0) -> None:
        """`precision` auto: int8, but fp32 where a weight would have fewer than eight bits.

        `threads` 0: as many as torch uses and may run. Later changes to the model's weights are not seen.
        """
        reason = refusal(model, HEARD)
        if reason is not None:
            raise UsageError(f"the native engine cannot run this model: {reason}")
        self.model, self.max_length = model, model.max_length
        self.precision = precision_named(precision, auto="fp32" if path() in NARROW else "int8")
        self.threads, self._lock = at_most(threads), threading.Lock()
        weights = lay_out(model)
        self._table = torch.zeros(model.most_heard or 0, weights.d_model)  # what is heard now
        tensors = [*weights.tensors[:-3], (self._table, None), *weights.tensors[-2:]]
        self._heads = weights.decoder.layers, weights.decoder.heads
        self._memory = 2 * weights.decoder.layers * weights.decoder.kv_heads * weights.decoder.width
        self._packed = Packed(
            replace(weights, source_vocab=len(self._table), source_scale=1.0, tensors=tensors),
            precision=self.precision,
        )
        self._places = Places(model.embedding.positions, weights.d_model, 0)

    def hear(self, inputs: Frames) -> Remembered:
        """Run the encoder over one recording (1, T, mels)."""
        with torch.inference_mode():
            x = self.model.source_positions.embed(self.model.front(inputs.values)[0])[0]  # (S, D)
        count = len(x)
        made = Remembered(torch.empty(count * self._memory), torch.empty(count, self._packed.d_model))
        with self._lock:
            self._table[:count] = x
            self._packed.fill(
                array("i", range(count)),
                limit=len(self._table),
                tensors={
                    "starts": array("i", [0, count]),
                    "memory": array("Q", [made.memory.data_ptr()]),
                    "states": array("Q", [made.states.data_ptr()]),
                    "lengths": array("i", [count]),
                    "banned": array("i"),
                },
                numbers={"rows": 1, "threads": self.threads, "limit": 0, "banned_count": 0, "encode": 1},
            )
        return made

    def begin(self, heard: Remembered) -> HeardState:
        """Before the first token."""
        return HeardState(heard, Line())

    def read(
        self, ids: Sequence[int], state: HeardState, tape: list[Tensor] | None = None
    ) -> tuple[Tensor, HeardState]:
        """Read ids, a prompt or one token, and give the logits (V,) of what comes after.

        Where the last one listened, layer by layer and head by head (N, H, S), is put to the tape.
        """
        if len(ids) > 1:
            state = self._read(ids[:-1], state, None)
        logits = torch.empty(1, self._packed.output_width)
        listened = None if tape is None else torch.empty(*self._heads, len(state.heard.states))
        state = self._read(ids[-1:], state, logits, listened)
        if tape is not None and listened is not None:
            tape.append(listened)
        return logits[0, : self._packed.vocab_size], state

    def _read(
        self, ids: Sequence[int], state: HeardState, logits: Tensor | None, listened: Tensor | None = None
    ) -> HeardState:
        rows = [state.line]
        places = self._places.table(state.line.length + len(ids))
        (line,) = self._packed.read(
            rows,
            array("i", ids),
            array("i", accumulate([len(ids)], initial=0)),
            places=places,
            logits=logits,
            threads=self.threads,
            memory=(
                array("Q", [state.heard.memory.data_ptr()]),
                array("i", [len(state.heard.states)]),
                *([] if listened is None else [array("Q", [listened.data_ptr()])]),
            ),
        )
        return HeardState(state.heard, line)


__all__ = ["HeardState", "PackedListener", "Remembered"]
