"""How fast torch multiplies and memory is copied here: figures for people (`regard machine`)."""

import time
from collections.abc import Callable

import torch

SECONDS = 0.15  # for each figure
SIZES = (1024, 2048, 512)  # rows, columns, what is summed: the inner layer of a base Transformer
COPIED = 2**27  # bytes, more than any cache


def multiplications(kind: torch.dtype) -> float:
    """Operations a second of torch's products on all its threads; multiply and add are two."""
    m, n, k = SIZES
    x, w = torch.ones(m, k, dtype=kind), torch.ones(k, n, dtype=kind)
    return 2 * m * n * k / best(lambda: x @ w)


def bandwidth() -> float:
    """Bytes a second that a copy by torch reads and writes."""
    here = torch.ones(COPIED, dtype=torch.int8)
    there = torch.empty_like(here)
    return 2 * COPIED / best(lambda: there.copy_(here))


def best(work: Callable[[], object]) -> float:
    """The seconds of the quickest of some runs: the one that nobody disturbed."""
    work()
    until = time.perf_counter() + SECONDS
    found = float("inf")
    while (began := time.perf_counter()) < until or found == float("inf"):
        work()
        found = min(found, time.perf_counter() - began)
    return found
