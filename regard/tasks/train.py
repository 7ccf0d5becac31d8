"""`regard.train`: from files to a model folder, for every task, in one call that can be killed and repeated.

The work is `regard.training.run`'s; here are the files, as a script names them. The same call on the same
folder goes on where it stopped; on a finished one it does nothing; another call on it is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from regard.data.address import place
from regard.data.corpus import Corpus
from regard.errors import UsageError
from regard.tasks.task import Task, task_named
from regard.text.tokenizer import Tokenizer
from regard.training.run import Asked, Result
from regard.training.run import train as run

Files = str | PathLike[str] | Sequence[str | PathLike[str]] | Corpus
_OWN = {each.name for each in fields(Asked)} - {"given"}


def train(
    *files: Files,
    task: str = "translation",
    out: str | PathLike[str],
    valid: Files | None = None,
    overrides: Mapping[str, Any] | None = None,
    tokenizer: Tokenizer | None = None,
    **options: Any,
) -> Result:
    """Train a model on files and leave it in the folder `out`.

    Translation takes two aligned files (plain or gzip; a list where there are several) or one TSV file,
    another task what `regard train --task` takes. `valid` is of the same kind; without it some is held out.
    `overrides` are dotted config keys: {"train.minutes": 15}. `tokenizer`: to begin with, instead of one that
    is learned. Further options are the fields of `regard.training.run.Asked` (preset, config_file,
    start_from, fresh, device, quiet, prepared, origin) and what the task reads beside its files
    (translation: parses, valid_parses; pairs, valid_pairs: {"en-de": ("a.en", "a.de")}). Stopped in any way,
    the same call goes on where it was.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> folder = Path(place.name)
    >>> _ = (folder / "pairs.tsv").write_text("good day\\tguten Tag\\ngood night\\tgute Nacht\\n")
    >>> settings = {"train.max_steps": 3}
    >>> train(folder / "pairs.tsv", out=folder / "model", preset="tiny", overrides=settings, quiet=True).steps
    3
    >>> place.cleanup()
    """
    known = task_named(task)
    own = {name: value for name, value in options.items() if name in _OWN}
    for name in ("config_file", "start_from", "prepared"):
        own[name] = None if own.get(name) is None else Path(own[name])
    more = {name: value for name, value in options.items() if name not in _OWN and value is not None}
    given = {} if tokenizer is None else {"tokenizer.json": tokenizer.to_json().encode()}
    held = None if valid is None else _named(known, [valid])
    if not files and not more.get("pairs"):
        raise UsageError("name the files to train on")
    examples = known.examples(_named(known, files), held, **{name: _listed(more[name]) for name in more})
    return run(known, examples, Asked(Path(out), overrides=overrides or {}, given=given, **own))


def _named(task: Task, files: Sequence[Files]) -> list[Any]:
    """The files as `Task.read` takes them: paths one after the other, unless two lists belong together."""
    lists = [_listed(each) for each in files]
    if task.pairs:
        return lists
    paths = [path for each in lists for path in (each if isinstance(each, list) else [each])]
    if strange := [type(path).__name__ for path in paths if not isinstance(path, Path)]:
        raise UsageError(f"task={task.name} learns from files, not from a {strange[0]}")
    return paths


def _listed(files: Files) -> Any:
    """A path, a list of them, or what is neither, as it is."""
    if isinstance(files, str | PathLike):
        return place(fspath(files))
    return [place(fspath(each)) for each in files] if isinstance(files, Sequence) else files
