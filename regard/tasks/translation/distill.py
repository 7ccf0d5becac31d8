"""Distillation: a teacher translates the training text, and a smaller, faster student learns from that.

What a teacher writes is more regular than what people wrote, so that a student with a shallow decoder can
learn it (Kim and Rush 2016; deep encoders: Kasai et al. 2021). One call does both, killed or not:

    distilled/pairs.tsv   a line for each line of the source, appended window by window
    distilled/run.json    which teacher, which text and which search they come from

Before this file: `load.py`; after it: `train.py`, which trains the student.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict, Unpack

from regard.atomic import write_atomically, write_text
from regard.config import Config, read_toml
from regard.config.file import read_config
from regard.data.corpus import Corpus
from regard.data.store import Store, reopen_store
from regard.errors import ModelError, StorageError, UsageError
from regard.foreign import read_json
from regard.models.folder import Loaded, load_folder
from regard.process.lock import locked
from regard.process.progress import Reporter, build_reporter, duration
from regard.process.stopping import Stopped, listen
from regard.tasks.task import expect
from regard.tasks.train import train
from regard.tasks.translation import TASK
from regard.tasks.translation.files import Files, corpus_of
from regard.tasks.translation.load import equip
from regard.tasks.translation.translator import Translator
from regard.text.normalise import normalise
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import saved_steps
from regard.training.run import Result
from regard.training.settle import settle
from regard.training.workspace import CHECKPOINTS, DISTILLED, make, refuse_foreign

PAIRS, ORIGINALS, VALID, RUN = "pairs.tsv", "originals.tsv", "valid.tsv", "run.json"
STARTED = ("parallel", "ctc", "blockwise")  # kinds of student that begin with the teacher's weights
NUL = "\0"  # which a table cannot hold
WINDOW = 640  # lines between two writes
_CHARACTERS_A_TOKEN = 64  # more than any vocabulary has on average: a longer line is too long, unread


class Options(TypedDict, total=False):
    """What `distill` takes beside its own parameters."""

    config_file: str | Path | None  # TOML, laid over the preset
    fresh: bool  # start over, the translations too
    device: str | None  # for training; found by itself if not named
    quiet: bool
    beam: int | None  # of the teacher; its own if not named
    to: str | None  # a kind of model that writes several tokens at once, started from the teacher


@dataclass(frozen=True)
class _Text:
    """What the teacher translates: pairs whose targets may be unknown."""

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
        if isinstance(self.origin, Corpus):
            return self.origin.fingerprint()
        return hashlib.sha256((self.origin.folder / "meta.json").read_bytes()).hexdigest()


@dataclass(frozen=True)
class _Job:
    """The first half of the work."""

    folder: Path  # out/distilled
    translator: Translator
    text: _Text
    longest: int  # tokens of a source line with its end; longer ones are left out
    reporter: Reporter


def distill(
    teacher: str | Path,
    sources: Files | None = None,
    *,
    out: str | Path,
    preset: str | None = None,
    valid: Files | None = None,
    originals: bool = False,
    overrides: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Result:
    """Translate the training text with a teacher and train a student on it, into the folder `out`.

    `sources` is a text, or pairs as `train` takes them; without it the pairs that the teacher was trained on
    are taken from its token store. `originals`: the pairs themselves are learned beside the translations.
    The student has the teacher's vocabulary unless `overrides` set `text.vocab_size`. `to` names a kind of
    model that writes several tokens at once (parallel, ctc, blockwise): unless a preset is named, such a
    student begins with the teacher's weights.
    """
    folder, home, fresh = Path(out), Path(teacher), options.get("fresh", False)
    file, quiet = options.get("config_file"), options.get("quiet", False)
    kind = _kind(options.get("to"), overrides)
    start = kind in STARTED and not _shaped(preset, file, overrides)
    preset = None if start else preset or "deep"
    overrides = dict(overrides or {}) | ({"model.kind": kind} if kind else {})
    teaching = read_config(home) if start else None
    config = settle(TASK, preset, Path(file) if file else None, overrides, base=teaching)
    _refuse_other_models(folder, home, fresh=fresh)
    given = corpus_of([valid]) if valid is not None else None
    if given is not None:
        given.check_files()  # before hours of translating
    expect(home, "translation")
    if pairs := read_config(home).text.pairs:
        raise UsageError(f"{home} serves {pairs}; a student learns one pair, from a teacher of one")
    held = load_folder(home)
    translator = _translator(held, options.get("beam"))
    text = _text_of(home, sources, held.tokenizer)
    if originals and not text.targets:
        raise UsageError("--originals needs the original pairs, SRC TGT; there is only SRC")
    make(folder / DISTILLED)
    with locked(folder), build_reporter(quiet=quiet) as reporter:
        job = _Job(folder / DISTILLED, translator, text, _longest(translator, config), reporter)
        _claim(job, home, fresh=fresh)
        _translate(job)
        corpus = _corpus(job, originals=originals)
        given = given or _validation(job, home)
        vocabulary = _vocabulary(held.tokenizer, overrides, reporter)
    return train(
        corpus,
        out=folder,
        valid=given,
        preset=preset,
        config_file=file,
        overrides=_languages(held.config, config) | overrides,
        start_from=home if start else None,
        fresh=fresh,
        device=options.get("device"),
        quiet=quiet,
        tokenizer=None if start else vocabulary,
        origin=_origin(home, translator.decode.beam, originals=originals),
    )


def _kind(to: str | None, overrides: Mapping[str, Any] | None) -> str | None:
    """The kind of model that the student is to be, if one was named."""
    kind: str | None = (overrides or {}).get("model.kind", to)
    if to is not None and (to not in STARTED or kind != to):
        raise UsageError(f"to ({to}) must be one of {', '.join(STARTED)}, and is the student's model.kind")
    return kind


def _shaped(preset: str | None, file: str | Path | None, overrides: Mapping[str, Any] | None) -> bool:
    """Whether the student is to have a shape or a vocabulary of its own."""
    named = set(overrides or {}) | set(read_toml(Path(file)) if file else {})
    own = {"model.kind", "model.upsample", "model.draft", "model.dropout"}
    return preset is not None or any(
        key.startswith(("model.", "attention.", "positions.", "text.vocab")) and key not in own
        for key in named
    )


def _refuse_other_models(folder: Path, teacher: Path, *, fresh: bool) -> None:
    """A folder that holds a model which was not distilled is somebody's."""
    if os.path.realpath(folder) == os.path.realpath(teacher):
        raise UsageError(f"{folder} is the teacher; choose another folder for the student")
    refuse_foreign(folder)
    holds = (folder / "model.safetensors").exists() or bool(saved_steps(folder / CHECKPOINTS))
    if holds and not (folder / DISTILLED / RUN).is_file() and not fresh:
        raise UsageError(f"{folder} holds a model that was not distilled; choose another folder, or --fresh")


