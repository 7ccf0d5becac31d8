"""A trained Transformer in a larger shape that writes the same, to time shapes that nobody here can train.

Every vector of D numbers becomes r copies of itself, so that norms see the mean and the spread that they
knew; heads get room that holds zeros, layers that are new add nothing. What is computed has the larger
shape's cost, what is written (its length, the drafts that are right) is what the small model has learned.

    python benchmarks/widen.py runs/par runs/wide --preset base teacher ctc blockwise
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import Config, merge
from regard.models import build
from regard.models.folder import load_folder, save
from regard.presets import PRESETS

SHAPE = ("d_model", "n_heads", "encoder_layers", "decoder_layers", "d_ff")  # norms and positions stay


class Room:
    """How much larger the new shape is."""

    def __init__(self, old: Config, new: Config) -> None:
        self.old, self.new = old.model, new.model
        self.copies = self.new.d_model // self.old.d_model
        self.narrow, self.wide = (each.d_model // each.n_heads for each in (self.old, self.new))
        if (
            self.new.d_model % self.old.d_model
            or self.wide % self.narrow
            or self.new.n_heads < self.old.n_heads
        ):
            raise SystemExit("widen: widths and heads must be multiples of those of the model")

    def inputs(self, weight: Tensor) -> Tensor:
        """(rows, D) for inputs that are copies."""
        return weight.repeat(1, self.copies) / self.copies

    def turned(self, rows: Tensor) -> Tensor:
        """Rows of queries or keys: plane m of a head goes where its angle is, those between stay empty."""
        step, half = self.wide // self.narrow, self.narrow // 2
        out = rows.new_zeros(self.new.n_heads, 2, self.wide // 2, rows.shape[1])
        out[: self.old.n_heads, :, ::step] = rows.view(self.old.n_heads, 2, half, -1)
        return out.view(self.new.d_model, -1)

    def straight(self, rows: Tensor) -> Tensor:
        """Rows of values: first in their heads."""
        out = rows.new_zeros(self.new.n_heads, self.wide, rows.shape[1])
        out[: self.old.n_heads, : self.narrow] = rows.view(self.old.n_heads, self.narrow, -1)
        return out.view(self.new.d_model, -1)

    def filled(self, rows: Tensor, count: int) -> Tensor:
        """More rows, of zeros."""
        return torch.cat([rows, rows.new_zeros(count - len(rows), *rows.shape[1:])])

    def linear(self, name: str, weight: Tensor, bias: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor]:
        """A product by the part that it plays."""
        both = torch.cat([weight, bias[:, None]], 1)
        if name == "query":
            both = self.turned(both) * (self.wide / self.narrow) ** 0.5  # scores are divided by its root
        elif name == "key_value":
            keys, values = both.chunk(2)
            both = torch.cat([self.turned(keys), self.straight(values)])
        elif name == "inner":
            both = self.filled(both, shape[0])
        elif name != "narrow":
            both = both.repeat(self.copies, 1)
        weight, bias = both[:, :-1], both[:, -1]
        if name == "out":
            return self.straight(weight.T).T, bias
        if name == "outer":
            return self.filled(weight.T, shape[1]).T, bias
        parts = [self.inputs(part) for part in weight.split(self.old.d_model, 1)]
        if len(parts) == 3:  # what foresees tokens: the third is what its heads have seen
            parts[2] = self.straight(weight[:, 2 * self.old.d_model :].T).T
        return torch.cat(parts, 1), bias


def widened(model: Any, room: Room, new: Any) -> Any:
    """`new` with the weights of `model`."""
    held, into = model.state_dict(), new.state_dict()
    for name, weight in held.items():
        part, kind = name.rsplit(".", 2)[-2:]
        if part.endswith("norm"):
            into[name] = weight.repeat(room.copies)
        elif part == "embedding":
            into[name] = weight.repeat(1, room.copies) / room.copies**0.5  # it is scaled by the root of D
        elif kind == "output_weight":
            into[name] = weight
        elif kind == "weight":
            bias = f"{name.removesuffix('weight')}bias"
            into[name], into[bias] = room.linear(part, weight, held[bias], into[name].shape)
    for name in into.keys() - held.keys():  # layers that are new: what they add is zero
        if name.rsplit(".", 2)[-2] in ("out", "outer"):
            into[name] = torch.zeros_like(into[name])
    for kind in ("weight", "bias"):  # what foresees tokens sees the source as the last layer does
        last, now = (
            f"decoder.{each.decoder_layers - 1}.cross.key_value.{kind}" for each in (room.old, room.new)
        )
        into[now] = into[last]
    new.load_state_dict(into)
    return new.eval()


def widen(model: Path, out: Path, preset: str) -> None:
    """The folder of a model in another shape."""
    held = load_folder(model)
    wide = merge(Config(), PRESETS[preset]).model
    config = merge(held.config, {f"model.{key}": getattr(wide, key) for key in SHAPE})
    made = widened(held.model, Room(held.config, config), build(config))
    save(out, config=config, model=made, tokenizer=held.tokenizer, card="")
    print(f"{out}: {sum(weight.numel() for weight in made.parameters()):,} weights")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--preset", default="base")
    options = parser.parse_args()
    for name in options.names:
        widen(options.runs / name, options.out / name, options.preset)


if __name__ == "__main__":
    main()
