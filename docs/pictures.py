"""The pictures of README, made from a trained model, and those of family.md, which need none.

python docs/pictures.py attention runs/demo "5 hours ago: France, Germany and Spain" docs/images/attention.svg
python docs/pictures.py curve runs/multi30k docs/images/curve.svg
python docs/pictures.py family docs/images
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


def family(folder: Path) -> None:
    """The two pictures of family.md: softmax under the scores, and how positions see a sequence."""
    torch.manual_seed(1)
    save(_saturation(), folder / "family_scores.svg")
    save(_positions(), folder / "family_positions.svg")


def _saturation() -> Any:
    """The largest weight of a row among 30 random keys, by the width of a head."""
    from regard.attention.score import build_score

    widths = [4, 8, 16, 32, 64, 128, 256]
    figure, axis = plt.subplots(figsize=(8, 4))
    for (kind, colour), style in zip(
        (("dot", "#c92a2a"), ("scaled-dot", ACCENT), ("cosine", "#5f3dc4"), ("additive", "#2b8a3e")),
        ("-", "-", "--", ":"),
        strict=True,
    ):
        largest = []
        for width in widths:
            q, k = torch.randn(1, 1, 500, width), torch.randn(1, 1, 30, width)
            with torch.no_grad():
                largest.append(build_score(kind, 1, width)(q, k).softmax(-1).amax(-1).mean().item())
        axis.plot(widths, largest, style, color=colour, linewidth=2.5, label=kind)
    axis.set_xscale("log", base=2)
    axis.set_xticks(widths, widths)
    axis.set_ylim(0, 1)
    axis.set_xlabel("width of a head", color=INK)
    axis.set_ylabel("largest weight among 30 keys", color=INK)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _positions() -> Any:
    """Four ways to see 24 places, or the words of one sentence."""
    from regard.attention.absolute import sinusoids
    from regard.attention.alibi import Alibi
    from regard.attention.rotary import Rotary
    from regard.attention.structural import Trees

    table = sinusoids(24, 32)
    x = torch.ones(1, 1, 24, 32)
    turned = Rotary(32, 24).turn(x)
    words = ["the", "old", "cat", "sat", "on", "a", "mat", "</s>"]
    tree = Trees.of(torch.tensor([[2, 2, 3, 7, 6, 6, 3, 8]])).distance[0].float()
    alibi = Alibi(4).bias(torch.zeros(1, 4, 24, 8), 24)[0, 1]
    panels = (
        ("sinusoidal: p_i · p_j", table @ table.T),
        ("rotary: a query and a like key", (turned @ turned.mT)[0, 0]),
        ("ALiBi: head 2 of 4", alibi),
        ("structural: signed distance in the tree", tree),
    )
    figure, axes = plt.subplots(1, 4, figsize=(16, 4.4))
    for axis, (title, values) in zip(axes, panels, strict=True):
        signed: dict[str, Any] = {"cmap": "PuOr", "vmin": -12, "vmax": 12}
        colours = signed if values is tree else {"cmap": "GnBu"}
        axis.imshow(values, aspect="equal", **colours)
        axis.set_title(title, color=INK, fontsize=11)
    axes[-1].set_xticks(range(8), words, rotation=90)
    axes[-1].set_yticks(range(8), words)
    for row in range(8):
        for column in range(8):
            axes[-1].text(
                column, row, int(tree[row, column]), ha="center", va="center", fontsize=8, color=INK
            )
    return figure


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
    kinds.add_parser("family").add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.kind == "family":
        family(options.folder)
    elif options.kind == "attention":
        attention(options.folder, options.text, options.out)
    else:
        curve(options.folder, options.out)


if __name__ == "__main__":
    main()