def _translator(held: Loaded, beam: int | None) -> Translator:
    """The teacher in the engine, with the search that was asked for."""
    decode = held.config.decode if beam is None else replace(held.config.decode, beam=beam)
    translator = Translator(held.model, held.tokenizer, decode)
    equip(translator)
    return translator


def _languages(teacher: Config, student: Config) -> dict[str, Any]:
    """The teacher's languages, where the student's were not named."""
    named = student.text.source or student.text.target
    return {} if named else {"text.source": teacher.text.source, "text.target": teacher.text.target}


def _text_of(teacher: Path, sources: Files | None, tokenizer: Tokenizer) -> _Text:
    """What is to be translated: what was named, or what the teacher was trained on."""
    if isinstance(sources, str | Path) and not str(sources).removesuffix(".gz").endswith(".tsv"):
        sources = Corpus(sources=(Path(sources),), targets=(Path(sources),))
    if sources is not None:
        corpus = corpus_of([sources])
        # A text alone is read as its own translation, which nobody looks at.
        return _Text(corpus, tokenizer, corpus.sources != corpus.targets or bool(corpus.tables))
    store = reopen_store(teacher / "store" / "train") if tokenizer.pieces == tokenizer.target_pieces else None
    if store is None:
        raise UsageError(f"{teacher} holds no token store to take its training text from; name the text: SRC")
    return _Text(store, tokenizer, True)


