"""A task, as one value: what is learned of which examples, how it is judged, used and shown.

Entered in `TASKS` (`regard.kinds`); the config names it (`task`), and so does a model folder. A task says
what is its own; what it does not say has a plain answer here. Nothing is loaded before it is needed: a verb
asks for the task of a folder before it loads torch, and using a model loads nothing of training.
"""

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config
from regard.config.file import read_config
from regard.errors import UsageError
from regard.kinds import MODELS, TASKS

if TYPE_CHECKING:
    from regard.measure.score import Score
    from regard.models.card import Facts
    from regard.models.folder import Loaded
    from regard.training.lesson import Examples, Job, Lesson


@dataclass(frozen=True)
class Evaluation:
    """What `regard evaluate` found: scores by name, and what else is told."""

    scores: "Mapping[str, Score]"
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of --json
    lines: Sequence[str] = ()  # for people; made of the scores where there are none
    notes: Sequence[str] = ()  # what was left out or not known; told beside the scores

    def fields(self) -> dict[str, Any]:
        """One object for --json."""
        return {name: score.value for name, score in self.scores.items()} | dict(self.more)

    def text(self) -> str:
        """For people."""
        lines = self.lines or [score.words(name) for name, score in self.scores.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Judge:
    """A loaded model, and its scores on some examples, measured anew at each call: heads may be off."""

    model: Any
    measure: "Callable[[], Mapping[str, Score]]"
    what: str  # what it is measured on: 200 sentences


@dataclass(frozen=True)
class Family:
    """What `regard compare` takes where nothing is named: variants, and data that are always there."""

    variants: Mapping[str, Mapping[str, Any]]  # one change each, so that what differs is what it does
    data: str  # "module:function" that writes them into a folder: files by split, and settings that suit them


class Task:
    """Base of all tasks."""

    name: ClassVar[str] = ""  # as the config has it
    noun: ClassVar[str] = "model"  # what a folder of it holds
    verb: ClassVar[str] = "show"  # what it is used with: regard VERB
    given: ClassVar[str] = "< text"  # what follows the verb, as an example that people see
    pairs: ClassVar[bool] = False  # examples come as two aligned files, so that `--valid SRC TGT` is both
    keys: ClassVar[Mapping[str, Any]] = {}  # config tables of its own: name and dataclass
    looks: ClassVar[str] = ""  # "module:function" that shows what every head looked at, if there is one
    serves: ClassVar[str] = ""  # "module:Class" that puts it on a server (`regard.serving.family`), if any
    exports: ClassVar[Mapping[str, str]] = {}  # formats and "module:function" that writes (Loaded, Path)
    models: ClassVar[
        Sequence[str]
    ] = ()  # kinds of model of ours that it takes; those added from outside always

    also: ClassVar[Sequence[str]] = ()  # other tasks whose verbs take its folders
    bases: ClassVar[Sequence[str]] = ()  # other tasks whose models it can begin with (`adopt`)

    build: ClassVar[Any] = None  # (Config) -> its own model, where that is none of `MODELS`

    # Learning ---------------------------------------------------------------------------------------

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Examples":
        """What is learned from, and measured on if that is given; nothing is read yet."""
        raise UsageError(f"task={self.name} does not say what it learns from")

    def examples(self, files: Sequence[Any], valid: Sequence[Any] | None = None, **more: Any) -> "Examples":
        """`read`, where what it does not name is refused."""
        if strange := more.keys() - signature(self.read).parameters.keys():
            raise UsageError(f"{min(strange)} means nothing to task={self.name}")
        return self.read(files, valid, **more)

    def defaults(self) -> dict[str, Any]:
        """The settings that everything else is laid over."""
        return {"task": self.name}

    def preset(self, asked: Mapping[str, Any]) -> str | None:
        """The preset of a run that names none."""
        return None

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """The config with what follows from others; `asked` are the settings that were named."""
        kind = config.model.kind
        if self.models and not MODELS.foreign(kind) and kind not in self.models:
            raise UsageError(
                f"model.kind={kind} is none that task={self.name} can use; it takes {', '.join(self.models)}"
            )
        return config

    def lesson(self, job: "Job") -> "Lesson":
        """What a run works with, made of the examples; done once a run, and again when it goes on."""
        raise UsageError(f"task={self.name} does not say how it learns")

    def adopt(self, model: Any, base: "Loaded") -> None:
        """Give a fresh model what it takes over of the one that it is trained further from: all of it."""
        model.load_state_dict(base.model.state_dict())

    def memory(self, trainer: Any, config: Config) -> str | None:
        """In a line, how much memory a run will take, if that can be foreseen."""
        return None

    def card(self, facts: "Facts", folder: str) -> str:
        """The README of a model folder; `folder` is how the commands in it call the model."""
        from regard.models.card import titled, write_card

        use = [f"regard {self.verb} -m {{}}"] if self.verb != "show" else ["regard show {}"]
        return write_card(facts, folder, title=titled(with_article(self.noun).capitalize(), facts), use=use)

    # Using ------------------------------------------------------------------------------------------

    def load(self, folder: Path, **options: Any) -> Any:
        """What is in a folder, ready to be used."""
        from regard.models.folder import load_folder

        return load_folder(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """How good the model in a folder is on these files."""
        raise self._cannot("evaluate", folder)

    def family(self) -> Family:
        """What is compared, and on what, where nothing is named."""
        raise UsageError(f"task={self.name} has no family to compare; name variants in a TOML, and files")

    def compared(self, folder: Path, files: Sequence[Path]) -> Evaluation:
        """The scores that stand in the table of a comparison, the first of them in its order."""
        return self.evaluate(folder, files)

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """The model in a folder with a measure that can be taken many times; `limit` bounds its examples."""
        raise self._cannot("look --ablate", folder)

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """What is wrong with files to learn from: see `regard.data.findings`."""
        raise UsageError(f"task={self.name} has no regard check for its files")

    def demo(self, **options: Any) -> None:
        """The whole road on data that needs no download; `options` are the flags of `regard demo` given."""
        raise UsageError(f"task={self.name} has no demo")

    def look(self, model: Any, text: str, **options: Any) -> Any:
        """What every head of a folder's model, or of one that was loaded, looked at: see `regard.look`."""
        if not self.looks:
            raise self._cannot("look", model)
        module, _, name = self.looks.partition(":")
        function = getattr(import_module(module), name)
        if strange := options.keys() - signature(function).parameters.keys():
            raise UsageError(f"{min(strange)} means nothing to {with_article(self.noun)}")
        return function(model, text, **options)

    def export(self, folder: Path, to: str, place: Path) -> None:
        """Write the model of a folder into `place` as another program reads it."""
        from regard.models.folder import load_folder

        if to not in self.exports:
            there = f"; it goes to {', '.join(self.exports)}" if self.exports else ""
            raise UsageError(f"{folder} holds {with_article(self.noun)}, which --to {to} cannot hold{there}")
        module, _, name = self.exports[to].partition(":")
        getattr(import_module(module), name)(load_folder(folder), place)

    def usage(self, folder: Path, flags: str = "") -> str:
        """How a folder of it is used, as a line that can be typed."""
        words = ["regard", self.verb, "-m", shlex.quote(str(folder)), flags, self.given]
        return " ".join(filter(None, words))

    def _cannot(self, verb: str, folder: Path) -> UsageError:
        return UsageError(f"{folder} holds {with_article(self.noun)}, and regard {verb} does not know it")


def command() -> str:
    """`regard` if the shell would find this one, else the path it was called by."""
    called, found = Path(sys.argv[0]), shutil.which("regard")
    if called.name != "regard":
        return f"{shlex.quote(sys.executable)} -m regard"
    return "regard" if found and called.exists() and called.samefile(found) else shlex.quote(str(called))


def with_article(noun: str) -> str:
    """a translator, an encoder."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def task_named(name: str) -> Task:
    """The task that the config names."""
    found = TASKS[name]
    if not isinstance(found, Task):
        raise UsageError(f"task={name} is a {type(found).__name__}, not a Task")
    return found


def task_of(folder: Path) -> Task:
    """The task of a model folder."""
    return task_named(read_config(folder).task)


def expect(folder: Path, name: str) -> None:
    """Refuse a folder of another task, and say what it is good for."""
    found = task_of(folder)
    if name not in (found.name, *found.also):
        raise UsageError(f"{folder} holds {with_article(found.noun)}; use regard {found.verb}")


def load(folder: str | PathLike[str], **options: Any) -> Any:
    """What is in a model folder, ready to be used: a `Translator`, or what its task makes of it."""
    return task_of(Path(folder)).load(Path(folder), **options)
