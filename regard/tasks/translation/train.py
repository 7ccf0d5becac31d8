"""`regard.train`: from files of pairs to a translator, in one call that can be killed and repeated.

The work is `regard.training.run`'s; here are the pairs. The same call on the same folder goes on where it
stopped; on a finished one it does nothing; another call on it is refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from regard.tasks.translation import TASK
from regard.tasks.translation.prepare import Files, Pairs, as_corpus
from regard.text.tokenizer import Tokenizer
from regard.training.run import Asked, Result
from regard.training.run import train as run


class Options(TypedDict, total=False):
    """What `train` takes beside its own parameters."""

    config_file: str | Path | None  # TOML, laid over the preset
    fresh: bool  # start over, whatever the folder holds of ours
    device: str | None  # found by itself if not named
    quiet: bool
    prepared: str | Path | None  # a folder with a tokenizer and token stores of the same data, to share
    tokenizer: Tokenizer | None  # to begin with, instead of one that is learned from the data
    origin: str  # where the data come from, for the card


def train(
    sources: Files,
    targets: Files | None = None,
    *,
    out: str | Path,
    valid: Files | None = None,
    preset: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    start_from: str | Path | None = None,
    **options: Unpack[Options],
) -> Result:
    """Train a translator on pairs of lines and leave it in the folder `out`.

    `sources` and `targets` are aligned files (one or several, plain or gzip); `sources` alone is a TSV
    file. `valid` is a TSV file or a source and a target file; without it some pairs are held out.
    `overrides` are dotted config keys: {"train.minutes": 15}. `start_from` is a model folder to train
    further. Stopped in any way, the same call goes on where it was.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> folder = Path(place.name)
    >>> _ = (folder / "pairs.tsv").write_text("good day\\tguten Tag\\ngood night\\tgute Nacht\\n")
    >>> settings = {"train.max_steps": 3}
    >>> train(folder / "pairs.tsv", out=folder / "model", preset="tiny", overrides=settings, quiet=True).steps
    3
    >>> place.cleanup()
    """
    given = options.get("tokenizer")
    asked = Asked(
        Path(out),
        preset,
        config_file=_path(options.get("config_file")),
        overrides=overrides or {},
        start_from=_path(start_from),
        fresh=options.get("fresh", False),
        device=options.get("device"),
        quiet=options.get("quiet", False),
        prepared=_path(options.get("prepared")),
        given={} if given is None else {"tokenizer.json": given.to_json().encode()},
        origin=options.get("origin", ""),
    )
    pairs = Pairs(as_corpus(sources, targets), as_corpus(valid) if valid is not None else None)
    return run(TASK, pairs, asked)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
