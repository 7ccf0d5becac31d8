"""How a call of the native library is laid out: the structures of its C headers, and its functions.

Before this file: `path.py`, which finds the library; after it: `library.py`, a Python function a C function.
"""

import functools
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from typing import Any

from regard.engine.path import compiled


class Side(Structure):
    _fields_ = [(name, c_int32) for name in ("layers", "heads", "kv_heads", "width", "d_ff")] + [
        ("score_scale", c_float)
    ]


class Shape(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("d_model", "source_vocab", "target_vocab", "activation")),
        *((name, c_int32) for name in ("gated", "post_norm", "precision")),
        *((name, c_int32) for name in ("planes", "drafts", "pairs")),
        *((name, c_float) for name in ("eps", "source_scale", "target_scale", "pair_scale")),
        ("encoder", Side),
        ("decoder", Side),
    ]


class Tensor(Structure):
    _fields_ = [("weight", c_void_p), ("bias", c_void_p), ("rows", c_int32), ("columns", c_int32)]


class Lists(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("starts", "ids", "always", "never", "sample")),
        *((name, c_int32) for name in ("sources", "always_count", "never_count", "sample_count")),
        *((name, c_int32) for name in ("rest", "copies")),
    ]


class Request(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("count", "slots", "threads", "beam", "n_best", "begin", "end")),
        *((name, c_int32) for name in ("vocab_size", "banned_count")),
        *((name, c_double) for name in ("penalty", "worth")),
        *((name, c_void_p) for name in ("ids", "starts", "least", "most", "banned")),
        *((name, c_void_p) for name in ("places", "cancel", "out_starts")),
        *((name, c_void_p) for name in ("out_ids", "out_lengths", "out_counts", "out_passes")),
        *((name, c_void_p) for name in ("out_scores", "out_cut")),
    ]


class Read(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("rows", "threads")),
        *((name, c_void_p) for name in ("ids", "starts", "lengths", "last", "before", "after")),
        *((name, c_void_p) for name in ("places", "logits", "memory", "heard", "listened")),
    ]


class Encode(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("rows", "threads", "pooling")),
        *((name, c_void_p) for name in ("ids", "starts", "asked", "asked_starts", "places", "out")),
    ]


class Fill(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("rows", "threads", "limit", "banned_count", "encode")),
        *((name, c_int32) for name in ("at_once", "unknown")),
        *((name, c_void_p) for name in ("ids", "starts", "memory", "states", "lengths", "banned")),
        *((name, c_void_p) for name in ("places", "signs", "out_ids", "out_logp", "logits")),
    ]


@functools.cache
def library() -> Any:
    """The library with its calls laid out."""
    found = compiled()
    found.regard_make.restype = c_void_p
    found.regard_make.argtypes = [POINTER(Shape), POINTER(Tensor), c_int32, c_char_p]
    found.regard_free.argtypes = [c_void_p]
    found.regard_narrow.argtypes = [c_void_p, POINTER(Lists)]
    found.regard_translate.argtypes = [c_void_p, POINTER(Request)]
    found.regard_read.argtypes = [c_void_p, POINTER(Read)]
    found.regard_fill.argtypes = [c_void_p, POINTER(Fill)]
    found.regard_forget.argtypes = [c_void_p]
    found.regard_encode.argtypes = [c_void_p, POINTER(Encode)]
    found.regard_bound.argtypes = [c_int64]
    found.regard_bound.restype = None
    found.regard_held.restype = c_int64
    return found
