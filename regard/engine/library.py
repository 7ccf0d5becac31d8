"""The native library behind ctypes: where it lies, how a call is laid out, a Python function a C function.

It is built at installation where there is a C++ compiler (`setup.py`); `available` says why it is not there.
ctypes lets go of the interpreter's lock during a call, so calls from several threads run side by side. Before
this file: `weights.py`; after it: `engine.py`.
"""

import ctypes
import functools
import importlib.util
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, Structure, c_double, c_float, c_int32, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from regard.engine.shortlist import Shortlist
from regard.engine.weights import SideShape, Weights
from regard.errors import ModelError, RegardError

VERSION = 6  # of the calls below; a library that was built from other sources is not used
PRECISIONS = ("fp32", "int8", "bf16")  # of the packed weights; their numbers in kernels.h
MODULE = "regard.engine._native"
OFF = "REGARD_NO_NATIVE"  # in the environment: do as if there were no library
DONE, BROKEN, CANCELLED = range(3)
LONG = 512  # source tokens; fewer take a fraction of a second

Ints = npt.NDArray[np.int32]


class _Side(Structure):
    _fields_ = [(name, c_int32) for name in ("layers", "heads", "kv_heads", "width", "d_ff")] + [
        ("score_scale", c_float)
    ]


class _Shape(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("d_model", "source_vocab", "target_vocab", "activation", "post_norm")),
        ("precision", c_int32),
        ("planes", c_int32),
        *((name, c_float) for name in ("eps", "source_scale", "target_scale")),
        ("encoder", _Side),
        ("decoder", _Side),
    ]


class _Tensor(Structure):
    _fields_ = [("weight", c_void_p), ("bias", c_void_p), ("rows", c_int32), ("columns", c_int32)]


class _Lists(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("starts", "ids", "always", "never")),
        *((name, c_int32) for name in ("sources", "always_count", "never_count", "copies")),
    ]


class _Request(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("count", "slots", "threads", "beam", "n_best", "begin", "end")),
        *((name, c_int32) for name in ("vocab_size", "banned_count")),
        ("penalty", c_double),
        *((name, c_void_p) for name in ("ids", "starts", "least", "most", "banned")),
        *((name, c_void_p) for name in ("places", "cancel", "out_starts")),
        *((name, c_void_p) for name in ("out_ids", "out_lengths", "out_counts", "out_scores", "out_cut")),
    ]


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
    cancel: "ctypes.c_int32 | None" = None  # set to 1 from another thread: the call ends after this step


@dataclass(frozen=True)
class Output:
    """One output: its ids without the end, its score, and whether it was cut."""

    ids: list[int]
    score: float
    cut: bool


@functools.cache
def _library() -> Any:
    """The loaded library, or the reason why there is none, as text."""
    if os.environ.get(OFF):
        return f"{OFF} is set"
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        return "it was not built: no C++ compiler was found when Regard was installed"
    try:
        library = ctypes.CDLL(spec.origin)
        if library.regard_version() != VERSION:
            return "it was built from other sources; install Regard again"
    except (OSError, AttributeError) as error:
        return f"it cannot be loaded ({error}); install Regard again"
    library.regard_make.restype = c_void_p
    library.regard_make.argtypes = [POINTER(_Shape), POINTER(_Tensor), c_int32]
    library.regard_free.argtypes = [c_void_p]
    library.regard_narrow.argtypes = [c_void_p, POINTER(_Lists)]
    library.regard_translate.argtypes = [c_void_p, POINTER(_Request)]
    library.regard_kernels.restype = ctypes.c_char_p
    return library


def available() -> str | None:
    """Why the native library cannot be used; None where it can."""
    found = _library()
    return found if isinstance(found, str) else None


def instructions() -> str:
    """The kind of CPU that the inner loops were compiled for: avx2, portable."""
    return str(_library().regard_kernels().decode())


