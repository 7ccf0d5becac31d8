"""The frozen classifier whose features drawings are measured by: small, our own, trained first, then kept.

Nothing is downloaded, so distances are those of these features and of no others. With labels it tells the
classes apart; without any it tells how a picture was turned, which has to be seen too. It lies in the model
folder (`judge.safetensors`). A second one, trained on drawings alone and tried on real pictures, says what
drawings are worth to a learner. Before this file: pixels; after it: `scores.py`.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from torch import Tensor, nn

from regard.errors import ModelError
from regard.foreign import loads
from regard.tasks.gan.pixels import Labels, Pixels, as_numbers

JUDGE = "judge.safetensors"
FEATURES = 64
WIDTHS = (24, 48, FEATURES)
TURNS = 4  # what is told apart where there are no labels
BATCH, RATE = 128, 4e-3
TOGETHER = 512  # pictures that are looked at side by side


class Judge(nn.Module):
    """Pictures (B, C, S, S) to features (B, 64) and logits of classes."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        given = (channels, *WIDTHS[:-1])
        self.layers = nn.ModuleList(
            nn.Conv2d(low, high, 3, padding=1, bias=False) for low, high in zip(given, WIDTHS, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in WIDTHS)
        self.out = nn.Linear(FEATURES, classes)

    def features(self, pictures: Tensor) -> Tensor:
        """(B, C, S, S) in -1 to 1 -> (B, 64)."""
        x = pictures
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            x = F.relu(norm(layer(x)))
            x = F.max_pool2d(x, 2) if number < len(WIDTHS) - 1 else x.mean((2, 3)) + x.amax((2, 3))
        return x

    def forward(self, pictures: Tensor) -> Tensor:
        """Logits (B, classes)."""
        logits: Tensor = self.out(self.features(pictures))
        return logits

    @torch.no_grad()
    def look(self, pictures: Pixels) -> tuple[npt.NDArray[np.float32], Labels]:
        """Features (N, 64) of pictures (N, C, S, S) in bytes, and the likeliest class of each (N,)."""
        self.eval()
        features, classes = [], []
        for start in range(0, len(pictures), TOGETHER):
            found = self.features(as_numbers(torch.from_numpy(pictures[start : start + TOGETHER])))
            features.append(found)
            classes.append(self.out(found).argmax(1))
        return torch.cat(features).numpy(), torch.cat(classes).numpy()


def turned(pictures: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Square pictures, each turned by some quarters, and by how many."""
    quarters = torch.randint(0, TURNS, (len(pictures),), generator=random)
    ways = torch.stack([pictures.rot90(quarter, (2, 3)) for quarter in range(TURNS)])
    return ways[quarters, torch.arange(len(pictures))], quarters


def train_judge(
    pictures: Pixels,
    labels: Labels | None,
    classes: int,
    *,
    epochs: int,
    seconds: float | None = None,
    seed: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Judge:
    """A judge of pictures (N, C, S, S) in bytes; it ends after so many epochs, or so many seconds if told."""
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        judge = Judge(pictures.shape[1], classes if labels is not None else TURNS).train()
        adam = torch.optim.AdamW(judge.parameters(), lr=RATE, weight_decay=0.01)
        steps = max(1, epochs * len(pictures) // BATCH)
        start, progress, step = clock(), 0.0, 0
        while progress < 1:
            adam.param_groups[0]["lr"] = RATE * min(1.0, 10 * progress + 0.1) * (1 - progress)
            rows = torch.randint(0, len(pictures), (BATCH,), generator=random).numpy()
            some = torch.from_numpy(pictures[rows])
            given = turned(some, random) if labels is None else (some, torch.from_numpy(labels[rows]))
            loss = F.cross_entropy(judge(as_numbers(given[0])), given[1])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            step += 1
            progress = max(step / steps, (clock() - start) / seconds if seconds else 0.0)
    return judge.eval()


def to_bytes(judge: Judge, made_of: str) -> bytes:
    """The judge as a file; `made_of` says what it was trained on."""
    tensors = {name: tensor.contiguous() for name, tensor in judge.state_dict().items()}
    return safetensors.torch.save(tensors, {"judge": json.dumps({"made_of": made_of})})


def from_bytes(data: bytes, channels: int, made_of: str | None = None) -> Judge:
    """A judge of a file; ModelError where it is none, or was trained on something else."""
    try:
        size = int.from_bytes(data[:8], "little")
        told: Any = loads(loads(data[8 : 8 + size])["__metadata__"]["judge"])
        tensors = safetensors.torch.load(data)
        judge = Judge(channels, len(tensors["out.bias"]))
        judge.load_state_dict(tensors)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"{JUDGE} is no judge of these pictures; copy the folder again") from error
    if made_of is not None and told["made_of"] != made_of:
        raise ModelError(f"{JUDGE} was trained on other pictures")
    return judge.eval()
