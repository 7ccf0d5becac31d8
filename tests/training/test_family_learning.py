"""Every score and every kind of positions learns: to turn a sequence round, or to find a tree's root."""

import pytest
import torch
import torch.nn.functional as F
from forest import random_heads
from torch import Tensor

from regard.config import Config, TrainConfig, merge
from regard.data.inputs import Tokens
from regard.kinds import SCORES
from regard.models import build
from regard.training.optimizer import build_optimizers

SHAPE = {
    "model.vocab_size": 12,
    "model.d_model": 32,
    "model.n_heads": 2,
    "model.d_ff": 64,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "positions.clip": 8,
}
LEARNED = 0.75  # of new sequences; who cannot learn it stays below a half, and rounding moves some percent
BEGIN, END, LENGTH, ROWS = 1, 2, 5, 48
FOREST = torch.stack([random_heads(LENGTH, seed=seed) for seed in range(500)])


def learned(changes: dict[str, str | int], *, steps: int, task: str = "reverse") -> float:
    """The share of new sequences that are answered without a fault, after so many steps."""
    torch.manual_seed(3)
    model = build(merge(Config(), SHAPE | changes))
    optimizers = build_optimizers(model, TrainConfig(lr=0.015))
    for step in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
            optimizer.param_groups[0]["lr"] = 0.015 * min(1.0, step / 10, 2 * (1 - step / steps))
        logits, answer = forced(model, task, step)
        F.cross_entropy(logits.flatten(0, 1), answer.flatten()).backward()
        for optimizer in optimizers:
            optimizer.step()
    with torch.no_grad():
        logits, answer = forced(model.eval(), task, steps)
    return (logits.argmax(-1) == answer).all(1).float().mean().item()


def forced(model: torch.nn.Module, task: str, seed: int) -> tuple[Tensor, Tensor]:
    """Logits under teacher forcing, and what was asked for."""
    words = torch.randint(4, 12, (ROWS, LENGTH - 1))
    src = torch.cat([words, torch.full((ROWS, 1), END)], 1)
    heads = FOREST[(torch.arange(ROWS) + seed * ROWS) % len(FOREST)]
    if task == "reverse":
        answer = words.flip(1)
    else:  # the first word whose head is the end token
        answer = words.gather(1, (heads == LENGTH - 1).float().argmax(1, keepdim=True))
    begin = torch.full_like(answer[:, :1], BEGIN)
    hidden = model(Tokens(src, None, heads), torch.cat([begin, answer[:, :-1]], 1))
    return model.project(hidden), answer


@pytest.mark.parametrize("score", [score for score in SCORES if score != "scaled-dot"])
def test_every_score_learns_to_reverse(score: str) -> None:
    assert learned({"attention.score": score}, steps=250) >= LEARNED


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "relative", "structural"])
def test_positions_learn_to_reverse(kind: str) -> None:
    assert learned({"positions.kind": kind}, steps=150) >= LEARNED


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_distances_alone_need_a_second_layer(kind: str) -> None:
    """One layer finds how far the end is, the next one can use it; ALiBi needs heads with steep slopes."""
    changes: dict[str, str | int] = {"positions.kind": kind, "model.encoder_layers": 2, "model.n_heads": 8}
    assert learned(changes, steps=300) >= LEARNED


def test_without_positions_nobody_can() -> None:
    assert learned({"positions.kind": "none", "model.encoder_layers": 2}, steps=150) < 0.5


def test_only_structural_positions_find_the_root() -> None:
    assert learned({"positions.kind": "structural"}, steps=150, task="root") >= LEARNED
    assert learned({"positions.kind": "relative"}, steps=150, task="root") < 0.7
