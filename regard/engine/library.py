"""The native library behind ctypes: a Python function a C function.

ctypes lets go of the interpreter's lock during a call, so calls from several threads run side by side. Before
this file: `weights.py` and `layout.py`; after it: `engine.py`.
"""

import ctypes
import threading
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int32
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.engine.layout import Encode, Fill, Lists, Read, Request, Shape, Side, Tensor, library
from regard.engine.path import PRECISIONS, path
from regard.engine.shortlist import Shortlist
from regard.engine.weights import PANEL, SideShape, Weights
from regard.errors import ModelError, RegardError
from regard.process.stopping import awaited

DONE, BROKEN, CANCELLED = range(3)
LONG = 512  # source tokens; fewer take a fraction of a second
POOLINGS = ("", "mean", "first", "max")  # of an encoder's places; their numbers in model.h


@dataclass(frozen=True)
class Call:
    """What one translation asks for; sentences as ids with their end."""

    sources: Sequence[Sequence[int]]
    least: Sequence[int]  # tokens of each output before its end may come
    most: Sequence[int]  # tokens of each output, the end counted
    slots: int  # sentences that are worked on at the same time
    threads: int
    beam: int
    n_best: int
    penalty: float
    begin: int
    end: int
    vocab_size: int
    banned: Sequence[int]
    worth: float = 0.0  # the least log p of all tokens that are proposed, where some are
    cancel: "ctypes.c_int32 | None" = None  # set to 1 from another thread: the call ends after this step


@dataclass(frozen=True)
class Output:
    """One output: its ids without the end, its score, and whether it was cut."""

    ids: list[int]
    score: float
    cut: bool
    passes: int = 0  # of the decoder


SHARES = 8  # of what is bound, each call may have one, whatever the others have
_most = [1 << 30]  # bytes, as search.cpp begins with


def bound(size: int) -> None:
    """From now on what is being written in this process takes so many bytes at most; more sentences wait.

    Each call may have an eighth of that, or one sentence, whatever the others have.
    """
    library().regard_bound(size)
    _most[0] = size


def held() -> int:
    """The bytes that there are now for sentences to be written into, in this process."""
    return int(library().regard_held())


class Past:
    """Keys and values of what a row has read, inside the library; freed with this object."""

    def __init__(self, address: int) -> None:
        self._library, self.address = library(), address

    def __del__(self) -> None:
        self._library.regard_forget(self.address)


class Line(NamedTuple):
    """What one row of a decoder that stands alone has read: where it lies, how much it is, its last id."""

    past: Past | None = None
    length: int = 0
    last: int = 0


