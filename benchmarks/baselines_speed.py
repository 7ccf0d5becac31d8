"""Training speed of the models that attention replaced against plain torch: real target tokens per second.

For rnn, rnn-attention and conv: our training step, and a step as one would write it from the same torch
modules (nn.LSTM on packed sequences, nn.Conv1d, nn.MultiheadAttention, nn.Dropout, nn.LayerNorm) with torch's
cross-entropy. The same shapes, the same length-bucketed batches of Multi30k, the same optimiser (Adam); ours
also with its default (Muon). Rounds in turn, in processes of their own.

    python benchmarks/baselines_speed.py ../shared/data/multi30k --rounds 5
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from report import write_report
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from training_speed import WARMUP, batches, prepare

from regard.config import Config, merge
from regard.data.batch import Batch
from regard.models.transformer import count_parameters

KINDS = ("rnn", "rnn-attention", "conv")
WHO = ("torch", "regard-adam", "regard-muon")
D, LAYERS, HEADS, KERNEL, DROPOUT = 128, 3, 4, 5, 0.1
SHAPE = {
    "model.d_model": D,
    "model.n_heads": HEADS,
    "model.encoder_layers": LAYERS,
    "model.decoder_layers": LAYERS,
    "model.dropout": DROPOUT,
}


class PlainLayer(nn.Module):
    """x + dropout(f(norm(x))), the residual of every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(D), nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(f(self.norm(x)))


class Plain(nn.Module):
    """What the plain models share: embeddings, closing norms, attention to the source."""

    def __init__(self, vocab_size: int, attentions: int) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(vocab_size, D), nn.Dropout(DROPOUT)
        self.around = nn.ModuleList(PlainLayer() for _ in range(2 * LAYERS + attentions))
        self.cross = nn.ModuleList(
            nn.MultiheadAttention(D, HEADS, batch_first=True) for _ in range(attentions)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * D**0.5)


class PlainRNN(Plain):
    """Bidirectional LSTM layers on packed sequences, LSTM layers for the target, attention if asked for."""

    def __init__(self, vocab_size: int, attends: bool) -> None:
        super().__init__(vocab_size, int(attends))
        self.encoder = nn.ModuleList(
            nn.LSTM(D, D, batch_first=True, bidirectional=True) for _ in range(LAYERS)
        )
        self.joins = nn.ModuleList(nn.Linear(2 * D, D) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(nn.LSTM(D, D, batch_first=True) for _ in range(LAYERS))
        self.bridge = nn.Linear(2 * D, 2 * LAYERS * D)
        self.join = nn.Linear((1 + attends) * D, D)

    def forward(self, batch: Batch) -> Tensor:
        lengths = batch.inputs.real.sum(1)
        x = self.embed(batch.inputs.ids)
        for lstm, join, around in zip(self.encoder, self.joins, self.around, strict=False):

            def both(y: Tensor, lstm: nn.Module = lstm, join: nn.Module = join) -> Tensor:
                packed = pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=False)
                states, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
                out: Tensor = join(states)
                return out

            x = around(x, both)
        memory = self.norms[0](x)
        ends = torch.cat([memory[:, 0], memory[torch.arange(len(lengths)), lengths - 1]], -1)
        h, c = self.bridge(ends).view(len(lengths), 2, LAYERS, 1, D).permute(1, 2, 3, 0, 4)
        x = self.embed(batch.tgt_in)
        for i, lstm in enumerate(self.decoder):
            start = (h[i].tanh().contiguous(), c[i].contiguous())
            x = self.around[LAYERS + i](x, lambda y, f=lstm, s=start: f(y, s)[0])
        x = self.norms[1](x)
        for cross in self.cross:
            context, _ = cross(x, memory, memory, key_padding_mask=~batch.inputs.real, need_weights=False)
            x = torch.cat([context, x], -1)
        hidden: Tensor = self.join(x).tanh()
        return hidden


