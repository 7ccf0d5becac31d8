"""Scores and positions: how far they are from naive loops, and what the two dearest cost in training.

Every kind computes self-attention in fp32; the oracle is a loop over queries, keys and heads in fp64 with the
same weights. Then one training step (forward and backward) of multi-head self-attention at T = 128, D = 256
with the additive score and with Shaw's relative positions against scaled dot in the readable path, in turn.

    python benchmarks/family_core.py --rounds 15
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from report import write_report
from torch import Tensor, nn

from regard.attention import MultiHead
from regard.attention.additive import HIDDEN
from regard.attention.alibi import slopes
from regard.attention.attend import SHORT
from regard.attention.positions import build_relations
from regard.attention.site import reading
from regard.attention.structural import Trees, trees
from regard.config import PositionsConfig
from regard.kinds import SCORES
from regard.process.allocator import keep_freed_memory

B, H, T, K, CLIP = 2, 3, 23, 16, 4
LENGTH, WIDTH, HEADS, ROWS = 128, 256, 4, 8


def score_of(kind: str, module: nn.Module, h: int, q: Tensor, k: Tensor) -> Tensor:
    """One score, as the papers write it."""
    if kind == "dot":
        return q @ k
    if kind == "scaled-dot":
        return q @ k / math.sqrt(K)
    own = {name: weight.detach().double()[h] for name, weight in module.named_parameters()}
    if kind == "cosine":
        return own["log_scale"].exp().squeeze() * (q @ k) / (q.norm() * k.norm())
    if kind == "general":
        return q @ own["weight"] @ k / math.sqrt(K)
    return own["value"][0] @ (own["query"] @ q + own["key"] @ k).tanh()


def turned(x: Tensor, place: int) -> Tensor:
    """A query or key turned plane by plane."""
    out = x.clone()
    for m in range(K // 2):
        angle = place * 10000.0 ** (-2 * m / K)
        left, right = x[m], x[m + K // 2]
        out[m] = left * math.cos(angle) - right * math.sin(angle)
        out[m + K // 2] = right * math.cos(angle) + left * math.sin(angle)
    return out


def naive(heads: MultiHead, score: str, kind: str, x: Tensor, heads_of: Tensor) -> Tensor:
    """Self-attention of x (B, T, D), one pair at a time."""
    heads = heads.double()
    x = x.double()
    q, (k, v) = heads.query(x), heads.key_value(x).chunk(2, -1)
    q, k, v = (each.view(B, T, H, K).detach() for each in (q, k, v))
    tree = Trees.of(heads_of).distance
    vectors = {name: weight.detach() for name, weight in heads.positions.named_parameters()}
    joined = torch.zeros(B, T, H, K, dtype=torch.double)
    for b in range(B):
        for h in range(H):
            for i in range(T):
                scores, values = [], []
                for j in range(T):
                    query, key, value = q[b, i, h], k[b, j, h], v[b, j, h]
                    if kind == "rotary":
                        query, key = turned(query, i), turned(key, j)
                    e = score_of(score, heads.score, h, query, key)
                    if kind == "alibi":
                        e = e - slopes(H)[h] * abs(i - j)
                    if kind in ("relative", "structural"):
                        d = j - i if kind == "relative" else int(tree[b, i, j])
                        d = max(-CLIP, min(CLIP, d)) + CLIP
                        e = e + query @ vectors["key_embedding"][d] / math.sqrt(K)
                        value = value + vectors["value_embedding"][d]
                    scores.append(e)
                    values.append(value)
                joined[b, i, h] = torch.stack(scores).softmax(0) @ torch.stack(values)
    return heads.out(joined.flatten(2)).detach()


def chain_trees() -> Tensor:
    """Heads of B sentences of T tokens: each hangs on one of the three that follow."""
    heads = torch.full((B, T), T)
    for b in range(B):
        for t in range(T - 1):
            heads[b, t] = min(T - 1, t + 1 + (t * (b + 2)) % 3)
    return heads


def difference(score: str, kind: str) -> float:
    torch.manual_seed(1)
    config = PositionsConfig(kind=kind, clip=CLIP)
    heads = MultiHead(H * K, H, score=score, positions=build_relations(config, reading(0), H, K))
    for weight in [*heads.score.parameters(), *heads.positions.parameters()]:
        nn.init.normal_(weight, std=0.3)
    x, heads_of = torch.randn(B, T, H * K), chain_trees()
    with torch.no_grad(), trees(heads_of):
        fast = heads(x, heads.keys_values(x))
    return float((fast - naive(heads, score, kind, x, heads_of)).abs().max())


def steps(rounds: int) -> dict[str, list[float]]:
    """Seconds of training steps, one of each kind a round."""
    relative = build_relations(PositionsConfig(kind="relative"), reading(0), HEADS, WIDTH // HEADS)
    kinds: dict[str, Any] = {
        "scaled dot, readable path": MultiHead(WIDTH, HEADS),
        "relative (Shaw), clip 16": MultiHead(WIDTH, HEADS, positions=relative),
        f"additive, {HIDDEN} units a head": MultiHead(WIDTH, HEADS, score="additive"),
    }
    assert LENGTH * LENGTH <= SHORT, "with gradients this length takes the readable path"
    x = torch.randn(ROWS, LENGTH, WIDTH, requires_grad=True)

    def step(heads: Callable[..., Tensor] | Any) -> float:
        began = time.perf_counter()
        heads.zero_grad()
        heads(x, heads.keys_values(x)).square().mean().backward()
        return time.perf_counter() - began

    for heads in kinds.values():
        step(heads)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, heads in kinds.items():
            times[name].append(step(heads))
    return times


def main() -> None:
    keep_freed_memory()  # as every training run does
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rows = [
        [f"largest difference from the loop: score {score}", f"{difference(score, 'none'):.1e}", "1e-5"]
        for score in SCORES
    ]
    rows += [
        [
            f"largest difference from the loop: positions {kind}",
            f"{difference('scaled-dot', kind):.1e}",
            "1e-5",
        ]
        for kind in ("relative", "rotary", "alibi", "structural")
    ]
    times = steps(options.rounds)
    base = next(iter(times.values()))
    for name, own in times.items():
        ratio = statistics.median(a / b for a, b in zip(own, base, strict=True))
        figure = f"{statistics.median(own) * 1e3:.1f} ms, {ratio:.2f}×"
        rows.append([f"training step, T = {LENGTH}, D = {WIDTH}: {name}", figure, "2×"])
    note = (
        f"Steps: {ROWS} sequences, {HEADS} heads, forward and backward, {torch.get_num_threads()} threads, "
        f"median of {options.rounds} rounds in turn; the ratio is the median of the rounds' own ratios. "
        "Sinusoidal and learned positions act on the embeddings alone; tests hold their formulas to 1e-6."
    )
    write_report("family_core", "Scores and positions", ["what", "measured", "at most"], rows, note)


if __name__ == "__main__":
    main()
