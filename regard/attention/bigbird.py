"""BigBird: blocks of queries see a window of blocks, a few global ones and a few at random.

The first `hubs` blocks see all and are seen by all, so any two places are two steps apart; the random
ones are drawn from a seed, anew for each head and layer (Zaheer et al. 2020, 2 and appendix D). Which
blocks a row has depends on its own length alone, so padding and batch neighbours change nothing: that is
why the global blocks are the first ones. The twin is a mask on ordinary attention (`dense`).
"""

import zlib
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.attend import attend, attend_readable
from regard.attention.blocks import Plan, attend_blocks, show_blocks
from regard.attention.kernel import Kernel, keys_seen, short, without_bias
from regard.attention.masks import block_mask, join
from regard.attention.site import Site
from regard.attention.sparse import Part, SparseWeights
from regard.config import AttentionConfig


class BigBird(Kernel):
    """`window` blocks around a block, itself counted; `hubs` first blocks; `randoms` drawn ones."""

    def __init__(self, block: int, *, window: int, hubs: int, randoms: int, seed: int = 0) -> None:
        super().__init__()
        self.block, self.around = block, window // 2
        self.hubs, self.randoms, self.seed = hubs, randoms, seed

    def fit(self, n_heads: int, name: str) -> None:
        self.seed += zlib.crc32(name.encode())

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        if q.device.type == "cuda":
            from regard.attention.flex import attend_flex, block_rule

            seen = self.seen(q, options.get("mask"))
            return attend_flex(q, k, v, block_rule(seen, self.block), dense=self.dense, **options)
        first = self.hubs * self.block  # queries that see everything
        if short(q, k):
            return self.dense(q, k, v, **options)[0]
        if q.shape[-2] <= first:
            return attend(q, k, v, **options)
        factors = without_bias("bigbird", q, k, options)
        real, plan = self._plan(q, options.get("mask"))
        rest = attend_blocks(
            factors[0][:, :, first:],
            factors[1],
            v,
            real=real,
            plan=plan,
            dropout=options.get("dropout", 0.0),
        )
        if not first:
            return rest
        whole = attend(q[:, :, :first], k, v, **options)
        return torch.cat([whole.transpose(1, 2), rest.transpose(1, 2)], 1).transpose(1, 2)

    def show(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Any]:
        """The same with its weights: (B, H, T, S) where that is short, else sparse ones."""
        first = self.hubs * self.block
        if short(q, k) or q.shape[-2] <= first:
            return self.dense(q, k, v, **options)
        out = self(q, k, v, **options)
        factors = without_bias("bigbird", q, k, options)
        real, plan = self._plan(q, options.get("mask"))
        values, places = show_blocks(factors[0][:, :, first:], factors[1], real=real, plan=plan)
        parts = [Part(first, values[:, :, : q.shape[-2] - first], places, self.block)]
        if first:
            _, whole = attend_readable(q[:, :, :first], k, v, **(options | {"dropout": 0.0}))
            every = torch.arange(k.shape[-2], device=q.device).expand(*q.shape[:2], 1, -1)
            parts.insert(0, Part(0, whole, every, first))
        return out, SparseWeights(tuple(parts), (*q.shape[:3], k.shape[-2]))

    def dense(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        """The twin: the blocks as a mask on ordinary attention; (output, weights (B, H, T, S))."""
        seen = self.seen(q, options.get("mask"))
        mask = join(options.get("mask"), block_mask(seen, self.block, q.shape[-2], k.shape[-2]))
        return attend_readable(q, k, v, **(options | {"mask": mask}))

    def seen(self, q: Tensor, mask: Tensor | None) -> Tensor:
        """Which blocks (B, H, N, N) each block sees."""
        further = self._further(q, mask)
        blocks = further.shape[2]
        numbers = torch.arange(blocks, device=q.device)
        seen = (numbers - numbers[:, None]).abs() <= self.around
        seen = seen | (numbers < self.hubs) | (numbers < self.hubs)[:, None]
        seen = torch.cat([seen, seen.new_zeros(blocks, 1)], 1).expand(*further.shape[:3], -1).clone()
        return seen.scatter_(-1, further % (blocks + 1), True)[..., :blocks]  # -1 falls off at the end

    def _plan(self, q: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Plan]:
        """The keys that are real (B, S), and what the blocks after the global ones see."""
        real = keys_seen("bigbird", mask)
        reach, first = self.around * self.block, self.hubs
        return real, Plan(
            self.block, reach, reach, first * self.block, further=self._further(q, mask)[:, :, first:]
        )

    def _further(self, q: Tensor, mask: Tensor | None) -> Tensor:
        """The blocks (B, H, N, hubs + randoms) that each block sees beside its window; -1: none."""
        rows, heads, queries, _ = q.shape
        real = keys_seen("bigbird", mask)
        most = -(-queries // self.block)
        places = torch.arange(1, queries + 1)
        lengths = [queries] if real is None else [int((row.cpu() * places).max()) for row in real]
        tables = [self._table(most, -(-length // self.block), heads) for length in lengths]  # (H, N, M)
        return torch.stack(tables).expand(rows, -1, -1, -1).to(q.device)

    def _table(self, blocks: int, real: int, heads: int) -> Tensor:
        return further_blocks(blocks, real, heads, (self.around, self.hubs, self.randoms), self.seed)


@lru_cache(maxsize=256)
def further_blocks(blocks: int, real: int, heads: int, sees: tuple[int, int, int], seed: int) -> Tensor:
    """The global and random blocks (H, N, M) that each block sees beside its window; -1: none.

    `sees` is how many blocks on either side, global and random ones. The latter are drawn without
    repetition from the `real` blocks that are neither global nor in the window.
    """
    around, hubs, randoms = sees
    own = np.arange(blocks)  # (N,)
    low = np.maximum(own - around - hubs, 0)  # candidates before the window
    resume = np.maximum(own + around + 1, hubs)  # the first candidate after it
    many = np.where(own < real, low + np.maximum(real - resume, 0), 0)
    draws = np.random.Generator(np.random.Philox(seed)).random((blocks, heads, randoms)).swapaxes(0, 1)
    nowhere = np.iinfo(np.int64).max // 2  # sorts behind every block
    picked = np.empty((heads, blocks, 0), np.int64)
    for turn in range(randoms):
        left = many - turn
        pick = np.minimum((draws[..., turn] * left).astype(np.int64), left - 1)
        for earlier in np.moveaxis(np.sort(picked, -1), -1, 0):
            pick = pick + (pick >= earlier)
        picked = np.concatenate([picked, np.where(left > 0, pick, nowhere)[..., None]], -1)
    before = picked < low[:, None]
    chosen = np.where(before, hubs + picked, (resume - low)[:, None] + picked)
    every = np.broadcast_to(np.arange(hubs), (heads, blocks, hubs))
    near = (np.abs(every - own[:, None]) <= around) | (every >= blocks)
    table = [np.where(near, -1, every), np.where(picked < nowhere, chosen, -1)]
    return torch.from_numpy(np.concatenate(table, -1))


def bigbird(config: AttentionConfig, site: Site) -> Kernel:
    """The blocks that the config asks for, where all places see each other."""
    if site.kind == "cross" or site.causal:
        return Kernel()
    return BigBird(
        config.block,
        window=config.window_blocks,
        hubs=config.global_blocks,
        randoms=config.random_blocks,
        seed=config.seed,
    )
