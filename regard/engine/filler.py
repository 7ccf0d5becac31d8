"""Models that write all places at once, in the engine, behind what their ways of decoding ask.

    filler = PackedFiller(model, precision="int8")
    state = filler.start(inputs)                              # the encoder, once
    ids, logp = filler.guess(known, real, state, banned)      # all places of all outputs in one pass

What the encoder makes of a source is a value of the caller's, so that several outputs share it. So
`regard.decoding.maskpredict` and `ctc` take it as they take the models of `regard.models.parallel`, which it
equals in fp32. The likeliest path of CTC asks for no value in between, and is one call.
Before this file: `library.py`; after it: `regard.tasks.translation.load`.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import torch
from torch import Tensor

from regard.attention.absolute import sinusoids
from regard.data.inputs import Tokens, pad_sources
from regard.decoding.ctc import spoken
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Wanted, way_of
from regard.engine.engine import at_most, precision_named
from regard.engine.library import Packed
from regard.engine.places import Places
from regard.engine.weights import lay_out

PASS = 768  # places that go through the layers together


@dataclass(frozen=True)
class Remembered:
    """What the encoder made of one source, as the engine wrote it."""

    memory: Tensor  # keys and values of all decoder layers
    states: Tensor  # (S, D)


@dataclass(frozen=True)
class PackedRead:
    """What the encoder made of a batch of sources; one row an output."""

    rows: tuple[Remembered, ...]

    @property
    def lengths(self) -> Tensor:
        """Tokens of each source (B,), its end counted."""
        return torch.tensor([len(row.states) for row in self.rows])

    def select(self, rows: Tensor) -> "PackedRead":
        """The given rows, in that order; rows may be repeated or dropped."""
        return PackedRead(tuple(self.rows[row] for row in rows.tolist()))


class PackedFiller:
    """One model in packed weights. Calls from several threads at once are fine."""

    def __init__(self, model: Any, *, precision: str = "auto", threads: int = 0) -> None:
        """`threads` 0: as many as torch uses and may run. Later changes to the weights are not seen."""
        self.model, self.max_length, self.output_weight = model, model.max_length, model.output_weight
        self.precision, self.threads = precision_named(precision, auto="int8"), at_most(threads)
        weights = lay_out(model)
        side = weights.decoder
        self._memory = side.layers * 2 * side.kv_heads * side.width
        self._packed = Packed(weights, precision=self.precision)
        self._places = Places(model.embedding.positions, self._packed.d_model, self._packed.planes)
        self._signs = torch.empty(0, self._packed.d_model)
        self._upsample: float = getattr(model, "upsample", 0.0)  # places of a CTC model for each source token

    def answer(
        self, sources: Sequence[Sequence[int]], rules: Rules, wanted: Wanted, *, batch_size: int = 32
    ) -> list[list[Hypothesis]]:
        """The outputs of each source, which closes with its end token; best first."""
        order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        found: list[list[Hypothesis]] = [[] for _ in sources]
        if self._upsample and wanted.decode.beam == 1 and not wanted.bounded:
            for places in _passes([self._room(sources[number]) for number in order]):
                wanted.check_time()
                some = [order[place] for place in places]
                for number, one in zip(some, self._paths([sources[n] for n in some], rules), strict=True):
                    found[number] = [one]
            return found
        way, pad = way_of(self.model), rules.specials.pad
        for start in range(0, len(order), batch_size):
            some = order[start : start + batch_size]
            inputs = pad_sources([sources[number] for number in some], pad_id=pad)
            for number, outputs in zip(
                some, way.search(self, inputs, rules.of_rows(some), wanted), strict=True
            ):
                found[number] = outputs
        return found

    def _paths(self, sources: Sequence[Sequence[int]], rules: Rules) -> list[Hypothesis]:
        """What the likeliest path of each source says, as `regard.decoding.ctc` has it, in one call."""
        specials, ids = rules.specials, array("i", chain.from_iterable(sources))
        lengths = array("i", map(self._room, sources))
        count, longest = sum(lengths), max(lengths)
        said, logp = array("i", bytes(4 * count)), array("f", bytes(4 * count))
        banned = array("i", {*specials.never, specials.end} - {specials.blank})
        starts = array("i", accumulate(map(len, sources), initial=0))
        self._packed.fill(
            ids,
            limit=len(self.model.embedding.weight),
            tensors={
                "starts": starts,
                "banned": banned,
                "lengths": lengths,
                "places": self._places.table(longest if self._packed.planes else max(map(len, sources))),
                "signs": self._signs_of(longest),
                "out_ids": said,
                "out_logp": logp,
            },
            numbers={
                "rows": len(sources),
                "threads": self.threads,
                "limit": self._packed.vocab_size if rules.vocab_size is None else rules.vocab_size,
                "banned_count": len(banned),
                "at_once": 1,
                "unknown": specials.mask,
            },
        )
        ends = accumulate(lengths, initial=0)
        return [spoken(said[a:b].tolist(), sum(logp[a:b]), specials.blank) for a, b in pairwise(ends)]

    def _room(self, source: Sequence[int]) -> int:
        """Places that a CTC model writes into."""
        return math.ceil(len(source) * self._upsample)

    # What the ways of decoding ask --------------------------------------------------------------------

    def start(self, inputs: Tokens) -> PackedRead:
        """Run the encoder once."""
        sources = inputs.contents()
        width = self._packed.d_model
        rows = [
            Remembered(torch.empty(len(ids) * self._memory), torch.empty(len(ids), width)) for ids in sources
        ]
        for some in _passes([len(ids) for ids in sources]):
            self._call([sources[row] for row in some], [rows[row] for row in some], encode=True)
        return PackedRead(tuple(rows))

    def places(self, state: PackedRead, unknown: int) -> tuple[Tensor, Tensor]:
        """Outputs of which nothing is known yet: those of `regard.models.ctc`."""
        made: tuple[Tensor, Tensor] = self.model.places(state, unknown)
        return made

    def lengths(self, state: PackedRead) -> Tensor:
        """Logits of the outputs' lengths: those of `regard.models.parallel`."""
        mean = torch.stack([row.states.mean(0) for row in state.rows])
        logits: Tensor = self.model.longer(mean)
        return logits.float()

    def guess(self, ids: Tensor, real: Tensor, state: PackedRead, banned: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest of what is not banned (V,), and its log p, at every place: (B, T) both."""
        found, logp = torch.empty(int(real.sum()), dtype=torch.int32), torch.empty(int(real.sum()))
        out = {"out_ids": found, "out_logp": logp}
        self._write(ids, real, state, out, banned=array("i", banned.nonzero()[:, 0].tolist()))
        chosen, sure = torch.zeros_like(ids), torch.zeros(ids.shape)
        chosen[real], sure[real] = found.long(), logp
        return chosen, sure

    def logits(self, ids: Tensor, real: Tensor, state: PackedRead) -> Tensor:
        """The logits (B, T, V) of every place of the outputs."""
        packed = self._packed
        out = torch.empty(int(real.sum()), packed.output_width)
        self._write(ids, real, state, {"logits": out}, banned=array("i"))
        logits = torch.zeros(*ids.shape, packed.vocab_size)
        logits[real] = out[:, : packed.vocab_size]
        return logits

    def _write(
        self, ids: Tensor, real: Tensor, state: PackedRead, out: dict[str, Tensor], *, banned: "array[int]"
    ) -> None:
        """One pass over all places, some outputs at a time."""
        rows = [row[on].tolist() for row, on in zip(ids, real, strict=True)]
        done = 0
        for some in _passes([len(row) for row in rows]):
            count = sum(len(rows[row]) for row in some)
            part = {name: each[done : done + count] for name, each in out.items()}
            self._call(
                [rows[row] for row in some], [state.rows[row] for row in some], out=part, banned=banned
            )
            done += count

    def _call(
        self,
        rows: Sequence[Sequence[int]],
        read: Sequence[Remembered],
        *,
        encode: bool = False,
        out: dict[str, Tensor] | None = None,
        banned: "array[int] | None" = None,
    ) -> None:
        longest = max(map(len, rows))
        banned = banned or array("i")
        self._packed.fill(
            array("i", chain.from_iterable(rows)),
            limit=len(self.model.embedding.weight) if encode else len(self.model.target_embedding.weight),
            tensors={
                "starts": array("i", accumulate(map(len, rows), initial=0)),
                "memory": array("Q", [each.memory.data_ptr() for each in read]),
                "states": array("Q", [each.states.data_ptr() for each in read]),
                "lengths": array("i", [len(each.states) for each in read]),
                "banned": banned,
                "places": self._places.table(longest),
                "signs": self._signs_of(longest),
                **(out or {}),
            },
            numbers={
                "rows": len(rows),
                "threads": self.threads,
                "limit": self._packed.vocab_size,
                "banned_count": len(banned),
                "encode": int(encode),
            },
        )

    def _signs_of(self, length: int) -> Tensor:
        """Where places stand, for so many of them."""
        if len(self._signs) < length:
            self._signs = sinusoids(max(256, 2 * length), self._packed.d_model).contiguous()
        return self._signs


def _passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of rows that go through the layers together, in order."""
    some: list[int] = []
    room = PASS
    for number, length in enumerate(lengths):
        if some and length > room:
            yield some
            some, room = [], PASS
        some.append(number)
        room -= length
    if some:
        yield some


__all__ = ["PackedFiller", "PackedRead"]
