"""A task as training sees it: examples are read, settings settled, and a lesson comes of them.

Training is handed a task and never imports one. `regard.tasks.task` has the whole of it; here is the part
that a run needs, and the two values that go between them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from regard.atomic import write_text
from regard.config import Config
from regard.errors import ModelError
from regard.models.card import Facts
from regard.models.folder import TOKENIZER, Loaded
from regard.process.progress import Reporter, Silent
from regard.text.tokenizer import Tokenizer
from regard.training.objective import Evaluator, Feed, Objective


class Examples(Protocol):
    """What is learned from, as it lies on the disk."""

    @property
    def paths(self) -> Sequence[Path]:
        """The files that are trained on."""
        ...

    def check(self, *, thorough: bool) -> None:
        """Refuse what cannot be learned from; `thorough` reads all of it, once."""
        ...

    def fingerprints(self) -> dict[str, str]:
        """By what it is called, a hash of its content: another content is another run."""
        ...


@dataclass(frozen=True)
class Job:
    """A run that is to be prepared; what an earlier try has left in the folder may be used again."""

    folder: Path
    config: Config
    examples: Any
    base: Loaded | None = None  # the model that is trained further
    reporter: Reporter = field(default_factory=Silent)


@dataclass(frozen=True)
class Lesson:
    """What a run works with, as a task has made it of the examples."""

    config: Config  # with everything that depends on the examples
    feed: Feed
    objective: Objective
    evaluator: Evaluator | None = None
    files: Mapping[str, bytes] = field(
        default_factory=dict
    )  # that the folder needs beside config and weights
    data: Sequence[str] = ()  # lines of the card about what was trained on
    measured_on: str = "held-out examples"  # what the evaluator measures on, for the card
    needed: int = 0  # steps below which nothing is learned, as far as is known
    report: Callable[[], str] | None = None  # Markdown for the card, asked for after the last measurement


def run_tokenizer(folder: Path, base: Loaded | None, learn: Callable[[], Tokenizer]) -> Tokenizer:
    """The base model's tokenizer, the one that this run has learned before, or the one that it learns now."""
    if base is not None:
        return base.tokenizer
    path = folder / TOKENIZER
    if path.exists():
        try:
            return Tokenizer.from_json(path.read_text(encoding="utf-8"))
        except (ModelError, UnicodeDecodeError):
            path.unlink()  # the same examples give the same one again
    tokenizer = learn()
    write_text(path, tokenizer.to_json())
    return tokenizer


class Learnable(Protocol):
    """What a run asks of its task; see `regard.tasks.task.Task`."""

    @property
    def name(self) -> str: ...
    @property
    def bases(self) -> Sequence[str]: ...
    def defaults(self) -> dict[str, Any]: ...
    def preset(self, asked: Mapping[str, Any]) -> str | None: ...
    def settle(
        self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None
    ) -> Config: ...
    def lesson(self, job: Job) -> Lesson: ...
    def adopt(self, model: Any, base: Loaded) -> None: ...
    def memory(self, trainer: Any, config: Config) -> str | None: ...
    def card(self, facts: Facts, folder: str) -> str: ...
