"""The pictures of docs/gallery.md, drawn by what `regard look` and training leave, from models of any size.

python docs/gallery.py docs/images/gallery                           masks and positions, which need no model
python docs/gallery.py docs/images/gallery translation=runs/mine masked=runs/demo-masked image=runs/demo-image
python docs/gallery.py docs/images/gallery detection=runs/demo-detection gan=runs/demo-gan

`regard demo --task ...` makes such folders in some minutes each. What they are shown is made here.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image

import regard
from regard.config import Config, merge
from regard.data.inputs import Tokens

SHADE, COLOURS = "GnBu", 96
SHAPE = {"model.vocab_size": 300, "model.d_model": 32, "model.n_heads": 2, "model.d_ff": 64}


def save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)
    shrink(path)


def shrink(path: Path) -> None:
    """The picture in few colours: they lie in the repository."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLOURS)
    few.save(path, optimize=True)


def panels(shown: dict[str, Any], path: Path) -> None:
    """Some maps in a row."""
    figure, axes = plt.subplots(1, len(shown), figsize=(2.4 * len(shown), 2.8))
    for axis, (title, values) in zip(axes, shown.items(), strict=True):
        axis.imshow(values, cmap=SHADE, vmin=0, aspect="auto")
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    save(figure, path)


def first_layer(ids: torch.Tensor, **words: object) -> torch.Tensor:
    """What the first head of a new encoder looks at: (T, S)."""
    torch.manual_seed(3)
    named = {name.replace("__", "."): value for name, value in words.items()}
    model = regard.Transformer(merge(Config(), SHAPE | named)).eval()
    with regard.record() as tape, torch.inference_mode():
        model(Tokens(ids), torch.ones(1, 1, dtype=torch.long))
    return tape["encoder.0.self"][0][0, 0]


def untaught(out: Path) -> None:
    """What masks, kernels and positions do before anything is learned."""
    from regard.attention.masks import causal_mask, padding_mask

    ids = torch.randint(4, 300, (1, 96), generator=torch.Generator().manual_seed(2))
    few = {"attention__block": 8, "attention__global_blocks": 1, "attention__random_blocks": 1}
    few |= {"attention__window": 8, "positions__kind": "sinusoidal"}
    real = torch.arange(96)[None] < 70
    seen = {kind: first_layer(ids, attention__kind=kind, **few) > 0 for kind in ("full", "local", "bigbird")}
    masks = {"causal": causal_mask(96, 96), "padding": padding_mask(real)[0, 0].expand(96, 96)}
    panels(seen | masks, out / "masks.png")
    same = torch.full((1, 24), 7)
    kinds = ("none", "sinusoidal", "learned", "rotary", "relative", "alibi")
    panels({kind: first_layer(same, positions__kind=kind) for kind in kinds}, out / "positions.png")


def translation(folder: Path, out: Path) -> None:
    """Every head of the cross-attention, and one map with its words."""
    seen = regard.look(folder, "Two dogs run through the snow.")
    maps = [one for one in seen.maps if one.kind == "cross"]
    rows, columns = len(maps), len(maps[0].weights)
    figure, axes = plt.subplots(rows, columns, figsize=(1.9 * columns, 1.9 * rows))
    for row, one in zip(np.atleast_2d(axes), maps, strict=True):
        for number, (axis, weights) in enumerate(zip(row, one.weights, strict=True), start=1):
            axis.imshow(weights, cmap=SHADE, vmin=0, vmax=1, aspect="auto")
            axis.set_title(f"layer {one.layer + 1}, head {number}", fontsize=8)
            axis.set_xticks([])
            axis.set_yticks([])
    save(figure, out / "heads.png")
    (out / "cross.svg").write_text(seen.figure(kind="cross").to_svg(), encoding="utf-8")


def masked(folder: Path, out: Path) -> None:
    """An encoder that fills a gap: who looks at whom."""
    seen = regard.look(folder, "Tuesday, [MASK] 3, 2026: in 5 [MASK]")
    (out / "encoder.svg").write_text(seen.figure().to_svg(), encoding="utf-8")


def image(folder: Path, out: Path) -> None:
    """Where a classifier looks in a picture of a letter, and which letters it takes for which."""
    from regard.images.glyphs import glyphs

    show(folder, next(glyphs(1, 28, 5, "R"))[0], out / "picture.png")
    shutil.copyfile(folder / "confusion.png", out / "confusion.png")


def detection(folder: Path, out: Path) -> None:
    """What the queries of a detector found and where they looked."""
    from regard.images.glyphs import scenes

    busiest = max(scenes(20, 64, 9), key=lambda scene: len(scene.labels))
    show(folder, busiest.pixels, out / "queries.png")


def show(folder: Path, pixels: Any, path: Path) -> None:
    """Look at a picture that lies nowhere."""
    from regard.images.sheet import as_png

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "drawn.png"
        file.write_bytes(as_png(pixels))
        regard.look(folder, str(file)).save(path)
    shrink(path)


def gan(folder: Path, out: Path) -> None:
    """Pictures that nobody drew, as training leaves them."""
    shutil.copyfile(folder / "samples.png", out / "drawn.png")
    shrink(out / "drawn.png")


TASKS: dict[str, Callable[[Path, Path], None]] = {
    each.__name__: each for each in (translation, masked, image, detection, gan)
}


def main() -> None:
    """Draw what the folders that were given can show."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*", metavar="TASK=FOLDER")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.models:
        untaught(given.out)
    for task, _, folder in (each.partition("=") for each in given.models):
        TASKS[task](Path(folder), given.out)


if __name__ == "__main__":
    main()
