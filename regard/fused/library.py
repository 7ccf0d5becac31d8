"""The native loops of training behind ctypes: where they lie, how a call is laid out, who may use them.

They are built at installation where there is a C++ compiler (`setup.py`). Without them, and for tensors that
they do not know, training computes the same by torch: beside every use stands its readable twin. The loops
run on torch's own threads. After this file: one file an operation.
"""

import ctypes
import functools
import importlib.util
import os
from collections.abc import Sequence
from ctypes import Structure, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any

import torch
from torch import Tensor

VERSION = 2  # of the calls below; a library that was built from other sources is not used
MODULE = "regard.fused._native"
OFF = "REGARD_NO_NATIVE"  # in the environment: do as if there were no library
KINDS = {torch.float32: 0, torch.bfloat16: 1}  # the numbers of loops.h
PATHS = ("portable", "avx2", "avx512")


class Heads(Structure):
    """A tensor (batch, length, heads, width) whose last step is 1."""

    _fields_ = [("data", c_void_p), *((name, c_int64) for name in ("batch", "length", "head"))]


class Attention(Structure):
    """One attention, forward or backward."""

    _fields_ = [
        *((name, c_int32) for name in ("kind", "causal")),
        *((name, c_int64) for name in ("rows", "heads", "queries", "keys", "width")),
        *((name, c_int64) for name in ("before", "after")),
        ("scale", c_float),
        ("seen", c_void_p),
        ("seen_step", c_int64),
        *((name, Heads) for name in ("q", "k", "v", "out", "grad", "grad_q", "grad_k", "grad_v")),
    ]


class Norm(Structure):
    """One layer norm, forward or backward."""

    _fields_ = [
        ("kind", c_int32),
        *((name, c_int64) for name in ("rows", "width")),
        ("epsilon", c_float),
        *((name, c_void_p) for name in ("x", "gain", "bias", "y", "mean", "scale", "passed")),
        *((name, c_void_p) for name in ("grad_x", "partial")),
    ]


class Dropout(Structure):
    """residual + dropout(y), or the gradient of the second."""

    _fields_ = [
        *((name, c_int32) for name in ("y_kind", "out_kind")),
        ("size", c_int64),
        ("seed", c_uint64),
        ("cut", c_uint32),
        ("factor", c_float),
        *((name, c_void_p) for name in ("residual", "y", "out")),
    ]


class Turn(Structure):
    """Rotary positions, or their gradient."""

    _fields_ = [
        ("kind", c_int32),
        *((name, c_int64) for name in ("rows", "heads", "length", "width")),
        ("sign", c_float),
        ("table", c_void_p),
        ("from_", Heads),
        ("to", Heads),
    ]


class CrossEntropy(Structure):
    """The loss of some rows of logits, which become their gradients."""

    _fields_ = [
        ("kind", c_int32),
        *((name, c_int64) for name in ("rows", "width")),
        ("smoothing", c_float),
        ("wanted", c_int32),
        *((name, c_void_p) for name in ("targets", "logits", "losses")),
    ]


class Rounds(Structure):
    """What makes matrices orthogonal: the numbers a, b and c of each round."""

    _fields_ = [(name, c_float * 3) for name in ("a", "b", "c")]


class Move(Structure):
    """A step of Muon for one matrix."""

    _fields_ = [
        *((name, c_void_p) for name in ("weight", "grad", "past")),
        *((name, c_int64) for name in ("rows", "columns")),
        *((name, c_float) for name in ("fresh", "keep", "rate")),
    ]


class Span(Structure):
    """One of several tensors."""

    _fields_ = [("data", c_void_p), ("size", c_int64)]


@functools.cache
def _library() -> Any:
    """The library, ready to be called; None where there is none or it is another version's."""
    if os.environ.get(OFF):
        return None
    found = importlib.util.find_spec(MODULE)
    if found is None or found.origin is None:
        return None
    try:
        library = ctypes.CDLL(found.origin)
        if library.regard_fused_version() != VERSION:
            return None
    except (OSError, AttributeError):
        return None
    library.regard_fused_begin.argtypes = [c_void_p, c_int32]
    library.regard_fused_muon.argtypes = [c_int32, c_void_p, c_void_p, c_int64]
    library.regard_fused_norms.argtypes = [c_int32, c_void_p, c_int64, c_void_p]
    library.regard_fused_scale.argtypes = [c_int32, c_void_p, c_int64, c_float]
    library.regard_fused_begin(_parallel(), _widest())
    return library


def _parallel() -> int | None:
    """The address of what runs a function on the threads of torch's OpenMP; None: one thread alone."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, c_void_p).value
    except (OSError, AttributeError):
        return None


def _widest() -> int:
    """The path that goes with torch's own, so that what limits torch's instructions limits ours."""
    capability = torch.backends.cpu.get_cpu_capability()
    return 2 if capability.startswith("AVX512") else int(capability == "AVX2")


def choose(path: str | None = None) -> str:
    """Take a path by its name, or again the widest one; the one taken, for this processor may lack it."""
    number = _widest() if path is None else PATHS.index(path)
    return PATHS[_library().regard_fused_begin(_parallel(), number)]


def available() -> bool:
    """Whether there are native loops."""
    return _library() is not None


def dots() -> bool:
    """Whether there are native loops that multiply pairs of bf16."""
    return available() and bool(_library().regard_fused_dots())


def knows(*tensors: Tensor) -> bool:
    """Whether the loops can work on such tensors."""
    return available() and all(x.device.type == "cpu" and x.dtype in KINDS for x in tensors)


def call(name: str, layout: Structure, *numbers: int) -> None:
    """Run a loop on torch's threads."""
    getattr(_library(), f"regard_fused_{name}")(torch.get_num_threads(), ctypes.byref(layout), *numbers)


def call_for(name: str, table: Sequence[Structure], *numbers: float, first: Structure | None = None) -> None:
    """Run a loop for each of several layouts on torch's threads."""
    rows = (type(table[0]) * len(table))(*table)
    before = () if first is None else (ctypes.byref(first),)
    run = getattr(_library(), f"regard_fused_{name}")
    run(torch.get_num_threads(), *before, rows, len(rows), *numbers)


def heads(x: Tensor) -> Heads:
    """A tensor (B, H, T, K) as the loops see it."""
    batch, head, length, _ = x.stride()
    return Heads(x.data_ptr(), batch, length, head)
