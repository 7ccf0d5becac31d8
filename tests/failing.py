"""A disk that fails at every operation in turn: what was there still loads, and the command ends with code 5.

    python tests/failing.py WORK RESULT [every]

Started by tests/cli/test_failing.py with `failing.c` in front of the C library. A verb is run in a forked
child on a copy of its inputs; its 1st, 2nd, 3rd ... write, flush, rename or new file fails, and so does
every one after it, with ENOSPC and EIO in turn. RESULT gets what was unlawful, and how much was tried.
"""

import contextlib
import ctypes
import errno
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import strangers
import torch

from regard.cli.main import run
from regard.engine.shortlist import FILE, Shortlist
from regard.models.folder import load_folder

TINY = [
    *(
        "--preset",
        "tiny",
        "--set",
        "train.max_steps=1",
        "--set",
        "model.d_model=12",
        "--set",
        "model.n_heads=2",
    ),
    *("--set", "model.d_ff=8", "--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1"),
    *("--set", "text.vocab_size=280", "--set", "train.save_every=0", "--set", "positions.kind=sinusoidal"),
]


class Trial(NamedTuple):
    """A verb, its arguments inside of the folder it works in, and what must hold there after it failed."""

    name: str
    arguments: list[str]
    whole: Callable[[Path], object]
    every: int = 1  # which operations fail: each, or each third


def disk() -> ctypes.CDLL:
    """The functions of `failing.c` in this process."""
    return ctypes.CDLL(None)


def child(place: Path, arguments: list[str], count: int, error: int) -> tuple[int, int, str]:
    """The exit code of the verb on this disk, the operations that it asked for, and what it said."""
    said = place.with_suffix(".said")
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.chdir(place)
        with said.open("w") as file:
            os.dup2(file.fileno(), 2)
            os.dup2(file.fileno(), 1)
        disk().fail_at(os.fsencode(place), ctypes.c_long(count), error)
        code = run(arguments)
        asked = disk().operations()
        disk().fail_at(b"", ctypes.c_long(-1), 0)
        os.write(write, json.dumps([code, asked]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        code, asked = json.loads(answer.read() or "[-1, 0]")
    os.waitpid(process, 0)
    return code, asked, said.read_text(errors="replace")


def attempt(trial: Trial, base: Path, place: Path, every: int) -> tuple[int, list[str]]:
    """How many operations failed in turn, and what was unlawful about how that ended."""
    faults = []
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    code, operations, said = child(place, trial.arguments, -1, 0)
    if code:
        return 0, [f"{trial.name} on a healthy disk ended with {code}: {said[-300:]}"]
    tried = range(0, operations, trial.every * every)
    for count in tried:
        shutil.rmtree(place)
        shutil.copytree(base, place)
        error = (errno.ENOSPC, errno.EIO)[count // trial.every % 2]
        code, _, said = child(place, trial.arguments, count, error)
        where = f"{trial.name}, operation {count} of {operations}, {errno.errorcode[error]}"
        if code != 5 or "Traceback" in said:
            faults.append(f"{where}: ended with {code}: {said[-300:]}")
        try:
            trial.whole(place)
        except Exception as lost:
            faults.append(f"{where}: {type(lost).__name__}: {lost}")
    return len(tried), faults


def inputs(base: Path) -> None:
    """Pairs, a model trained on them with its shortlist, a Marian folder."""
    base.mkdir()
    lines = [f"{word} {other}\t{other} {word}\n" for word in "abcdefg" for other in "hijklmn"]
    (base / "pairs.tsv").write_text("".join(lines))
    os.chdir(base)
    with contextlib.redirect_stderr(io.StringIO()):
        assert run(["train", "pairs.tsv", "-o", "model", *TINY]) == 0
        assert run(["shortlist", "-m", "model"]) == 0
    strangers.marian(base / "marian")


def checksum(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def trials(base: Path) -> list[Trial]:
    """Every verb that writes a folder."""
    trained = checksum(base / "model")

    def models(place: Path) -> None:
        held = load_folder(place / "model")
        Shortlist.load(place / "model", held.tokenizer)
        assert (place / "model" / FILE).is_file()

    def again(place: Path) -> None:
        """The same command goes on, and ends as if the disk had never failed."""
        models(place)
        code, _, said = child(place, ["train", "pairs.tsv", "-o", "new", *TINY], -1, 0)
        assert code == 0, said
        assert checksum(place / "new") == trained

    def nothing(place: Path) -> None:
        models(place)
        left = [path.name for path in place.iterdir() if path.name.lstrip(".").startswith("out")]
        assert not left, left

    exports = [
        Trial(f"export {kind}", ["export", "-m", "model", "--to", kind, "-o", "out"], nothing, every)
        for kind, every in (("ctranslate2", 1), ("huggingface", 1), ("onnx", 2))
    ]
    return [
        Trial("train", ["train", "pairs.tsv", "-o", "new", *TINY], again),
        Trial("import", ["import", "marian", "-o", "out"], nothing),
        Trial("pack", ["pack", "model", "-o", "out"], nothing),
        Trial("shortlist", ["shortlist", "-m", "model"], models),
        *exports,
    ]


def main(work: Path, result: Path, every: int) -> None:
    """All trials."""
    torch.set_num_threads(1)
    inputs(work / "base")
    faults, tried = [], {}
    for trial in trials(work / "base"):
        tried[trial.name], found = attempt(trial, work / "base", work / "place", every)
        faults += found
        print(trial.name, tried[trial.name], *found, sep="\n", flush=True)
    result.write_text(json.dumps({"faults": faults, "tried": tried}))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    )
