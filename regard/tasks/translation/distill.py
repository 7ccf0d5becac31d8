"""Distillation: a teacher translates the training text, and a smaller, faster student learns from that.

What a teacher writes is more regular than what people wrote, so that a student with a shallow decoder can
learn it (Kim and Rush 2016; deep encoders: Kasai et al. 2021). One call does both, killed or not: what the
teacher writes is kept in `distilled/`.

Before this file: `synthetic.py`, where the teacher writes; after it: `train.py`, which trains the student.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from regard.config import Config, read_toml
from regard.config.file import read_config
from regard.data.corpus import Corpus
from regard.data.store import Store, reopen_store
from regard.errors import UsageError, refuse_unknown
from regard.models.folder import Loaded, load_folder
from regard.process.lock import locked
from regard.process.progress import Reporter, build_reporter
from regard.tasks.task import expect
from regard.tasks.train import train
from regard.tasks.translation import TASK
from regard.tasks.translation.files import Files, corpus_of
from regard.tasks.translation.synthetic import (
    PAIRS,
    Text,
    Writing,
    claim,
    longest_line,
    origins,
    refuse_other_models,
    store_text,
    weights_sum,
    write_all,
    write_table,
    writer,
)
from regard.text.tokenizer import Tokenizer
from regard.training.run import Result
from regard.training.settle import settle
from regard.training.workspace import DISTILLED, make

ORIGINALS, VALID = "originals.tsv", "valid.tsv"
STARTED = ("parallel", "ctc", "blockwise")  # kinds of student that begin with the teacher's weights


class Options(TypedDict, total=False):
    """What `distill` takes beside its own parameters."""

    config_file: str | Path | None  # TOML, laid over the preset
    fresh: bool  # start over, the translations too
    device: str | None  # for training; found by itself if not named
    quiet: bool
    beam: int | None  # of the teacher; its own if not named
    to: str | None  # a kind of model that writes several tokens at once, started from the teacher


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
    refuse_unknown(options, Options.__annotations__, "distill")
    folder, home, fresh = Path(out), Path(teacher), options.get("fresh", False)
    file, quiet = options.get("config_file"), options.get("quiet", False)
    kind = _kind(options.get("to"), overrides)
    start = kind in STARTED and not _shaped(preset, file, overrides)
    preset = None if start else preset or "deep"
    overrides = dict(overrides or {}) | ({"model.kind": kind} if kind else {})
    teaching = read_config(home) if start else None
    config = settle(TASK, preset, Path(file) if file else None, overrides, base=teaching)
    _refuse_itself(folder, home)
    refuse_other_models(folder, DISTILLED, "distilled", fresh=fresh)
    given = corpus_of([valid]) if valid is not None else None
    if given is not None:
        given.check_files()  # before hours of translating
    held = _teacher(home)
    translator = writer(held, options.get("beam"))
    text = _text_of(home, sources, held.tokenizer)
    if originals and not text.targets:
        raise UsageError("--originals needs the original pairs, SRC TGT; there is only SRC")
    make(folder / DISTILLED)
    with locked(folder), build_reporter(quiet=quiet) as reporter:
        job = Writing(folder / DISTILLED, translator, text, longest_line(translator, config), reporter)
        facts = {"teacher": weights_sum(home)} | origins(job)
        claim(job.folder, facts, fresh=fresh, made=(PAIRS, ORIGINALS, VALID))
        write_all(job)
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


def _teacher(home: Path) -> Loaded:
    """The teacher's folder, if it is one that a student can learn from."""
    expect(home, "translation")
    if pairs := read_config(home).text.pairs:
        raise UsageError(f"{home} serves {pairs}; a student learns one pair, from a teacher of one")
    return load_folder(home)


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


def _refuse_itself(folder: Path, teacher: Path) -> None:
    if os.path.realpath(folder) == os.path.realpath(teacher):
        raise UsageError(f"{folder} is the teacher; choose another folder for the student")


def _languages(teacher: Config, student: Config) -> dict[str, Any]:
    """The teacher's languages, where the student's were not named."""
    named = student.text.source or student.text.target
    return {} if named else {"text.source": teacher.text.source, "text.target": teacher.text.target}


def _text_of(teacher: Path, sources: Files | None, tokenizer: Tokenizer) -> Text:
    """What is to be translated: what was named, or what the teacher was trained on."""
    if isinstance(sources, str | Path) and not str(sources).removesuffix(".gz").endswith(".tsv"):
        sources = Corpus(sources=(Path(sources),), targets=(Path(sources),))
    if sources is not None:
        corpus = corpus_of([sources])
        # A text alone is read as its own translation, which nobody looks at.
        return Text(corpus, tokenizer, corpus.sources != corpus.targets or bool(corpus.tables))
    store = reopen_store(teacher / "store" / "train") if tokenizer.pieces == tokenizer.target_pieces else None
    if store is None:
        raise UsageError(f"{teacher} holds no token store to take its training text from; name the text: SRC")
    return Text(store, tokenizer, True)


def _corpus(job: Writing, *, originals: bool) -> Corpus:
    """What the student learns from."""
    tables = [job.folder / PAIRS]
    if originals:
        tables.append(write_table(job.folder / ORIGINALS, job.text.pairs()))
    return Corpus(tables=tuple(tables))


def _validation(job: Writing, teacher: Path) -> Corpus | None:
    """The pairs that the teacher was validated on, if they are known."""
    store = reopen_store(teacher / "store" / "valid") if isinstance(job.text.origin, Store) else None
    if store is None:
        return None
    return Corpus(tables=(write_table(job.folder / VALID, store_text(store, job.text.tokenizer)),))


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