class PlainConv(Plain):
    """Gated convolutions and attention in every decoder layer."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__(vocab_size, LAYERS)
        self.encoder = nn.ModuleList(nn.Conv1d(D, 2 * D, KERNEL, padding=KERNEL // 2) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(nn.Conv1d(D, 2 * D, KERNEL, padding=KERNEL - 1) for _ in range(LAYERS))
        self.positions = nn.Buffer(torch.randn(1024, D))

    def forward(self, batch: Batch) -> Tensor:
        real, length = batch.inputs.real[:, :, None], batch.tgt_in.shape[1]
        x = self.embed(batch.inputs.ids) + self.positions[: batch.inputs.ids.shape[1]]
        for i, conv in enumerate(self.encoder):
            x = self.around[i](x, lambda y, f=conv: F.glu(f((y * real).mT), 1).mT)
        memory = self.norms[0](x)
        x = self.embed(batch.tgt_in) + self.positions[:length]
        for i, (conv, cross) in enumerate(zip(self.decoder, self.cross, strict=True)):
            x = self.around[LAYERS + i](x, lambda y, f=conv: F.glu(f(y.mT)[..., :length], 1).mT)

            def look(y: Tensor, cross: nn.Module = cross) -> Tensor:
                out: Tensor = cross(
                    y, memory, memory, key_padding_mask=~batch.inputs.real, need_weights=False
                )[0]
                return out

            x = self.around[2 * LAYERS + i](x, look)
        hidden: Tensor = self.norms[1](x)
        return hidden


def theirs(kind: str, vocab_size: int) -> tuple[Callable[[Batch], None], int]:
    """One step of a plain torch loop, and how many weights it moves."""
    model: Plain = PlainConv(vocab_size) if kind == "conv" else PlainRNN(vocab_size, kind == "rnn-attention")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    loss_of = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)

    def step(batch: Batch) -> None:
        logits = F.linear(model(batch), model.embedding.weight)
        loss_of(logits.flatten(0, 1), batch.tgt_out.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step, count_parameters(model)


def ours(kind: str, vocab_size: int, optimizer: str) -> tuple[Callable[[Batch], None], int]:
    """One step as the training loop takes it, and how many weights it moves."""
    from regard.models import build
    from regard.process.allocator import keep_freed_memory
    from regard.training.loss import sequence_loss
    from regard.training.optimizer import build_optimizers

    keep_freed_memory()
    settings = {"model.kind": kind, "model.vocab_size": vocab_size, "train.optimizer": optimizer}
    config = merge(Config(), SHAPE | settings | {"train.lr": 1e-3})
    model = build(config).train()
    optimizers = build_optimizers(model, config.train)
    parameters = list(model.parameters())

    def step(batch: Batch) -> None:
        (sequence_loss(model, batch, label_smoothing=0.1) / batch.targets).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        for each in optimizers:
            each.step()
            each.zero_grad()

    return step, count_parameters(model)


def measure(kind: str, who: str, data: Path, folder: Path, seed: int) -> tuple[float, int]:
    """Real target tokens per second of one way, and its weights."""
    store, tokenizer = prepare(data, folder)
    work = batches(store, tokenizer, seed)
    torch.manual_seed(seed)
    name, _, optimizer = who.partition("-")
    if name == "torch":
        step, weights = theirs(kind, tokenizer.vocab_size)
    else:
        step, weights = ours(kind, tokenizer.vocab_size, optimizer)
    for batch in work[:WARMUP]:
        step(batch)
    start = time.perf_counter()
    for batch in work[WARMUP:]:
        step(batch)
    return sum(batch.targets for batch in work[WARMUP:]) / (time.perf_counter() - start), weights


def run(options: argparse.Namespace) -> dict[tuple[str, str], tuple[list[float], int]]:
    """Every way in turn, as often as there are rounds: its speeds, and its weights."""
    found: dict[tuple[str, str], tuple[list[float], int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        prepare(options.data, Path(folder))
        for seed in range(options.rounds):
            for kind in options.kinds:
                for who in WHO:
                    command = [sys.executable, __file__, str(options.data), "--one", kind, who]
                    command += ["--folder", folder, "--seed", str(seed)]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    rate, weights = done.stdout.split()
                    found.setdefault((kind, who), ([], int(weights)))[0].append(float(rate))
                    print(kind, who, round(float(rate)), file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.one:
        print(*measure(*options.one, options.data, options.folder, options.seed))
        return
    found = run(options)
    medians = {way: statistics.median(rates) for way, (rates, _) in found.items()}
    rows = [
        [kind, who, f"{found[kind, who][1]:,}", f"{rate:,.0f}", f"{rate / medians[kind, 'torch']:.2f}×"]
        for (kind, who), rate in medians.items()
    ]
    write_report(
        "baselines_speed",
        "Training speed of what attention replaced, real target tokens per second",
        ["model", "who", "weights", "tokens/s (median)", "against plain torch"],
        rows,
        f"{options.rounds} rounds in turn, a process each; d {D}, {LAYERS}+{LAYERS} layers, window {KERNEL}",
    )


if __name__ == "__main__":
    main()
