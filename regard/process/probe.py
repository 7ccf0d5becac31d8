"""A program of its own that may die: it tries products that this processor claims to be able to do.

    python -P probe.py torch fp32 bf16          python -P probe.py LIBRARY.so avx2 avx512

One line an answer, written as soon as it is known: the name, the seconds of a larger product, and numbers
that are right only if the products were. Whoever asks knows them too (`expected`), so a processor that
computes rubbish is found out. Instructions that are killed end this process and no other. Before it:
`survival.py`, which starts it. It imports nothing of Regard.
"""

import contextlib
import os
import sys
import time
from typing import Any

SIDE = 64  # of the matrices: large enough for tiles; sums of that many signs are exact in bf16
WIDE = 384  # of those whose product is timed


def left(i: int, j: int) -> int:
    """A matrix of -1, 0 and 1 without a pattern."""
    return (7 * i + 31 * j + i * j * j) % 101 % 3 - 1


def right(i: int, j: int) -> int:
    """Another one."""
    return (43 * i + 5 * j + i * i * j) % 103 % 3 - 1


def expected() -> list[int]:
    """(left @ right) @ (1, 2, ..., SIDE), then the columns of `right` summed, by plain integers."""
    along = range(SIDE)
    weighed = [sum(right(i, j) * (j + 1) for j in along) for i in along]
    return [sum(left(i, j) * weighed[j] for j in along) for i in along] + [
        sum(right(i, j) for i in along) for j in along
    ]


def torch_answer(name: str) -> list[object]:
    """Products, attention and gradients by torch in one precision."""
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[name]
    along = range(SIDE)
    a, b = (torch.tensor([[f(i, j) for j in along] for i in along], dtype=kind) for f in (left, right))
    a.requires_grad_()
    product = a @ b
    torch.autograd.grad((product * 0 + torch.nn.functional.linear(a, b)).sum(), a)
    # Queries of zeros see all keys alike, with weights of 1/64: the result is the mean of the values.
    q, k, v = (x.detach()[None, None] for x in (a * 0, a, b))
    even = torch.nn.functional.scaled_dot_product_attention(q, k, v)[0, 0]
    rows = [[round(value * SIDE) for value in row] for row in even.tolist()]
    weighed = [sum(int(value) * (j + 1) for j, value in enumerate(row)) for row in product.tolist()]
    return [_seconds(torch, kind), *weighed, *(rows[0] if rows == rows[:1] * SIDE else [])]


def _seconds(torch: Any, kind: Any) -> float:
    """The best of some larger products."""
    a = torch.ones(WIDE, WIDE, dtype=kind)
    best = float("inf")
    for _ in range(16):
        began = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - began)
    return best


def engine_answer(library: Any, name: str) -> list[object]:
    """One path of the engine against the library's own plain loops: 0 where they agree (native/trial.h)."""
    return [0.0, int(library.regard_try(name.encode()))]


def misbehave(name: str) -> bool:
    """Act as a simulated machine (REGARD_SIMULATE=WHAT:HOW); True where that was the answer.

    Tiles are what torch uses for bf16 unless it is held back.
    """
    what, _, how = os.environ.get("REGARD_SIMULATE", "").partition(":")
    if what != name and not (what == "tiles" and name == "bf16" and "ONEDNN_MAX_CPU_ISA" not in os.environ):
        return False
    if how == "die":
        import signal

        os.kill(os.getpid(), signal.SIGILL)
    elif how == "hang":
        time.sleep(1000)
    elif how == "lie":
        print(name, 0.001, *range(2 * SIDE), flush=True)
    return how == "lie"


def main(who: str, names: list[str]) -> None:
    """Answer for each name in turn."""
    with contextlib.suppress(ImportError):  # not on Windows, which keeps no cores
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # to die here is no accident
    library = None
    if who != "torch":
        import ctypes

        library = ctypes.CDLL(who)
    for name in names:
        if not misbehave(name):
            found = engine_answer(library, name) if library else torch_answer(name)
            print(name, *found, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
