"""The long kernels: growth of time and memory, speed against full attention and against their peers.

Every measurement is a process of its own, so that its peak is its own: `--one` runs it. D = 256, 4 heads,
forward and backward. Peers: PyPI's `local-attention` and the block-sparse attention of transformers' BigBird.

    pip install local-attention transformers
    python benchmarks/long.py
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from report import write_report
from torch import Tensor

from regard.attention.site import reading
from regard.compare.trial import peak_megabytes

D, H, WINDOW, BLOCK, RANK = 256, 4, 256, 64, 256
LENGTHS = (2048, 4096, 8192, 16384, 32768, 65536)
KINDS = ("local", "bigbird", "linformer")
GOALS = ("10, aim 25", "5, aim 12", "10, aim 25")  # times as fast as full attention

Call = Callable[[Tensor, Tensor, Tensor], Tensor]


def kernel(kind: str, length: int) -> Call:
    """The kernel of that kind, or its peer, as a function of q, k, v (1, H, T, K)."""
    if kind == "sdpa":
        return torch.nn.functional.scaled_dot_product_attention
    if kind == "local-attention":
        return local_attention()
    if kind == "transformers":
        return transformers_bigbird(length)
    from regard.attention.kernel import build_kernel
    from regard.config import AttentionConfig

    config = AttentionConfig(kind=kind, window=WINDOW, block=BLOCK, rank=RANK, max_length=max(length, RANK))
    built = build_kernel(config, reading(0))
    built.fit(H, "encoder.0.self")
    return built


def local_attention() -> Call:
    """The peer, with the same window: exactly WINDOW places to either side."""
    from local_attention import LocalAttention

    peer = LocalAttention(
        dim=D // H,
        window_size=WINDOW,
        look_backward=1,
        look_forward=1,
        causal=False,
        exact_windowsize=True,
        use_rotary_pos_emb=False,
    )
    return lambda q, k, v: peer(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)).view_as(q)


def transformers_bigbird(length: int) -> Call:
    """The peer: 3 window, 2 global and 3 random blocks of BLOCK, in training mode."""
    from transformers import BigBirdConfig
    from transformers.models.big_bird import modeling_big_bird as theirs

    config = BigBirdConfig(
        hidden_size=D,
        num_attention_heads=H,
        block_size=BLOCK,
        num_random_blocks=3,
        max_position_embeddings=length,
        attention_probs_dropout_prob=0.0,
    )
    peer = theirs.BigBirdBlockSparseAttention(config, seed=0)
    real = torch.ones(1, length)
    masks = theirs.BigBirdModel.create_masks_for_block_sparse_attn(real, BLOCK)

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, _ = peer.bigbird_block_sparse_attention(
            q, k, v, masks[1], masks[2], masks[3], masks[0], masks[0], H, 3, D // H, BLOCK, BLOCK,
            1, length, length, seed=0, plan_from_length=None, plan_num_rand_blocks=None,
        )  # fmt: skip
        return out.transpose(1, 2)

    return call


def layer(kind: str, length: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """One encoder layer (d_ff 1024) of that kind, and its input (1, T, D)."""
    from regard.attention import MultiHead
    from regard.attention.kernel import build_kernel
    from regard.config import AttentionConfig
    from regard.layers import EncoderLayer

    config = AttentionConfig(kind=kind, window=WINDOW, block=BLOCK, rank=RANK, max_length=length)
    heads = MultiHead(D, H, kernel=build_kernel(config, reading(0)))
    return EncoderLayer(heads, D, 4 * D, norm="pre", dropout=0.0), torch.randn(1, length, D)


def measure(kind: str, length: int, rounds: int) -> dict[str, float]:
    """Median seconds, and the peak in MB above what stood before the first call."""
    torch.manual_seed(0)
    what, _, whole = kind.partition(" ")
    if whole:
        call, x = layer(what, length)
        inputs = (x.requires_grad_(),)
    else:
        call = kernel(kind, length)  # type: ignore[assignment]
        inputs = tuple(torch.randn(1, length, H, D // H).transpose(1, 2).requires_grad_() for _ in range(3))
    before = peak_megabytes()
    seconds = []
    for number in range(rounds + 1):
        start = time.perf_counter()
        out = call(*inputs)
        out.backward(torch.ones_like(out))
        if number:
            seconds.append(time.perf_counter() - start)
        if number == 0:
            above = peak_megabytes() - before
        del out
        for each in inputs:
            each.grad = None
    return {"seconds": statistics.median(seconds) if seconds else 0.0, "peak": above}


def run(kind: str, length: int, rounds: int) -> dict[str, float]:
    """`measure` in a process of its own; glibc gives freed memory back at once there."""
    command = [sys.executable, __file__, "--one", kind, str(length), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} at {length}: {done.stderr.strip().splitlines()[-1]}")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def exponent(lengths: list[int], values: list[float]) -> float:
    """The slope of log value over log length, by least squares."""
    x, y = [math.log(one) for one in lengths], [math.log(one) for one in values]
    return statistics.linear_regression(x, y).slope


def compare(ours: str, theirs: str, length: int, rounds: int, turns: int) -> tuple[float, float]:
    """Median seconds of both, measured in turn."""
    times: dict[str, list[float]] = {ours: [], theirs: []}
    for _ in range(turns):
        for kind in times:
            times[kind].append(run(kind, length, rounds)["seconds"])
    return statistics.median(times[ours]), statistics.median(times[theirs])


def growth(lengths: list[int], rounds: int) -> list[list[str]]:
    rows = []
    for kind in KINDS:
        found = [run(kind, length, rounds) for length in lengths]
        for what, unit in (("seconds", "s"), ("peak", "MB")):
            values = [one[what] for one in found]
            rows.append(
                [
                    f"{kind}: {what}, {lengths[0]:,} to {lengths[-1]:,}",
                    ", ".join(f"{one:.3g}" for one in values) + f" {unit}",
                    f"exponent {exponent(lengths, values):.2f}",
                    "1.15, aim 1.05",
                ]
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    parser.add_argument("--against", type=int, default=16384)
    parser.add_argument("--name", default="long")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.rounds)))
        return
    rows = growth([one for one in LENGTHS if one <= options.longest], options.rounds)
    pairs = [
        *((kind, "sdpa", goal) for kind, goal in zip(KINDS, GOALS, strict=True)),
        ("local", "local-attention", "1.2, aim 2"),
        ("bigbird", "transformers", "2, aim 4"),
    ]
    for ours, theirs, goal in pairs:
        one, other = compare(ours, theirs, options.against, 1, options.turns)
        name = f"{ours} against {theirs}, T = {options.against:,}"
        rows.append([name, f"{one:.3f} s, {other:.3f} s", f"{other / one:.1f}x", goal])
    for kind in KINDS:
        found = run(f"{kind} layer", options.longest, 0)["peak"]
        rows.append(
            [
                f"one encoder layer, {kind}, T = {options.longest:,}: peak",
                f"{found:,.0f} MB",
                "",
                "1,500, aim 500",
            ]
        )
    write_report(
        options.name,
        "Long sequences",
        ["what", "measured", "result", "wanted"],
        rows,
        f"D = {D}, {H} heads, forward and backward. Window {WINDOW} to either side; blocks of {BLOCK}: 3 "
        f"window, 2 global, 3 random; Linformer rank {RANK}. Peaks are resident memory above that before the "
        "first call. "
        "local-attention ran with the same exact window, transformers' BigBird with the same blocks.",
    )


if __name__ == "__main__":
    main()
