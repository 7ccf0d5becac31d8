"""One file a checkpoint: all that a run needs to go on as if it had never stopped.

`step-000000123.safetensors` holds tensors (weights, optimiser, average, random state) and, in its
metadata, the numbers of the run and a SHA-256 over everything. It is written atomically; only after
that are older ones removed. Loading takes the newest one that proves whole. Nothing is pickled.
"""

import hashlib
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.atomic import remove_parts, write_atomically


class BrokenCheckpointError(ValueError):
    """A file that is not what was written; for ourselves, a person sees a line on stderr."""


_NAME = re.compile(r"step-(\d{9,})(\.safetensors)?")  # a folder (`spread.py`), or a file


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: named tensors, and `numbers`, a JSON text."""

    step: int
    tensors: dict[str, Tensor]
    numbers: str

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `prefix.`, without it."""
        start = f"{prefix}."
        return {name.removeprefix(start): t for name, t in self.tensors.items() if name.startswith(start)}


def digest(tensors: dict[str, Tensor], numbers: str) -> str:
    """SHA-256 over the numbers and over each tensor's name, type, shape and bytes."""
    total = hashlib.sha256(numbers.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def path_of(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}.safetensors"


def saved_steps(folder: Path) -> list[int]:
    """The steps that have a checkpoint in `folder`, oldest first."""
    names = (_NAME.fullmatch(path.name) for path in folder.glob("step-*"))
    return sorted(int(match[1]) for match in names if match)


def remove(path: Path) -> None:
    """Remove a checkpoint, if it is there: a file, or a folder of them."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def save(folder: Path, checkpoint: Checkpoint, *, keep: int) -> Path:
    """Write one checkpoint; when it is safe on the disk, remove all but the newest `keep`."""
    tensors = {name: t.detach().to("cpu").contiguous() for name, t in checkpoint.tensors.items()}
    numbers = checkpoint.numbers
    metadata = {"numbers": numbers, "sha256": digest(tensors, numbers)}
    path = path_of(folder, checkpoint.step)
    write_atomically(path, lambda part: save_file(tensors, part, metadata=metadata))
    for step in saved_steps(folder)[:-keep]:
        path_of(folder, step).unlink(missing_ok=True)
    return path


def read(path: Path) -> Checkpoint:
    """One checkpoint; BrokenCheckpointError when it is not what was written."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Copies: what is mapped would depend on the file, which is removed one day.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError) as error:
        raise BrokenCheckpointError(str(error)) from error
    numbers = metadata.get("numbers", "")
    if digest(tensors, numbers) != metadata.get("sha256"):
        raise BrokenCheckpointError("its checksum does not match")
    match = _NAME.fullmatch(path.name)
    if match is None or json.loads(numbers)["step"] != int(match[1]):
        raise BrokenCheckpointError("its name does not match its step")
    return Checkpoint(int(match[1]), tensors, numbers)


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that proves whole, or None; broken ones are named on stderr and removed.

    Removed, because a broken file that counts as one of those kept would push out a whole one.
    """
    remove_parts(folder)
    for step in reversed(saved_steps(folder)):
        path = path_of(folder, step)
        try:
            return read(path)
        except BrokenCheckpointError as error:
            print(f"regard: checkpoint {path} is broken ({error}); taking the one before", file=sys.stderr)
            path.unlink(missing_ok=True)
    return None
