"""Training speed of a language model against a plain torch loop in the way of nanoGPT: tokens per second.

Two shapes: nanoGPT's for a laptop (4 layers, d 128, context 64, no dropout) and for a GPU (6 layers, d 384,
context 256, dropout 0.2), the same rows of random characters for both. The peer is written below as people
write it: one product for q, k and v, torch's fused attention, GELU, AdamW; in fp32 and under bf16 autocast.
Ours runs what `regard train --task language` runs, but for the size of its rows and model; its optimiser,
Muon, computes more at each step than AdamW and needs fewer of them, so that there is a row with AdamW, too.

On a machine that others use, `--cpu` counts the seconds of the processor, in one thread, not the clock's.

    python benchmarks/language_speed.py --rounds 3 [--cpu]
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from report import write_report
from torch import Tensor, nn

VOCABULARY = 65
SHAPES = {
    "4 layers, d 128, context 64": (4, 128, 4, 64, 32, 0.0),
    "6 layers, d 384, context 256": (6, 384, 6, 256, 16, 0.2),
}  # layers, d_model, heads, context, rows, dropout
OURS, THEIRS = ("regard bf16", "regard fp32", "regard bf16 adam"), ("plain bf16", "plain fp32")
WAYS = OURS + THEIRS
WARMUP, SECONDS = 3, 6.0


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.qkv(self.before_attention(x)).split(width, 2)
        q, k, v = (each.view(rows, length, self.heads, -1).transpose(1, 2) for each in split)
        seen = F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.rate if self.training else 0.0, is_causal=True
        )
        x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(rows, length, width)))
        return x + self.dropout(self.outer(F.gelu(self.inner(self.before_mlp(x)))))


class Plain(nn.Module):
    """GPT-2 with tied embeddings and learned positions."""

    def __init__(self, layers: int, width: int, heads: int, context: int, dropout: float) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor, goals: Tensor) -> Tensor:
        x = self.dropout(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))
        logits = F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), goals.flatten())


def theirs(shape: tuple[float, ...], precision: str) -> Callable[[np.ndarray], None]:
    """One step of the plain loop."""
    layers, width, heads, context, _, dropout = shape
    model = Plain(int(layers), int(width), int(heads), int(context), dropout).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def step(rows: np.ndarray) -> None:
        ids = torch.from_numpy(rows.astype(np.int64))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = model(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def ours(shape: tuple[float, ...], precision: str, optimizer: str = "muon") -> Callable[[np.ndarray], None]:
    """One step as the training loop takes it, with the recipe of `regard train --task language`."""
    from regard.config import Config, merge
    from regard.data.rows import cut_rows
    from regard.models import build
    from regard.process.allocator import keep_freed_memory
    from regard.process.device import autocast
    from regard.tasks.language.feed import row_batch
    from regard.tasks.language.prepare import RECIPE, Next
    from regard.text.running import DOCUMENTS
    from regard.training.optimizer import build_optimizers
    from regard.training.owners import Owners
    from regard.training.world import World

    keep_freed_memory()
    layers, width, heads, context, _, dropout = shape
    own = {
        "model.decoder_layers": layers,
        "model.d_model": width,
        "model.n_heads": heads,
        "model.d_ff": 4 * width,
        "model.dropout": dropout,
        "model.vocab_size": VOCABULARY,
        "train.precision": precision,
        "train.optimizer": optimizer,
    }
    config = merge(Config(), {"model.kind": "decoder"} | RECIPE | own)
    model = build(config).train()
    optimizers = build_optimizers(model, config.train)
    objective, owners = Next(0.0), Owners(list(model.parameters()), optimizers, World())

    def step(rows: np.ndarray) -> None:
        batch = row_batch(rows[:, 1:].reshape(-1), cut_rows(rows[:, 1:].size, int(context)), DOCUMENTS)
        with autocast(torch.device("cpu"), precision):
            loss = next(objective.losses(model, batch)).total / batch.targets
        loss.backward()
        owners.clip(float(owners.norm()), config.train.clip)
        for optimizer in optimizers:
            with autocast(torch.device("cpu"), precision):
                optimizer.step()
        model.zero_grad(set_to_none=True)

    return step


def measure(way: str, name: str, profile: bool, clock: Callable[[], float]) -> float:
    """Tokens per second of one way."""
    shape = SHAPES[name]
    who, *words = way.split()
    random = np.random.default_rng(1)
    torch.manual_seed(1)
    draw = partial(random.integers, 4, VOCABULARY, (shape[4], shape[3] + 1), "u2")
    step = (ours if who == "regard" else theirs)(shape, *words)
    for _ in range(WARMUP):
        step(draw())
    if profile:
        with torch.profiler.profile() as found:
            for _ in range(5):
                step(draw())
        print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=40), file=sys.stderr)
    start, count = clock(), 0
    while clock() - start < SECONDS:
        step(draw())
        count += 1
    return count * shape[3] * shape[4] / (clock() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--shape", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor, in one thread")
    options = parser.parse_args()
    if options.way:
        torch.set_num_threads(1 if options.cpu else torch.get_num_threads())
        clock = time.process_time if options.cpu else time.perf_counter
        print(measure(options.way, options.shape, options.profile, clock))
        return
    rates: dict[tuple[str, str], list[float]] = {(name, way): [] for name in SHAPES for way in WAYS}
    for _ in range(options.rounds):
        for (name, way), found in rates.items():
            command = [sys.executable, __file__, "--way", way, "--shape", name, *["--cpu"] * options.cpu]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(float(done.stdout))
            print(name, way, round(found[-1]), file=sys.stderr, flush=True)
    medians = {key: statistics.median(found) for key, found in rates.items()}
    rows = []
    for name in SHAPES:
        found = {way: medians[name, way] for way in WAYS}
        best = max(found[way] for way in THEIRS)
        ratios = (max(found[way] for way in OURS[:2]) / best, found[OURS[2]] / best)
        rows.append([name, *(f"{rate:,.0f}" for rate in found.values()), *(f"{r:.2f}×" for r in ratios)])
    write_report(
        "language_speed",
        "Training speed of a language model, tokens per second",
        ["shape", *WAYS, "better of each", "the same optimiser"],
        rows,
        f"{'Seconds of the processor in one thread, for others used the machine. ' if options.cpu else ''}"
        f"{options.rounds} round{'s' * (options.rounds != 1)} in turn, a process each, {SECONDS:g} s after a "
        f"warm-up of {WARMUP} steps; rows of 32 × 64 and 16 × 256 tokens",
    )


if __name__ == "__main__":
    main()