class Packed:
    """A model inside the library; freed with this object."""

    def __init__(self, weights: Weights, *, precision: str) -> None:
        self._library = library()
        self.path = path(max(weights.encoder.d_ff, weights.decoder.d_ff), weights.d_model)
        self._handle: int | None = None
        # The embeddings and the table of neighbours are read where they are, the rest is packed.
        self._alive = weights.tensors[-3:]
        self._limits = weights.source_vocab, weights.target_vocab
        self.d_model, self.planes, self.vocab_size = weights.d_model, weights.planes, weights.target_vocab
        self.output_width = -(-self.vocab_size // PANEL) * PANEL
        side = weights.decoder
        self.drafts = weights.drafts
        self._place = 2 * side.width * side.kv_heads * side.layers * 4  # bytes of a token's keys and values
        shape = _shape(weights, precision)
        tensors = (Tensor * len(weights.tensors))()
        for place, (weight, bias) in zip(tensors, weights.tensors, strict=True):
            if weight is not None:
                place.weight, place.bias = weight.data_ptr(), None if bias is None else bias.data_ptr()
                place.rows, place.columns = weight.shape[0], weight.shape[-1]
        self._handle = self._library.regard_make(shape, tensors, len(tensors), self.path.encode())
        if not self._handle:
            raise RegardError("the native engine could not take the model: not enough memory")

    def narrow(self, shortlist: Shortlist) -> None:
        """From now on, write with what a shortlist allows."""
        never = np.array(shortlist.never, np.int32)
        rest, sample = shortlist.rest(), shortlist.sample()
        copied = np.array([len(shortlist.starts) - 2] if shortlist.copies else [], np.int32)
        for ids in (shortlist.ids, shortlist.always, never, copied):
            self._check([int(ids.min()), int(ids.max())] if ids.size else [], self._limits[1])
        lists = Lists(
            starts=shortlist.starts.ctypes.data,
            ids=shortlist.ids.ctypes.data,
            always=shortlist.always.ctypes.data,
            never=never.ctypes.data,
            sample=sample.ctypes.data,
            sources=len(shortlist.starts) - 1,
            always_count=len(shortlist.always),
            never_count=len(never),
            sample_count=len(sample),
            rest=len(rest),
            copies=shortlist.copies,
        )
        if self._library.regard_narrow(self._handle, lists) != DONE:
            raise RegardError("the native engine could not take the shortlist: not enough memory")

    def __del__(self) -> None:
        if self._handle:
            self._library.regard_free(self._handle)

    def translate(self, call: Call, places: torch.Tensor | None) -> list[list[Output]] | None:
        """The outputs of each source, best first; None where the call was cancelled."""
        arrays = _Arrays(call)
        for numbers, limit in zip((arrays.ids, [*call.banned, call.begin]), self._limits, strict=True):
            self._check(numbers, limit)
        status = self._run(call, arrays.request(call, places), len(arrays.ids))
        if status == BROKEN:
            raise ModelError("the model gives no token a probability (NaN, infinite); its weights are broken")
        if status == CANCELLED:
            return None
        if status != DONE:
            raise RegardError("the native engine ran out of memory; translate smaller batches")
        return arrays.outputs(call.n_best)

    def drafted_together(self, longest: int, threads: int) -> int:
        """How many sentences of so many tokens a call may draft at a time and thread within its share.

        A search waits by itself where memory ends; drafting takes what it is given, so that it is given less.
        Its rooms double when they are full.
        """
        each = 2 * (longest + self.drafts + 1) * self._place
        return max(1, _most[0] // SHARES // max(1, each * threads))

    def read(
        self,
        rows: Sequence[Line],
        ids: "array[int]",
        starts: "array[int]",
        *,
        places: torch.Tensor | None,
        logits: torch.Tensor | None,
        threads: int,
        memory: "tuple[array[int], ...] | None" = None,
    ) -> list[Line]:
        """Rows of a decoder, each with the ids that it reads now, as they are afterwards.

        Those of row r are ids[starts[r] : starts[r + 1]]. `logits` (R, `output_width`) are filled where each
        row reads one; without them it may read many, or none. `memory`, of a decoder that does not stand
        alone: where what `fill` made for each row lies, its places, and, if they are asked for, where its
        weights over them go (layers, heads, places).
        """
        self._check(ids, self._limits[1])
        lengths, last = array("i", [row.length for row in rows]), array("i", [row.last for row in rows])
        before = array("Q", [0 if row.past is None else row.past.address for row in rows])
        after = array("Q", bytes(8 * len(rows)))
        arrays = (ids, starts, lengths, last, before, after)
        given = (None if tensor is None else tensor.data_ptr() for tensor in (places, logits))
        of_arrays, heard = ([each.buffer_info()[0] for each in some] for some in (arrays, memory or ()))
        request = Read(len(rows), threads, *of_arrays, *given, *heard)
        if self._library.regard_read(self._handle, request) != DONE:
            raise RegardError("the native engine ran out of memory; read shorter texts or fewer at a time")
        found = zip(rows, before, after, starts, starts[1:], strict=False)
        return [
            Line(
                row.past if now == then else Past(now),
                row.length + end - begin,
                ids[end - 1] if end > begin else row.last,
            )
            for row, then, now, begin, end in found
        ]

    def encode(
        self,
        ids: "array[int]",
        starts: "array[int]",
        out: torch.Tensor,
        *,
        pooling: str = "",
        asked: "tuple[array[int], array[int]] | None" = None,
        places: torch.Tensor | None,
        threads: int,
    ) -> None:
        """Texts through an encoder that stands alone; those of text r are ids[starts[r] : starts[r + 1]].

        `out` (R, D) are filled with each text as one vector; or, without a pooling, `out` (A, D) with the
        places that are `asked` for: their numbers in their texts, and where those of each text begin.
        """
        self._check(ids, self._limits[0])
        wanted = (None, None) if asked is None else (each.buffer_info()[0] for each in asked)
        request = Encode(
            len(starts) - 1,
            threads,
            POOLINGS.index(pooling),
            ids.buffer_info()[0],
            starts.buffer_info()[0],
            *wanted,
            None if places is None else places.data_ptr(),
            out.data_ptr(),
        )
        if self._library.regard_encode(self._handle, request) != DONE:
            raise RegardError("the native engine ran out of memory; read shorter texts")

    def fill(
        self, ids: "array[int]", *, limit: int, tensors: dict[str, Any], numbers: dict[str, int]
    ) -> None:
        """Sources to memories, or places of outputs to what they say: see filling.h, which has the names.

        `ids` are below the limit; `tensors` are what is read and written, arrays or addresses among them.
        """
        self._check(ids, limit)
        given = {
            name: each.buffer_info()[0] if isinstance(each, array) else each.data_ptr()
            for name, each in (tensors | {"ids": ids}).items()
            if each is not None
        }
        if self._library.regard_fill(self._handle, Fill(**given, **numbers)) != DONE:
            raise RegardError("the native engine ran out of memory; translate fewer lines at a time")

    @staticmethod
    def _check(ids: Sequence[int], limit: int) -> None:
        if ids and not 0 <= min(ids) <= max(ids) < limit:
            raise ModelError(f"an id lies outside the vocabulary of {limit} tokens")

    def _run(self, call: Call, request: Request, tokens: int) -> int:
        """Calls the library. A long call runs beside the main thread, so that a signal can still end it."""
        if tokens < LONG or threading.current_thread() is not threading.main_thread():
            return int(self._library.regard_translate(self._handle, request))
        cancel = call.cancel or c_int32(0)
        request.cancel = ctypes.addressof(cancel)
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(self._library.regard_translate, self._handle, request)
            try:
                return int(awaited(running))
            except BaseException:
                cancel.value = 1
                raise


class _Arrays:
    """The memory of one call; alive for as long as the library reads and writes it."""

    def __init__(self, call: Call) -> None:
        count, outputs = len(call.sources), len(call.sources) * call.n_best
        self.ids = array("i", chain.from_iterable(call.sources))
        self.starts = array("i", accumulate(map(len, call.sources), initial=0))
        self.least, self.most = array("i", call.least), array("i", call.most)
        self.banned = array("i", call.banned)
        *starts, room = accumulate((most * call.n_best for most in call.most), initial=0)
        self.out_starts = array("q", starts)
        self.out_ids = array("i", bytes(4 * room))
        self.out_lengths = array("i", bytes(4 * outputs))
        self.out_counts = array("i", bytes(4 * count))
        self.out_passes = array("i", bytes(4 * count))
        self.out_scores = array("d", bytes(8 * outputs))
        self.out_cut = array("B", bytes(outputs))

    def request(self, call: Call, places: torch.Tensor | None) -> Request:
        numbers = ("slots", "threads", "beam", "n_best", "begin", "end", "vocab_size", "penalty", "worth")
        addresses = {name: each.buffer_info()[0] for name, each in vars(self).items()}
        return Request(
            count=len(call.sources),
            banned_count=len(call.banned),
            places=None if places is None else places.data_ptr(),
            cancel=None if call.cancel is None else ctypes.addressof(call.cancel),
            **{name: getattr(call, name) for name in numbers},
            **addresses,
        )

    def outputs(self, n_best: int) -> list[list[Output]]:
        """What the library wrote."""
        ids, lengths, scores, cut = self.out_ids, self.out_lengths, self.out_scores, self.out_cut
        found = []
        rows = zip(self.out_starts, self.most, self.out_counts, strict=True)
        for i, (start, most, count) in enumerate(rows):
            places = range(i * n_best, i * n_best + count)
            begins = [start + j * most for j in range(count)]
            found.append(
                [
                    Output(
                        ids[begin : begin + lengths[at]].tolist(),
                        scores[at],
                        bool(cut[at]),
                        self.out_passes[i],
                    )
                    for begin, at in zip(begins, places, strict=True)
                ]
            )
        return found


def _shape(weights: Weights, precision: str) -> Shape:
    numbers = [field[0] for field in Shape._fields_ if field[0] not in ("encoder", "decoder", "precision")]
    return Shape(
        precision=PRECISIONS.index(precision),
        encoder=_side(weights.encoder),
        decoder=_side(weights.decoder),
        **{name: getattr(weights, name) for name in numbers},
    )


def _side(side: SideShape) -> Side:
    return Side(**vars(side))


__all__ = ["PRECISIONS", "Call", "Line", "Output", "Packed", "Past", "bound", "held"]
