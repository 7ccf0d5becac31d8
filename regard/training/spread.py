"""A checkpoint that is spread over files, one for each process: what `train.shard` saves.

`step-000000123/` holds safetensors of torch.distributed.checkpoint, which gives any number of processes their
shards of them again, and `index.json`: the numbers of the run and the SHA-256 of each file. It is written
under another name and renamed; loading takes the newest one that proves whole. One file: `checkpoint.py`.
"""

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.atomic import TEMPORARY, sync_folder, write_text
from regard.errors import ModelError, StorageError, error_line
from regard.foreign import read_json
from regard.training.checkpoint import Checkpoint, remove, saved_steps
from regard.training.trainer import Trainer

INDEX = "index.json"


def folder_of(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}"


def save(trainer: Trainer, checkpoint: Checkpoint) -> Path:
    """Write one checkpoint, each process its part; then remove all but the newest `train.keep`."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save as save_spread

    world, path = trainer.world, folder_of(trainer.folder, checkpoint.step)
    part = path.with_name(path.name + TEMPORARY)
    names = _Names(trainer)
    flat = [names.there(name) for name, tensor in checkpoint.tensors.items() if tensor.ndim == 0]
    flat = sorted({name for some in world.gather(flat) for name in some})
    with world.together():
        if world.first:
            clear(trainer.folder)
            part.mkdir(parents=True)
    with world.together(), _storing(path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is")  # off, in one process: so it is
        writer = HuggingFaceStorageWriter(str(part), save_distributed=True)
        save_spread(names.told(checkpoint.tensors), storage_writer=writer, no_dist=world.size == 1)
    files = world.tell(sorted(each.name for each in part.iterdir()) if world.first else None)
    sums = world.done(lambda name: _sha(part / name), files)
    with world.together():
        if world.first:
            index = {
                "numbers": checkpoint.numbers,
                "flat": flat,
                "files": dict(zip(files, sums, strict=True)),
            }
            write_text(part / INDEX, json.dumps(index))
            remove(path)
            part.replace(path)
            sync_folder(trainer.folder)
            for step in saved_steps(trainer.folder)[: -trainer.config.keep]:
                remove(folder_of(trainer.folder, step))
    return path


def newest(trainer: Trainer) -> Checkpoint | None:
    """The newest checkpoint that proves whole, its shards for this process; None where there is none.

    All processes look together, on a disk that all of them see. Broken ones are named and removed.
    """
    world = trainer.world
    with world.together():
        if world.first:
            clear(trainer.folder)
    for step in reversed(world.tell(saved_steps(trainer.folder) if world.first else None)):
        path = folder_of(trainer.folder, step)
        index = world.tell(_index(path) if world.first else None)
        files = index.get("files", {})
        sound = world.done(lambda name: _sha(path / name) == files[name], sorted(files))  # noqa: B023
        if files and all(sound):
            with world.together(), _storing(path):
                return Checkpoint(step, _read(trainer, path, index["flat"]), index["numbers"])
        with world.together():
            if world.first:
                print(f"regard: checkpoint {path} is broken; taking the one before", file=sys.stderr)
                remove(path)
    return None


def clear(folder: Path) -> None:
    """Remove what a write that was interrupted has left."""
    for part in folder.glob(f"*{TEMPORARY}"):
        remove(part)


def _read(trainer: Trainer, path: Path, flat: list[str]) -> dict[str, Tensor]:
    """The tensors by name: rows of all weights, and whatever goes with those that this process owns."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load as load_spread

    reader, names = HuggingFaceStorageReader(str(path)), _Names(trainer)
    known = reader.read_metadata().state_dict_metadata
    empty: dict[str, Tensor] = {}
    for name, each in known.items():
        if (here := names.here(name)) is not None:
            rows = names.rows.get(name)
            shape, kind = each.size if rows is None else rows.shape, each.properties.dtype  # type: ignore[union-attr]
            empty[here] = torch.empty(shape, dtype=kind)
    told = names.told(empty)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is")
        load_spread(told, storage_reader=reader, no_dist=trainer.world.size == 1)
    return {here: each.reshape(()) if names.there(here) in flat else each for here, each in empty.items()}


class _Names:
    """What the tensors of a checkpoint are called, where each process numbers the weights that it owns."""

    def __init__(self, trainer: Trainer) -> None:
        self._shards = shards = trainer.shards
        self._owned = shards.wholes.mine if shards else list(range(len(trainer.weights)))
        names = zip(shards.names, shards.rows, strict=True) if shards else ()
        self.rows = {f"model.{name}": rows for name, rows in names}
        self._moved = [
            [weight.device.type != "meta" for group in optimizer.param_groups for weight in group["params"]]
            for optimizer in trainer.optimizers
        ]

    def there(self, here: str) -> str:
        """The name in the checkpoint of what is called so here: averages have numbers of weights."""
        start, _, last = here.rpartition(".")
        numbered = here.startswith(("average.", "best.")) and last.isdecimal()
        return f"{start}.{self._owned[int(last)]}" if numbered else here

    def here(self, there: str) -> str | None:
        """The other way round; None where it goes with a weight that another process owns."""
        start, _, last = there.rpartition(".")
        if there.startswith("optimizer."):
            _, number, index, _ = there.split(".")
            return there if self._moved[int(number)][int(index)] else None
        if not (there.startswith(("average.", "best.")) and last.isdecimal()):
            return there
        return f"{start}.{self._owned.index(int(last))}" if int(last) in self._owned else None

    def told(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """The tensors as torch.distributed.checkpoint is told of them: what all hold together as one."""
        found = {}
        for here, tensor in tensors.items():
            name, held = self.there(here), tensor.reshape(1) if tensor.ndim == 0 else tensor
            cut = self._shards is not None and name in self.rows
            found[name] = self._shards.as_one(name.partition(".")[2], held) if cut else held  # type: ignore[union-attr]
        return found


def _index(path: Path) -> dict[str, Any]:
    try:
        return read_json(path / INDEX)
    except ModelError:
        return {}


def _sha(path: Path) -> str:
    """The hash of a file; none of one that is not there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


@contextmanager
def _storing(path: Path) -> Iterator[None]:
    """What torch says of a disk that is full or gone, in a line; it is the same in all processes."""
    from torch.distributed.checkpoint.api import CheckpointException

    try:
        yield
    except CheckpointException as error:
        why = next(iter(error.failures.values()))[0] if error.failures else error
        raise StorageError(f"cannot write or read {path}: {error_line(why)}") from error
