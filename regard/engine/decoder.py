"""A decoder that stands alone, in the engine, behind the step protocol of `regard.models.protocol`.

    decoder = PackedDecoder(model, precision="int8")
    state = decoder.start(prompts)             # many tokens of many rows in one pass
    logits, state = decoder.step(ids, state)   # one token a row

A state is a value, as its readable twin's is: rows may be repeated, dropped and gone on from twice, and what
was read is copied where they part, not before. So searches, draws and what bends a model
(`regard.decoding`) take it as they take `regard.models.decoder`, which it equals in fp32. Before this file:
`library.py`; after it: `regard.tasks.language`.
"""

from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TypeVar

import torch
from torch import Tensor

from regard.data.inputs import Tokens
from regard.engine.engine import at_most, precision_named, refusal
from regard.engine.library import Line, Packed
from regard.engine.places import Places
from regard.engine.weights import ALONE, lay_out
from regard.errors import UsageError
from regard.models.decoder import Decoder

Given = TypeVar("Given")
Taken = TypeVar("Taken")

PASS = 512  # tokens that go through the layers together: enough for the products, few for the memory


@dataclass(frozen=True)
class PackedState:
    """Where a batch of decodings stands: for each row, what it has read."""

    rows: tuple[Line, ...]

    def select(self, rows: Tensor) -> "PackedState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return PackedState(tuple(self.rows[row] for row in rows.tolist()))


class PackedDecoder:
    """One model in packed weights. Calls from several threads at once are fine."""

    def __init__(self, model: Decoder, *, precision: str = "auto", threads: int = 0) -> None:
        """`precision` auto: fp32, whose text is the readable decoder's; int8 is faster, and only near to it.

        `threads` 0: as many as torch uses and may run. Later changes to the model's weights are not seen.
        """
        reason = refusal(model, ALONE)
        if reason is not None:
            raise UsageError(f"the native engine cannot run this model: {reason}")
        self.precision = precision_named(precision, auto="fp32")
        self.threads = at_most(threads)
        self.max_length = model.max_length
        self._packed = Packed(lay_out(model), precision=self.precision)
        self._places = Places(model.embedding.positions, self._packed.d_model, self._packed.planes)

    def start(self, inputs: Tokens) -> PackedState:
        """Read the prompts but for their last tokens; there may be nothing to read."""
        prompts = inputs.contents()
        rows = [Line()] * len(prompts)
        for some in _passes(prompts):
            ids = [prompts[row][begin:end] for row, begin, end in some]
            found = self._read([rows[row] for row, _, _ in some], ids, None)
            for (row, _, _), after in zip(some, found, strict=True):
                rows[row] = after
        return PackedState(tuple(rows))

    def step(self, ids: Tensor, state: PackedState) -> tuple[Tensor, PackedState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        logits = torch.empty(len(state.rows), self._packed.output_width)
        after = self._read(state.rows, [[number] for number in ids.tolist()], logits)
        return logits[:, : self._packed.vocab_size], PackedState(tuple(after))

    def step_each(self, asked: Sequence[tuple[Tensor, PackedState]]) -> list[tuple[Tensor, PackedState]]:
        """What `step` gives for each (ids (B,), state), all in one pass."""
        ids, rows = torch.cat([one for one, _ in asked]), tuple(chain(*(state.rows for _, state in asked)))
        logits, after = self.step(ids, PackedState(rows))
        ends = [*accumulate((len(one) for one, _ in asked), initial=0)]
        return [(logits[a:b], PackedState(after.rows[a:b])) for a, b in pairwise(ends)]

    def _read(self, rows: Sequence[Line], ids: Sequence[Sequence[int]], logits: Tensor | None) -> list[Line]:
        """Each row with its new ids."""
        longest = max(row.length + len(new) for row, new in zip(rows, ids, strict=True))
        return self._packed.read(
            rows,
            array("i", chain.from_iterable(ids)),
            array("i", accumulate(map(len, ids), initial=0)),
            places=self._places.table(longest),
            logits=logits,
            threads=self.threads,
        )


def undivided(steps: Generator[Given, Taken | None, None]) -> Generator[Given, Taken | None, None]:
    """The same steps, each on one thread of torch: what is left to do with logits is too little to share.

    Its threads would wait for each other on the cores that the engine's need for the next step.
    """
    taken: Taken | None = None
    while True:
        with one_thread():
            try:
                given = steps.send(taken)
            except StopIteration:
                return
        taken = yield given


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _passes(prompts: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Which part of which rows is read together: (row, begin, end), `PASS` tokens at most."""
    some: list[tuple[int, int, int]] = []
    room = PASS
    for row, ids in enumerate(prompts):
        begin = 0
        while begin < len(ids):
            end = min(len(ids), begin + room)
            some.append((row, begin, end))
            room -= end - begin
            begin = end
            if room == 0:
                yield some
                some, room = [], PASS
    if some:
        yield some


__all__ = ["PackedDecoder", "PackedState", "one_thread", "undivided"]
