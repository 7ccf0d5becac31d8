"""Back-translation: text in the target language becomes pairs, its source written by a reverse model.

What nobody has translated still teaches how the target language is written (Sennrich et al. 2016, "Improving
NMT models with monolingual data"). The source of such a pair begins with a token, so that the model can tell
it from a real one (Caswell et al. 2019). One call and one folder, killed or not:

    synthetic/reverse/     the reverse model, trained on the pairs turned round, unless one is given
    synthetic/pairs.tsv    what it wrote, and the line that it wrote it for
    synthetic/run.json     which pairs, which text and which reverse model they come from

Before this file: `synthetic.py`; after it: `train.py`, which trains the model on both.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from regard.config import Config, read_toml
from regard.config.file import read_config
from regard.data.corpus import Corpus
from regard.errors import UsageError, refuse_unknown
from regard.models.folder import load_folder
from regard.process.lock import locked
from regard.process.progress import build_reporter
from regard.tasks.task import expect
from regard.tasks.train import train
from regard.tasks.translation import TASK
from regard.tasks.translation.files import Files, corpus_of
from regard.tasks.translation.mixing import with_synthetic
from regard.tasks.translation.prepare import Pairs
from regard.tasks.translation.synthetic import (
    PAIRS,
    Text,
    Writing,
    claim,
    longest_line,
    origins,
    refuse_other_models,
    weights_sum,
    write_all,
    write_table,
    writer,
)
from regard.text.normalise import normalise
from regard.training.run import Result
from regard.training.settle import settle
from regard.training.workspace import SYNTHETIC, make

REVERSE, TURNED, TURNED_VALID = "reverse", "turned.tsv", "turned_valid.tsv"


class Options(TypedDict, total=False):
    """What `backtranslate` takes beside its own parameters."""

    preset: str | None  # of both models
    config_file: str | Path | None  # TOML, laid over the preset, for both
    overrides: Mapping[str, Any]  # dotted config keys, for both
    reverse_minutes: float | None  # for training the reverse model; as long as the other if not named
    beam: int | None  # of the reverse model; its own if not named
    fresh: bool  # start over, all of it
    device: str | None
    quiet: bool


def backtranslate(
    *pairs: Files,
    mono: Files,
    out: str | Path,
    reverse: str | Path | None = None,
    valid: Sequence[Files] | None = None,
    **options: Unpack[Options],
) -> Result:
    """Train on pairs and on text in the target language, into the folder `out`.

    `reverse` is a folder that translates from the target to the source; without it one is trained on the
    pairs, turned round. `data.synthetic` of the overrides is how many synthetic pairs there are for each real
    one.
    """
    refuse_unknown(options, Options.__annotations__, "backtranslate")
    folder, fresh, quiet = Path(out), options.get("fresh", False), options.get("quiet", False)
    real, text = corpus_of(pairs), _alone(mono)
    held = corpus_of(list(valid)) if valid else None
    for corpus in (real, text, held):
        if corpus is not None:
            corpus.check_files()  # before hours of work
    config = _config(options, Pairs(real, held))
    if reverse is not None:
        _check_reverse(Path(reverse), config, folder)
    refuse_other_models(folder, SYNTHETIC, "made by back-translation", fresh=fresh)
    place = folder / SYNTHETIC
    make(place)
    with locked(folder):
        facts = {"pairs": real.fingerprint(), "text": text.fingerprint()}
        facts["reverse model"] = weights_sum(Path(reverse)) if reverse is not None else "trained here"
        claim(place, facts, fresh=fresh, made=(PAIRS, TURNED, TURNED_VALID))
    home = Path(reverse) if reverse is not None else _reverse(place, real, held, config, options)
    with locked(folder), build_reporter(quiet=quiet) as reporter:
        loaded = load_folder(home)
        translator = writer(loaded, options.get("beam"))
        longest = longest_line(translator, config)
        work = Writing(place, translator, Text(text, loaded.tokenizer, False), longest, reporter, turned=True)
        claim(place, {"weights of the reverse model": weights_sum(home)} | origins(work), fresh=False)
        write_all(work)
    return train(
        with_synthetic(real, Corpus(tables=(place / PAIRS,))),
        out=folder,
        valid=held,
        preset=options.get("preset"),
        config_file=options.get("config_file"),
        overrides=options.get("overrides") or {},
        fresh=fresh,
        device=options.get("device"),
        quiet=quiet,
        origin=_origin(text, home, reverse, translator.decode.beam),
    )


def _alone(mono: Files) -> Corpus:
    """A text alone, read as its own translation, which nobody looks at."""
    return corpus_of([mono, mono])


def _config(options: Options, pairs: Pairs) -> Config:
    """The settings of the model that is asked for; a slip of the pen is found before any work."""
    file = options.get("config_file")
    overrides = options.get("overrides") or {}
    if "text.pairs" in overrides or (file and "text.pairs" in read_toml(Path(file))):
        raise UsageError("back-translation is for one pair of languages; leave out text.pairs")
    return settle(TASK, options.get("preset"), Path(file) if file else None, overrides, examples=pairs)


def _check_reverse(home: Path, config: Config, folder: Path) -> None:
    """A reverse model translates one pair, the other way round."""
    expect(home, "translation")
    if os.path.realpath(home) == os.path.realpath(folder):
        raise UsageError(f"{folder} is the reverse model; choose another folder for the new one")
    text = read_config(home).text
    if text.pairs:
        raise UsageError(f"{home} serves {text.pairs}; the reverse model must be one of a single pair")
    wanted, known = (config.text.target, config.text.source), (text.source, text.target)
    if all(wanted) and all(known) and wanted != known:
        raise UsageError(f"{home} translates {'-'.join(known)}; the reverse model must go {'-'.join(wanted)}")


def _reverse(place: Path, real: Corpus, held: Corpus | None, config: Config, options: Options) -> Path:
    """The reverse model, trained here, or gone on with."""
    tables = [
        Corpus(tables=(write_table(place / name, _turned(corpus)),))
        for name, corpus in ((TURNED, real), (TURNED_VALID, held))
        if corpus is not None
    ]
    minutes = options.get("reverse_minutes")
    languages = {"text.source": config.text.target, "text.target": config.text.source}
    train(
        tables[0],
        out=place / REVERSE,
        valid=tables[1] if len(tables) > 1 else None,
        preset=options.get("preset"),
        config_file=options.get("config_file"),
        overrides=dict(options.get("overrides") or {})
        | languages
        | ({"train.minutes": minutes} if minutes is not None else {}),
        fresh=options.get("fresh", False),
        device=options.get("device"),
        quiet=options.get("quiet", False),
        origin="the pairs of a model to come, turned round",
    )
    return place / REVERSE


def _turned(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Its pairs, target first."""
    return ((normalise(pair.tgt), normalise(pair.src)) for pair in corpus.pairs())


def _origin(text: Corpus, home: Path, given: str | Path | None, beam: int) -> str:
    """What the card says of the data."""
    names = ", ".join(dict.fromkeys(path.name for path in text.paths))
    who = f"the model {home.resolve().name}" if given is not None else "a reverse model trained on the pairs"
    return f"back-translation: the source side of {names} was written by {who} with beam {beam} and is tagged"


__all__ = ["backtranslate"]
