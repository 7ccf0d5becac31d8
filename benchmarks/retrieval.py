"""Can it be found? One word among 4,096 is the answer; the last place, thousands of words away, tells it.

The encoder of Regard's Transformer (two layers, d 64) reads random fillers with one of 16 answer words in the
first half, behind the global blocks; the hidden state of the last place is projected to the vocabulary. The
length grows from 16 to 4,096 as soon as a length is learned. Chance is 6%.

    python benchmarks/retrieval.py
"""

import argparse
import time

import torch
import torch.nn.functional as F
from report import write_report
from torch import Tensor

from regard.config import Config, merge
from regard.models.transformer import Transformer

ANSWERS, FILLERS = 16, 32
STAGES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TOKENS = 16384  # a batch
KINDS = ("full", "bigbird", "linformer", "local")


def sequences(rows: int, length: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """ids (rows, length) with one answer in the first half, and the answers (rows,)."""
    ids = torch.randint(4 + ANSWERS, 4 + ANSWERS + FILLERS, (rows, length), generator=random)
    answers = torch.randint(4, 4 + ANSWERS, (rows,), generator=random)
    places = torch.randint(length // 16, length // 2, (rows,), generator=random)
    ids[torch.arange(rows), places] = answers
    return ids, answers


def logits(model: Transformer, ids: Tensor) -> Tensor:
    """What the last place of the source says: (B, V)."""
    memory = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    return model.project(memory[:, -1])


def train(kind: str, seconds: float) -> tuple[Transformer, int, int]:
    """A model of that kind, its steps, and the longest sequence that it was trained on."""
    torch.manual_seed(1)
    random = torch.Generator().manual_seed(2)
    shape = {
        "model.vocab_size": 4 + ANSWERS + FILLERS,
        "model.d_model": 64,
        "model.n_heads": 2,
        "model.d_ff": 128,
        "model.encoder_layers": 2,
        "model.decoder_layers": 1,
        "model.dropout": 0.0,
        "attention.kind": kind,
        "train.recompute": "never",
    }
    model = Transformer(merge(Config(), shape))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    stage, right, steps, start = 0, 0.0, 0, time.monotonic()
    while time.monotonic() - start < seconds:
        length = STAGES[stage]
        ids, answers = sequences(min(64, TOKENS // length), length, random)
        found = logits(model, ids)
        loss = F.cross_entropy(found, answers)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        right = 0.8 * right + 0.2 * float((found.argmax(-1) == answers).float().mean())
        if right > 0.97:
            if stage + 1 == len(STAGES):
                break
            stage, right = stage + 1, 0.0
    return model, steps, STAGES[stage]


@torch.no_grad()
def accuracy(model: Transformer, rows: int) -> float:
    """The share of new sequences of the full length that are answered rightly."""
    random, right = torch.Generator().manual_seed(3), 0
    model.eval()
    for _ in range(rows // 4):
        ids, answers = sequences(4, STAGES[-1], random)
        right += int((logits(model, ids).argmax(-1) == answers).sum())
    return right / (rows // 4 * 4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=150.0, help="of training, for each kind")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--name", default="retrieval")
    options = parser.parse_args()
    rows = []
    for kind in options.kinds:
        start = time.monotonic()
        model, steps, longest = train(kind, options.seconds)
        spent = time.monotonic() - start
        share = accuracy(model, options.rows)
        print(f"{kind}: {share:.1%} after {steps} steps, {spent:.0f} s, up to {longest}", flush=True)
        rows.append([kind, f"{share:.1%}", f"{steps:,}", f"{longest:,}", f"{spent:.0f}"])
    write_report(
        options.name,
        f"Retrieval at T = {STAGES[-1]:,}",
        ["attention", "accuracy", "steps", "trained up to", "seconds"],
        rows,
        f"{options.rows} new sequences; the answer is {STAGES[-1] // 2:,} to {STAGES[-1] * 15 // 16:,} "
        f"places away from where it is asked for; chance is {1 / ANSWERS:.0%}. Default window, blocks, rank.",
    )


if __name__ == "__main__":
    main()