def store_text(store: Store, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """The pairs of a store as text."""
    for i in range(len(store)):
        src, tgt = (tokenizer.decode(side.tolist()) for side in store.pair(i))
        yield normalise(src), normalise(tgt)


def _longest(translator: Translator, config: Config) -> int:
    """Tokens, the end counted, of the longest line that the teacher can read and the student will learn."""
    limits = config.data.max_length, translator.decode.max_source, translator.model.max_length
    return min(limit for limit in limits if limit is not None)


def _claim(job: _Job, teacher: Path, *, fresh: bool) -> None:
    """Make sure that what the folder holds comes from the same teacher, text and search; or start anew."""
    with (teacher / "model.safetensors").open("rb") as file:
        weights = hashlib.file_digest(file, "sha256").hexdigest()
    decode = job.translator.decode
    wanted = {
        "teacher": weights,
        "text": job.text.fingerprint(),
        "beam": decode.beam,
        "length penalty": decode.length_penalty,
        "longest line": job.longest,
    }
    path = job.folder / RUN
    try:
        held = read_json(path) if path.exists() else None
    except ModelError:
        held = None
    words = [name for name in wanted if held is not None and held.get(name) != wanted[name]]
    if words and not fresh:
        raise UsageError(
            f"{job.folder} holds other translations: the {words[0]} changed; use --fresh to start over"
        )
    if held is None or fresh:
        for name in (PAIRS, ORIGINALS, VALID):
            (job.folder / name).unlink(missing_ok=True)
        write_text(path, json.dumps(wanted, indent=2) + "\n")


def _translate(job: _Job) -> None:
    """Append what is missing to the pairs; a line that cannot be translated becomes an empty one."""
    path, total = job.folder / PAIRS, job.text.count()
    began_with = done = whole_lines(path)
    if done >= total:
        job.reporter.said(f"{total:,} lines are translated")
        return
    for line in job.translator.notes:
        job.reporter.said(line)
    job.reporter.said(
        f"translating {total - done:,} of {total:,} lines with beam {job.translator.decode.beam}"
    )
    lines = islice((src for src, _ in job.text.pairs()), done, None)
    began = time.perf_counter()
    try:
        with listen() as stop, path.open("ab") as file:
            while window := list(islice(lines, WINDOW)):
                file.write("".join(_pairs_of(job, window)).encode())
                file.flush()
                os.fsync(file.fileno())
                done += len(window)
                spent = time.perf_counter() - began
                to_go = duration(spent / (done - began_with) * (total - done))
                speed = (done - began_with) / spent
                said = f"{done:,} of {total:,} lines  {speed:,.0f} lines/s  {to_go} left"
                job.reporter.advanced(spent, done / total, said)
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


def _pairs_of(job: _Job, sources: list[str]) -> list[str]:
    """One line of the table for each source."""
    fitting = [text if len(text) <= _CHARACTERS_A_TOKEN * job.longest else "" for text in sources]
    lengths = [len(ids) for ids in job.translator.tokenizer.encode_batch(fitting)]
    chosen = [i for i, length in enumerate(lengths) if 0 < length < job.longest]
    rows = ["\n"] * len(sources)
    found = job.translator.translate([sources[i] for i in chosen])
    for i, target in zip(chosen, found, strict=True):
        rows[i] = f"{sources[i]}\t{normalise(target.replace(NUL, ' '))}\n"
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


def _corpus(job: _Job, *, originals: bool) -> Corpus:
    """What the student learns from."""
    tables = [job.folder / PAIRS]
    if originals:
        tables.append(_write_table(job.folder / ORIGINALS, job.text.pairs()))
    return Corpus(tables=tuple(tables))


def _validation(job: _Job, teacher: Path) -> Corpus | None:
    """The pairs that the teacher was validated on, if they are known."""
    store = reopen_store(teacher / "store" / "valid") if isinstance(job.text.origin, Store) else None
    if store is None:
        return None
    return Corpus(tables=(_write_table(job.folder / VALID, store_text(store, job.text.tokenizer)),))


def _write_table(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    """The pairs as TSV, if they are not there already."""

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{src}\t{tgt}\n" for src, tgt in pairs)

    if not path.exists():
        write_atomically(path, write)
    return path


def _vocabulary(
    tokenizer: Tokenizer, overrides: Mapping[str, Any] | None, reporter: Reporter
) -> Tokenizer | None:
    """The teacher's, or None where the student learns its own."""
    if "text.vocab_size" in (overrides or {}):
        return None
    if tokenizer.pieces != tokenizer.target_pieces:
        reporter.said("the teacher has two vocabularies; the student learns one of its own")
        return None
    return tokenizer


def _origin(teacher: Path, beam: int, *, originals: bool) -> str:
    """What the card says of the data."""
    beside = ", learned beside the original pairs" if originals else ""
    name = teacher.resolve().name
    return f"distilled: the target side was written by the teacher {name} with beam {beam}{beside}"


__all__ = ["distill"]
