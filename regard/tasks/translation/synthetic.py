"""What a model writes for another to learn from: made once, line by line, and gone on with.

    FOLDER/pairs.tsv   a line for each line of the text, appended window by window
    FOLDER/run.json    which model, which text and which search they come from

Before this file: `load.py`; after it: `distill.py` (a teacher writes targets) and `backtranslate.py` (a
reverse model writes sources), each of which trains on what is written here.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from regard.atomic import write_atomically, write_text
from regard.config import Config
from regard.data.corpus import Corpus
from regard.data.store import Store
from regard.errors import ModelError, StorageError, UsageError
from regard.foreign import read_json
from regard.models.folder import Loaded
from regard.process.progress import Reporter, duration
from regard.process.stopping import Stopped, listen
from regard.tasks.translation.load import equip
from regard.tasks.translation.translator import Translator
from regard.text.normalise import normalise
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import saved_steps
from regard.training.workspace import CHECKPOINTS, refuse_foreign

PAIRS, RUN = "pairs.tsv", "run.json"
NUL = "\0"  # which a table cannot hold
WINDOW = 640  # lines between two writes
_CHARACTERS_A_TOKEN = 64  # more than any vocabulary has on average: a longer line is too long, unread


@dataclass(frozen=True)
class Text:
    """What the model translates: pairs whose targets may be unknown."""

    origin: Corpus | Store
    tokenizer: Tokenizer
    targets: bool  # whether it has any

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Source and target, on one line each and without tabs."""
        if isinstance(self.origin, Corpus):
            for pair in self.origin.pairs():
                yield normalise(pair.src), normalise(pair.tgt)
        else:
            yield from store_text(self.origin, self.tokenizer)

    def count(self) -> int:
        """How many there are; a corpus is read, and its faults are found."""
        return len(self.origin) if isinstance(self.origin, Store) else sum(1 for _ in self.origin.pairs())

    def fingerprint(self) -> str:
        """Of what is in it."""
        if isinstance(self.origin, Corpus):
            return self.origin.fingerprint()
        return hashlib.sha256((self.origin.folder / "meta.json").read_bytes()).hexdigest()


@dataclass(frozen=True)
class Writing:
    """The work."""

    folder: Path  # where it is kept
    translator: Translator
    text: Text
    longest: int  # tokens of a source line with its end; longer ones are left out
    reporter: Reporter
    turned: bool = False  # what is written stands first: it is the source that is learned from


def refuse_other_models(folder: Path, written: str, what: str, *, fresh: bool) -> None:
    """A folder that holds a model which was not made so is somebody's."""
    refuse_foreign(folder)
    holds = (folder / "model.safetensors").exists() or bool(saved_steps(folder / CHECKPOINTS))
    if holds and not (folder / written / RUN).is_file() and not fresh:
        raise UsageError(f"{folder} holds a model that was not {what}; choose another folder, or --fresh")


def writer(held: Loaded, beam: int | None) -> Translator:
    """The model in the engine, with the search that was asked for."""
    decode = held.config.decode if beam is None else replace(held.config.decode, beam=beam)
    translator = Translator(held.model, held.tokenizer, decode)
    equip(translator)
    return translator


def longest_line(translator: Translator, config: Config) -> int:
    """Tokens, the end counted, of the longest line that one model can read and the other will learn."""
    limits = config.data.max_length, translator.decode.max_source, translator.model.max_length
    return min(limit for limit in limits if limit is not None)


def store_text(store: Store, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """The pairs of a store as text."""
    for i in range(len(store)):
        src, tgt = (tokenizer.decode(side.tolist()) for side in store.pair(i))
        yield normalise(src), normalise(tgt)


def weights_sum(folder: Path) -> str:
    """A hash of the weights in a model folder."""
    with (folder / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def origins(work: Writing) -> dict[str, Any]:
    """What the lines depend on, beside the weights."""
    decode = work.translator.decode
    return {
        "text": work.text.fingerprint(),
        "beam": decode.beam,
        "length penalty": decode.length_penalty,
        "longest line": work.longest,
    }


def claim(folder: Path, wanted: Mapping[str, Any], *, fresh: bool, made: Iterable[str] = (PAIRS,)) -> None:
    """Make sure that what the folder holds comes from the same; or start anew, without what was `made`.

    Claims may be made one after the other, each as soon as more is known.
    """
    path = folder / RUN
    try:
        held = read_json(path) if path.exists() else None
    except ModelError:
        held = None
    known = held or {}
    words = [name for name in wanted if name in known and known[name] != wanted[name]]
    if words and not fresh:
        raise UsageError(
            f"{folder} holds other translations: the {words[0]} changed; use --fresh to start over"
        )
    if held is None or fresh:
        for name in made:
            (folder / name).unlink(missing_ok=True)
        known = {}
    if any(known.get(name) != value for name, value in wanted.items()):
        write_text(path, json.dumps(known | dict(wanted), indent=2) + "\n")


def write_all(work: Writing) -> None:
    """Append what is missing to the pairs; a line that cannot be translated becomes an empty one."""
    path, total = work.folder / PAIRS, work.text.count()
    began_with = done = whole_lines(path)
    if done >= total:
        work.reporter.said(f"{total:,} lines are translated")
        return
    for line in work.translator.notes:
        work.reporter.said(line)
    work.reporter.said(
        f"translating {total - done:,} of {total:,} lines with beam {work.translator.decode.beam}"
    )
    lines = islice((src for src, _ in work.text.pairs()), done, None)
    began = time.perf_counter()
    try:
        with listen() as stop, path.open("ab") as file:
            while window := list(islice(lines, WINDOW)):
                file.write("".join(_pairs_of(work, window)).encode())
                file.flush()
                os.fsync(file.fileno())
                done += len(window)
                spent = time.perf_counter() - began
                to_go = duration(spent / (done - began_with) * (total - done))
                speed = (done - began_with) / spent
                said = f"{done:,} of {total:,} lines  {speed:,.0f} lines/s  {to_go} left"
                work.reporter.advanced(spent, done / total, said)
                if stop.signal and done < total:
                    raise Stopped(
                        stop.signal,
                        f"stopped after {done:,} of {total:,} lines; the same command goes on from there",
                    )
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; what was written before is kept"
        ) from error


def _pairs_of(work: Writing, sources: list[str]) -> list[str]:
    """One line of the table for each source."""
    fitting = [text if len(text) <= _CHARACTERS_A_TOKEN * work.longest else "" for text in sources]
    lengths = [len(ids) for ids in work.translator.tokenizer.encode_batch(fitting)]
    chosen = [i for i, length in enumerate(lengths) if 0 < length < work.longest]
    rows = ["\n"] * len(sources)
    found = work.translator.translate([sources[i] for i in chosen])
    for i, output in zip(chosen, found, strict=True):
        pair = sources[i], normalise(output.replace(NUL, " "))
        rows[i] = "\t".join(reversed(pair) if work.turned else pair) + "\n"
    return rows


def whole_lines(path: Path) -> int:
    """How many lines a file has; half a line at its end is cut off."""
    if not path.exists():
        return 0
    lines = read = end = 0
    with path.open("rb+") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            if b"\n" in block:
                end = read + block.rindex(b"\n") + 1
            read += len(block)
        file.truncate(end)
    return lines


def write_table(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    """The pairs as TSV, if they are not there already."""

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{src}\t{tgt}\n" for src, tgt in pairs)

    if not path.exists():
        write_atomically(path, write)
    return path