class Packed:
    """A model inside the library; freed with this object."""

    def __init__(self, weights: Weights, *, precision: str) -> None:
        self._library = _library()
        self._handle: int | None = None
        # The embeddings are read where they are, the rest is packed.
        self._alive = weights.tensors[-2:]
        self._limits = weights.source_vocab, weights.target_vocab
        self.d_model, self.planes = weights.d_model, weights.planes
        shape = _shape(weights, precision)
        tensors = (_Tensor * len(weights.tensors))()
        for place, (weight, bias) in zip(tensors, weights.tensors, strict=True):
            if weight is not None:
                place.weight, place.bias = weight.data_ptr(), None if bias is None else bias.data_ptr()
                place.rows, place.columns = weight.shape[0], weight.shape[-1]
        self._handle = self._library.regard_make(shape, tensors, len(tensors))
        if not self._handle:
            raise RegardError("the native engine could not take the model: not enough memory")

    def narrow(self, shortlist: Shortlist) -> None:
        """From now on, write with what a shortlist allows."""
        never = np.array(shortlist.never, np.int32)
        copied = np.array([len(shortlist.starts) - 2] if shortlist.copies else [], np.int32)
        for ids in (shortlist.ids, shortlist.always, never, copied):
            self._check(ids, self._limits[1])
        lists = _Lists(
            starts=shortlist.starts.ctypes.data,
            ids=shortlist.ids.ctypes.data,
            always=shortlist.always.ctypes.data,
            never=never.ctypes.data,
            sources=len(shortlist.starts) - 1,
            always_count=len(shortlist.always),
            never_count=len(never),
            copies=shortlist.copies,
        )
        if self._library.regard_narrow(self._handle, lists) != DONE:
            raise RegardError("the native engine could not take the shortlist: not enough memory")

    def __del__(self) -> None:
        if self._handle:
            self._library.regard_free(self._handle)

    def translate(self, call: Call, places: torch.Tensor | None) -> list[list[Output]] | None:
        """The outputs of each source, best first; None where the call was cancelled."""
        ids = np.fromiter((i for source in call.sources for i in source), np.int32)
        arrays = _Arrays(call, ids)
        written = np.concatenate([arrays.banned, [call.begin]])
        for numbers, limit in zip((ids, written), self._limits, strict=True):
            self._check(numbers, limit)
        status = self._run(call, arrays.request(call, places), len(ids))
        if status == BROKEN:
            raise ModelError(
                "the model gives no token a probability (NaN or infinite); its weights are broken"
            )
        if status == CANCELLED:
            return None
        if status != DONE:
            raise RegardError("the native engine ran out of memory; translate smaller batches")
        return arrays.outputs(call.n_best)

    @staticmethod
    def _check(ids: Ints, limit: int) -> None:
        if ids.size and not 0 <= ids.min() <= ids.max() < limit:
            raise ModelError(f"an id lies outside the vocabulary of {limit} tokens")

    def _run(self, call: Call, request: _Request, tokens: int) -> int:
        """Calls the library. A long call runs beside the main thread, so that a signal can still end it."""
        if tokens < LONG or threading.current_thread() is not threading.main_thread():
            return int(self._library.regard_translate(self._handle, request))
        cancel = call.cancel or c_int32(0)
        request.cancel = ctypes.addressof(cancel)
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(self._library.regard_translate, self._handle, request)
            try:
                return int(running.result())
            except BaseException:
                cancel.value = 1
                raise


class _Arrays:
    """The memory of one call; alive for as long as the library reads and writes it."""

    def __init__(self, call: Call, ids: Ints) -> None:
        count = len(call.sources)
        self.ids, self.starts = ids, _starts(call.sources)
        self.least, self.most = np.array(call.least, np.int32), np.array(call.most, np.int32)
        self.banned = np.array(call.banned, np.int32)
        room = self.most.astype(np.int64) * call.n_best
        self.out_starts = np.cumsum(room) - room
        self.out_ids = np.empty(int(room.sum()), np.int32)
        self.out_lengths = np.empty(count * call.n_best, np.int32)
        self.out_counts = np.zeros(count, np.int32)
        self.out_scores = np.empty(count * call.n_best, np.float64)
        self.out_cut = np.empty(count * call.n_best, np.uint8)

    def request(self, call: Call, places: torch.Tensor | None) -> _Request:
        numbers = ("slots", "threads", "beam", "n_best", "begin", "end", "vocab_size", "penalty")
        arrays = {name: array.ctypes.data for name, array in vars(self).items()}
        return _Request(
            count=len(call.sources),
            banned_count=len(call.banned),
            places=None if places is None else places.data_ptr(),
            cancel=None if call.cancel is None else ctypes.addressof(call.cancel),
            **{name: getattr(call, name) for name in numbers},
            **arrays,
        )

    def outputs(self, n_best: int) -> list[list[Output]]:
        """What the library wrote."""
        ids: list[int] = self.out_ids.tolist()
        lengths: list[int] = self.out_lengths.tolist()
        scores: list[float] = self.out_scores.tolist()
        cut: list[int] = self.out_cut.tolist()
        found = []
        rows = zip(self.out_starts.tolist(), self.most.tolist(), self.out_counts.tolist(), strict=True)
        for i, (start, most, count) in enumerate(rows):
            places = range(i * n_best, i * n_best + count)
            begins = [start + j * most for j in range(count)]
            found.append(
                [
                    Output(ids[begin : begin + lengths[at]], scores[at], bool(cut[at]))
                    for begin, at in zip(begins, places, strict=True)
                ]
            )
        return found


def _starts(rows: Sequence[Sequence[int]]) -> Ints:
    """Where each of the rows begins when they stand end to end, and where the last one ends."""
    return np.cumsum([0, *map(len, rows)], dtype=np.int32)


def _shape(weights: Weights, precision: str) -> _Shape:
    numbers = [field[0] for field in _Shape._fields_ if field[0] not in ("encoder", "decoder", "precision")]
    return _Shape(
        precision=PRECISIONS.index(precision),
        encoder=_side(weights.encoder),
        decoder=_side(weights.decoder),
        **{name: getattr(weights, name) for name in numbers},
    )


def _side(side: SideShape) -> _Side:
    return _Side(**vars(side))


__all__ = ["PRECISIONS", "Call", "Output", "Packed", "available", "instructions"]
