"""The learning rate as a pure function of progress: up during the warm-up, then down, or not.

Progress is the share of the run that is done, 0 to 1 (budget.py measures it); the warm-up is a share
too. "linear" and "cosine" reach zero exactly where the run ends. "inverse-sqrt" is the shape of
Vaswani et al. 2017, section 5.3, with its peak at 1. The loop multiplies the peak rate by the factor.
"""

import math

DEFAULT_WARMUP = 0.05  # share of the run, where no number of steps is asked for


def factor(kind: str, progress: float, warmup: float) -> float:
    """The share of the peak learning rate at `progress`, between 0 and 1.

    >>> [factor("linear", progress, 0.5) for progress in (0.25, 0.5, 0.75, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    if kind == "constant":
        return 1.0
    if kind == "inverse-sqrt":
        return math.sqrt(warmup / progress) if warmup > 0 else 1.0
    if warmup >= 1:
        return 1.0
    left = max(0.0, (1 - progress) / (1 - warmup))
    if kind == "linear":
        return left
    assert kind == "cosine", kind
    return 0.5 * (1 - math.cos(math.pi * left))


def warmup_share(steps: int, *, done: float, progress: float) -> float:
    """A warm-up of `steps` as a share of the run, judged by the share that `done` steps have taken.

    Where progress goes with the steps this is exactly steps / total; where it goes with the clock it
    follows the speed, so that a warm-up in steps keeps its length in steps.
    """
    if steps == 0:
        return DEFAULT_WARMUP
    return progress * steps / done
