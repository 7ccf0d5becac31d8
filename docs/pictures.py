"""The pictures of README, made from a trained model: where its heads look, and how it learned.

python docs/pictures.py attention runs/demo "5 hours ago: France, Germany and Spain" docs/images/attention.svg
python docs/pictures.py curve runs/multi30k docs/images/curve.svg
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import torch

import regard

INK, ACCENT, QUIET = "#1f2933", "#0b7285", "#9aa5b1"


def attention(folder: Path, text: str, out: Path) -> None:
    """Every head of the last cross-attention, for one sentence and its translation."""
    translator = regard.load(folder)
    tokenizer = translator.tokenizer
    src = [*tokenizer.encode(text), tokenizer.end_id]
    tgt = tokenizer.encode(translator.translate([text])[0])
    with regard.record() as tape, torch.inference_mode():
        ids = torch.tensor([src])
        translator.model.eval()(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[1, *tgt]]))
    cross = [name for name in tape.names() if name.endswith("cross")]
    weights = tape[cross[-1]][0][0]  # (H, T, S)
    rows, columns = ([tokenizer.token(each) for each in side] for side in ([*tgt, tokenizer.end_id], src))
    figure, axes = plt.subplots(1, len(weights), figsize=(4 * len(weights), 5), sharey=True)
    for number, (axis, head) in enumerate(zip(axes, weights, strict=True)):
        axis.imshow(head, cmap="GnBu", vmin=0, vmax=1, aspect="auto")
        axis.set_title(f"{cross[-1]}, head {number + 1}", color=INK, fontsize=11)
        axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=9)
        axis.set_yticks(range(len(rows)), rows, fontsize=9)
    save(figure, out)


def curve(folder: Path, out: Path) -> None:
    """Validation BLEU over the minutes of training."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    points = [(r["seconds"] / 60, r["valid_bleu"]) for r in records if r.get("valid_bleu") is not None]
    figure, axis = plt.subplots(figsize=(8, 4))
    axis.plot(*zip(*points, strict=True), color=ACCENT, linewidth=2.5, marker="o", markersize=4)
    axis.annotate(
        f"{points[-1][1]:.1f}", points[-1], xytext=(6, -4), textcoords="offset points", color=ACCENT
    )
    axis.set_xlabel("minutes of training on two CPU cores", color=INK)
    axis.set_ylabel("validation BLEU (greedy)", color=INK)
    axis.grid(color=QUIET, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, out)


def save(figure: Any, out: Path) -> None:
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None}, transparent=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("attention", "curve"):
        sub = kinds.add_parser(kind)
        sub.add_argument("folder", type=Path)
        if kind == "attention":
            sub.add_argument("text")
        sub.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.kind == "attention":
        attention(options.folder, options.text, options.out)
    else:
        curve(options.folder, options.out)


if __name__ == "__main__":
    main()
