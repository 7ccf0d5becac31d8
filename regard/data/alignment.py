"""Has one of two files slipped? Long lines have long translations, so lengths tell.

Block by block, the correlation of log lengths is taken with the target as it stands and shifted by a
few lines. Where a shift fits clearly better, a line was probably lost or added before it (the idea of
Gale and Church 1993, without their alignment). `check.py` feeds this and reports what it finds.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_BLOCK = 500  # lines; chance correlations in a block stay below about 0.15
_SHIFTS = (-3, -2, -1, 1, 2, 3)
_CLEARLY = 0.2  # how much better a shift must fit
_AT_LEAST = 0.4  # and how well


class Slip(NamedTuple):
    """From about `line` on, source line n seems to belong to target line n + `shift`."""

    line: int
    shift: int
    lines: int  # how many lines seem to be affected

    def __str__(self) -> str:
        lines = "line" if abs(self.shift) == 1 else "lines"
        way = "later" if self.shift > 0 else "earlier"
        return f"from about line {self.line:,} the targets fit {abs(self.shift)} {lines} {way} better"


class SlipDetector:
    """Collects line lengths and looks at them one block at a time; memory for one block only."""

    def __init__(self) -> None:
        self._src: list[int] = []
        self._tgt: list[int] = []
        self._seen = 0
        self._first: Slip | None = None
        self._affected = 0

    def add(self, src_length: int, tgt_length: int) -> None:
        """The lengths of the next line, in characters."""
        self._src.append(src_length)
        self._tgt.append(tgt_length)
        if len(self._src) == _BLOCK:
            self._look()

    def slip(self) -> Slip | None:
        """The first slip in the whole blocks so far, if there is one."""
        return self._first._replace(lines=self._affected) if self._first else None

    def _look(self) -> None:
        shift = best_shift(np.log1p(self._src), np.log1p(self._tgt))
        if shift:
            self._first = self._first or Slip(self._seen + 1, shift, 0)
            self._affected += len(self._src)
        self._seen += len(self._src)
        self._src, self._tgt = [], []


def best_shift(src: npt.NDArray[np.float64], tgt: npt.NDArray[np.float64]) -> int:
    """The shift of `tgt` (L,) that clearly fits `src` (L,) better than none; 0 if there is none."""
    here = _correlation(src, tgt)
    fits = {}
    for shift in _SHIFTS:
        ahead, behind = (src[:-shift], tgt[shift:]) if shift > 0 else (src[-shift:], tgt[:shift])
        fits[shift] = _correlation(ahead, behind)
    best = max(fits, key=lambda shift: fits[shift])
    return best if fits[best] > max(_AT_LEAST, here + _CLEARLY) else 0


def _correlation(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float:
    """Pearson's r; 0 where one side does not vary."""
    left, right = left - left.mean(), right - right.mean()
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale > 1e-9 else 0.0
