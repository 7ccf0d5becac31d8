"""Another sampling rate: each new sample is a windowed sinc over the old ones around its place.

    y(t) = Σ_k x(k) h(t - k),   h = c sinc(c t) kaiser(t / w),   c = 0.95 min(1, new / old)

The place of a new sample between two old ones repeats after new / gcd(old, new) samples, so the weights of
every place are one table. A stream is resampled block by block and gives what the whole would give (Smith,
Digital Audio Resampling). Used by `sound.py`; the slow twin, a plain sum, is in the tests.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

Samples = npt.NDArray[np.float32]  # (L,) one channel, full scale is 1

ZEROS = 16  # zero crossings of the sinc on either side
ROLLOFF = 0.95  # of the lower Nyquist frequency is kept
BETA = 9.0  # of the Kaiser window: what is folded back is 90 dB down
BLOCK = 1 << 15  # new samples that are made at a time
KERNEL = 1 << 20  # weights at most of one strided product for all places; odd ratios are gathered
TABLE = 1 << 21  # weights at most of all places; a ratio odder than that is a little off, by less than 1e-6


class Resampler:
    """Samples at `old` Hz in, samples at `new` Hz out, as they come."""

    def __init__(self, old: int, new: int) -> None:
        cut = ROLLOFF * min(1.0, new / old)
        self.reach = math.ceil(ZEROS / cut)  # old samples on either side
        taps = np.arange(-self.reach, self.reach + 1)
        ratio, most = Fraction(new, old), TABLE // len(taps)
        if ratio.numerator > most:
            ratio = ratio.limit_denominator(max(1, most * old // new))
        self.up, self.down = ratio.numerator, ratio.denominator  # new sample n stands at n · down / up
        self.block = max(1, min(BLOCK, TABLE // len(taps)))
        phases = np.arange(self.up)[:, None] / self.up  # how far past an old sample
        away = taps - phases  # (up, taps)
        window = np.i0(BETA * np.sqrt(np.clip(1 - (away / (self.reach + 1)) ** 2, 0, None))) / np.i0(BETA)
        weights = cut * np.sinc(cut * away) * window
        self.weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
        self.kernel = self._kernel() if self.up * (len(taps) + self.down) <= KERNEL else None
        self.held: Samples = np.zeros(self.reach, np.float32)  # old samples from `start` on
        self.start, self.made, self.read = -self.reach, 0, 0

    def push(self, block: Samples) -> Samples:
        """The new samples that these old ones complete."""
        self.held = np.concatenate([self.held, block])
        self.read += len(block)
        return self._make(self.read - self.reach)

    def flush(self) -> Samples:
        """The last ones: beyond the end there is silence."""
        self.held = np.concatenate([self.held, np.zeros(2 * self.reach + 1, np.float32)])
        return self._make(self.read)

    def _make(self, end: int) -> Samples:
        """New samples up to those that stand before the old sample `end`."""
        until = -(-max(0, end) * self.up // self.down)
        parts = []
        while self.made < until:
            most = min(until, self.made + self.block)
            parts.append(self._gathered(most) if self.kernel is None else self._strided(most))
            self.made = most
        done = self.made // self.up * self.down - self.reach  # the first that is still looked at
        if done > self.start:
            self.held, self.start = self.held[done - self.start :], done
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def _gathered(self, until: int) -> Samples:
        """New samples up to `until`, each the sum over its own old ones."""
        place, phase = np.divmod(np.arange(self.made, until, dtype=np.int64) * self.down, self.up)
        rows = np.lib.stride_tricks.sliding_window_view(self.held, self.weights.shape[1])
        made: Samples = np.einsum("nk,nk->n", rows[place - self.reach - self.start], self.weights[phase])
        return made

    def _strided(self, until: int) -> Samples:
        """The same in one product: `up` new samples for every `down` old ones."""
        assert self.kernel is not None
        first, last = self.made // self.up, -(-until // self.up)  # rounds of `up`
        begin = first * self.down - self.reach - self.start
        need = (last - first - 1) * self.down + self.kernel.shape[-1]
        held = self.held[max(0, begin) :][: need + min(0, begin)]
        held = np.pad(held, (max(0, -begin), max(0, need - max(0, -begin) - len(held))))
        made = F.conv1d(torch.from_numpy(held)[None, None], self.kernel, stride=self.down)  # (1, up, rounds)
        flat: Samples = made[0].t().reshape(-1).numpy()
        return flat[self.made - first * self.up : until - first * self.up]

    def _kernel(self) -> torch.Tensor:
        """The weights of `up` new samples over the old ones of one round: (up, 1, taps + down)."""
        kernel = np.zeros((self.up, 1, self.weights.shape[1] + self.down), np.float32)
        for phase, place in enumerate(np.arange(self.up) * self.down // self.up):
            row = self.weights[phase * self.down % self.up]
            kernel[phase, 0, place : place + len(row)] = row
        return torch.from_numpy(kernel)


def resampled(blocks: Iterable[Samples], old: int, new: int) -> Iterator[Samples]:
    """Blocks of samples at another rate; as they are where it is the same."""
    if old == new:
        yield from blocks
        return
    resampler = Resampler(old, new)
    for block in blocks:
        yield resampler.push(block)
    yield resampler.flush()
