"""An encoder that stands alone, in the engine: texts as ids in, vectors out, nothing padded.

    encoder = PackedEncoder(model, precision="int8")
    encoder.pooled(rows, "mean")         (N, D), a vector a text
    encoder.picked(rows, places)         what the named places of each text have become

In fp32 it gives what `regard.models.encoder` gives, to the last digits; int8 is faster and near. A text's
vector has the same bits whatever stands beside it, by any number of threads. Before this file: `library.py`;
after it: the reader of `regard.tasks.encoder`.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import torch
from torch import Tensor

from regard.engine.engine import at_most, precision_named, refusal
from regard.engine.library import Packed
from regard.engine.path import NARROW, path
from regard.engine.places import Places
from regard.engine.weights import READS, lay_out
from regard.errors import UsageError
from regard.models.encoder import Encoder

CALL = 16384  # tokens of a call: between two of them a signal is heard
Row = Sequence[int]


class PackedEncoder:
    """One model in packed weights. Calls from several threads at once are fine."""

    def __init__(self, model: Encoder, *, precision: str = "auto", threads: int = 0) -> None:
        """`precision` auto: int8, but fp32 where a weight has fewer than eight bits, which vectors show.

        `threads` 0: as many as torch uses and may run. Later changes to the model's weights are not seen.
        """
        reason = refusal(model, READS)
        if reason is not None:
            raise UsageError(f"the native engine cannot run this model: {reason}")
        self.precision = precision_named(precision, auto="fp32" if path() in NARROW else "int8")
        self.threads = at_most(threads)
        self._packed = Packed(lay_out(model), precision=self.precision)
        self._places = Places(model.embedding.positions, self._packed.d_model, self._packed.planes)

    def pooled(self, rows: Sequence[Row], pooling: str, *, threads: int = 0) -> Tensor:
        """A vector for each row (N, D): mean, first or max of its places."""
        out = torch.empty(len(rows), self._packed.d_model)
        for begin, end in _calls(rows):
            self._encode(rows[begin:end], out[begin:end], threads, pooling=pooling)
        return out

    def picked(self, rows: Sequence[Row], places: Sequence[Row], *, threads: int = 0) -> Tensor:
        """What the named places of each row have become (P, D), row after row."""
        starts = list(accumulate(map(len, places), initial=0))
        out = torch.empty(starts[-1], self._packed.d_model)
        for row, wanted in zip(rows, places, strict=True):
            if wanted and not 0 <= min(wanted) <= max(wanted) < len(row):
                raise UsageError(f"a place outside a row of {len(row)} was asked for")
        for begin, end in _calls(rows):
            asked = array("i", chain.from_iterable(places[begin:end]))
            at = array("i", (start - starts[begin] for start in starts[begin : end + 1]))
            self._encode(rows[begin:end], out[starts[begin] :], threads, asked=(asked, at))
        return out

    def _encode(
        self,
        rows: Sequence[Row],
        out: Tensor,
        threads: int,
        *,
        pooling: str = "",
        asked: "tuple[array[int], array[int]] | None" = None,
    ) -> None:
        """One call."""
        self._packed.encode(
            array("i", chain.from_iterable(rows)),
            array("i", accumulate(map(len, rows), initial=0)),
            out,
            pooling=pooling,
            asked=asked,
            places=self._places.table(max(map(len, rows))),
            threads=threads or self.threads,
        )


def _calls(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Which rows go together: from, to."""
    begin = tokens = 0
    for number, row in enumerate(rows):
        if tokens + len(row) > CALL and number > begin:
            yield begin, number
            begin, tokens = number, 0
        tokens += len(row)
    if begin < len(rows):
        yield begin, len(rows)


__all__ = ["PackedEncoder"]
