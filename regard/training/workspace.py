"""The folder of a run: whose it is, which run it holds, and whether that run is the one asked for.

`checkpoints/run.json` is written before the first step and says what the run is made of (settings
and data). The same command finds it and goes on; another command is told what differs. It is the
first thing `run.py` looks at and the last thing it writes.
"""

import dataclasses
import json
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.atomic import TEMPORARY, write_text
from regard.config import Config, flatten, known_keys, to_dict
from regard.config.file import is_model
from regard.config.tree import TASK
from regard.errors import ModelError, StorageError, UsageError, shown
from regard.foreign import read_json
from regard.process.lock import LOCK
from regard.training.checkpoint import saved_steps

CHECKPOINTS = "checkpoints"
DATA = "data"  # the phrases or recordings of the demo lie here; never removed
DISTILLED = "distilled"  # what a teacher wrote for the student in this folder; days of work, never removed
SYNTHETIC = "synthetic"  # what a reverse model wrote, and the model itself; the same
_WRITTEN = (DISTILLED, SYNTHETIC)
_PHRASES = re.compile(r"(train|valid|test)(\..+\.(tsv|txt|npz))?")
OURS = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "generation.json",
    "README.md",
    "metrics.jsonl",
    "tensorboard",
    "attention.html",  # of the demo
    "shortlist.safetensors",
    "judge.safetensors",
    "samples",  # sheets of a generator
    "samples.png",
    CHECKPOINTS,
)  # not the token store: it knows by itself whether it still fits
# Settings that change no weight: a run may go on under other ones.
BOUNDS = ("train.minutes", "train.max_steps", "train.max_epochs")  # a run may be given others
FREE = ("train.log_every", "train.save_every", "train.keep", "train.tensorboard", "decode.")


@dataclass
class Run:
    """What a run is made of, and how it ended."""

    settings: dict[str, Any]  # dotted config keys
    data: dict[str, str]  # fingerprints by name
    chosen: dict[str, Any] = field(default_factory=dict)  # precision and threads, and where they were chosen
    finished: bool = False
    result: dict[str, Any] = field(default_factory=dict)


def describe(config: Config, data: dict[str, str]) -> Run:
    """The run that `config` and the data's fingerprints ask for."""
    settings = {key: value for key, value in flatten(to_dict(config)).items() if not key.startswith(FREE)}
    return Run(settings, data)


def differences(old: Run, new: Run) -> list[str]:
    """In words, what the folder's run and the one asked for disagree on; their bounds are no matter.

    A key that an older version did not know has its default, those of the task and of the kind of model too.
    """
    keys = sorted((old.settings.keys() | new.settings.keys()) - set(BOUNDS))
    known = {TASK: Config.task} | known_keys(new.settings[TASK], new.settings["model.kind"])
    was, now = ([run.settings.get(key, known.get(key)) for key in keys] for run in (old, new))
    words = [
        f"{shown(key)} was {shown(one)} and is {shown(other)}"
        for key, one, other in zip(keys, was, now, strict=True)
        if one != other
    ]
    names = sorted(old.data.keys() | new.data.keys())
    return words + [f"the {name} changed" for name in names if old.data.get(name) != new.data.get(name)]


def read_run(folder: Path) -> Run | None:
    """The run that the folder holds; None if there is none or it cannot be read."""
    try:
        run = Run(**read_json(folder / CHECKPOINTS / "run.json"))
    except (ModelError, TypeError):
        return None
    whole = all(isinstance(each, dict) for each in (run.settings, run.data, run.result))
    return run if whole else None


def write_run(folder: Path, run: Run) -> None:
    write_text(folder / CHECKPOINTS / "run.json", json.dumps(asdict(run), indent=2) + "\n")


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that belongs to something else; touches nothing."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; the model needs a folder")
    try:
        if folder.exists() and not _is_ours(folder):
            raise UsageError(f"{folder} holds other files and no model of Regard; choose another folder")
    except OSError as error:
        raise UsageError(f"cannot look into {folder}: {error.strerror}") from error


def make(folder: Path) -> None:
    """The folder and those it lies in."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}") from error


def _is_ours(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    if any((folder / name / "run.json").is_file() for name in (CHECKPOINTS, *_WRITTEN)):
        return True
    if names <= {LOCK, CHECKPOINTS, DATA, *_WRITTEN}:  # empty, or stopped before the first file was whole
        begun = [path for name in (CHECKPOINTS, *_WRITTEN) for path in (folder / name).glob("*")]
        parts = all(path.name.endswith(TEMPORARY) for path in begun)
        return parts and all(_PHRASES.fullmatch(path.name) for path in (folder / DATA).glob("*"))
    return is_model(folder)


def clear(folder: Path) -> None:
    """Remove the run and the model in the folder, and nothing else that lies in it."""
    for name in OURS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _rebound(held: Run, wanted: Run) -> Run:
    """The folder's run with the bounds that are asked for; a finished one goes on where they are wider."""
    known = known_keys()
    before, after = ([run.settings.get(key, known[key]) for key in BOUNDS] for run in (held, wanted))
    if held.finished and not any(new > old for old, new in zip(before, after, strict=True) if old):
        return held
    settings = held.settings | dict(zip(BOUNDS, after, strict=True))
    return dataclasses.replace(held, settings=settings, finished=False)


def prepare(folder: Path, wanted: Run, *, fresh: bool) -> Run:
    """Make the folder ready for the run: the one it holds, if it is the same one, or a new one.

    Another run is refused where there is something to lose: a checkpoint or a model.
    """
    held, steps = read_run(folder), saved_steps(folder / CHECKPOINTS)
    something = bool(steps) or (folder / "model.safetensors").exists()
    if something and held is None and not fresh:
        raise UsageError(f"{folder} holds a model of an unknown run; choose another folder, or use --fresh")
    words = differences(held, wanted) if held is not None else []
    if something and words and not fresh:
        more = f" and {len(words) - 3} more" if len(words) > 3 else ""
        raise UsageError(
            f"{folder} holds another run: {'; '.join(words[:3])}{more}; "
            "use --fresh to start over, or --from to train it further in another folder"
        )
    if held is not None and not words and not fresh:
        return _rebound(held, wanted)
    clear(folder)
    (folder / CHECKPOINTS).mkdir()
    write_run(folder, wanted)
    return wanted
