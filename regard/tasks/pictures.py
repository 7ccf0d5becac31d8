"""What the tasks share that are shown pictures: examples in two parts, and a model with its preprocessing.

A picture that cannot be read is an error in its place, so that many can be shown and one be wrong. Before
this file: `regard.data.pictures`, `regard.images`; after it: the tasks `image`, `detection` and `gan`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from regard.config import Config
from regard.errors import DataError, ModelError, UsageError, shown
from regard.foreign import loads
from regard.images.picture import PictureError, Pixels
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.models.folder import load_folder
from regard.tasks.itself import ShowsItself

LABELS = "labels.json"  # of a folder: the names of its classes
Given = Path | str | bytes  # a picture: where it lies, or what is in its file
Read = TypeVar("Read")
Said = TypeVar("Said")


class Held(Protocol):
    """Pictures with what is known of them: `Pictures`, `Scenes`."""

    @property
    def paths(self) -> tuple[Path, ...]: ...
    @property
    def labels(self) -> dict[str, int]: ...
    def fingerprint(self) -> str: ...


Some = TypeVar("Some", bound=Held)


@dataclass(frozen=True)
class Parts(Generic[Some]):
    """Pictures to learn from, and to measure on if they are given."""

    train: Some
    valid: Some | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """What is trained on."""
        return self.train.paths

    @property
    def named(self) -> str:
        """What is trained on, for people."""
        return ", ".join(map(str, self.paths))

    def check(self, *, thorough: bool) -> None:
        """Refuse a validation with labels that are never met in training."""
        known = self.train.labels
        strange = [label for label in self.valid.labels if label not in known] if self.valid else []
        if strange:
            raise DataError(
                f"{self.named}: the label {shown(strange[0])} of the validation is never met in training"
            )

    def fingerprints(self) -> dict[str, str]:
        """Of both."""
        prints = {"training data": self.train.fingerprint()}
        return prints if self.valid is None else prints | {"validation data": self.valid.fingerprint()}


class Seer(ShowsItself, Generic[Read]):
    """A model with its preprocessing and the names of its classes; `regard.load` makes one from a folder."""

    task: ClassVar[str] = ""
    together: ClassVar[int] = 64  # pictures that go through the model side by side

    def __init__(self, config: Config, model: Any, made: Preprocessing, names: Sequence[str]) -> None:
        self.config, self.model, self.made, self.names = config, model.eval(), made, list(names)
        self.device = next(model.parameters()).device

    def read(self, given: Given) -> Read:
        """A picture as the model wants it; PictureError where it is none."""
        raise NotImplementedError

    def in_turn(
        self, pictures: Given | Iterable[Given], say: Callable[[list[Read]], Sequence[Said]]
    ) -> Iterator[Said | PictureError]:
        """What is said of each, in their order; the error in the place of one that cannot be read.

        A single picture may stand for a list of one: a path is no list of its letters.
        """
        left = iter([pictures] if isinstance(pictures, Path | str | bytes) else pictures)
        while window := list(islice(left, self.together)):
            read = [self._tried(given) for given in window]
            said = iter(say([each for each in read if not isinstance(each, PictureError)]))
            for each in read:
                yield each if isinstance(each, PictureError) else next(said)

    def _tried(self, given: object) -> Read | PictureError:
        if given == "":  # a line of a list
            return PictureError("an empty line names no picture")
        if not isinstance(given, Path | str | bytes):
            kind = type(given).__name__
            raise UsageError(f"a picture is given by its path or as the bytes of its file, not as {kind}")
        try:
            return self.read(Path(given) if isinstance(given, str) else given)
        except PictureError as error:
            return error

    def inputs(self, pictures: Sequence[Pixels]) -> Tensor:
        """Pictures (C, H, W) that were read, as the model takes them: (B, C, H, W)."""
        return torch.stack([torch.from_numpy(self.made.normalised(each)) for each in pictures]).to(
            self.device
        )


def unknown(labels: Iterable[str], names: Collection[str], what: str) -> str:
    """In words, how many true labels a model has never heard of; empty where it knows them all."""
    strange = [label for label in labels if label not in names]
    if not strange:
        return ""
    return f"{len(strange):,} {what} of labels that the model does not know, the first: {shown(strange[0])}"


AnySeer = TypeVar("AnySeer", bound=Seer[Any])


def whole(found: Iterable[Said | PictureError]) -> Iterator[Said]:
    """What was said; an error is raised where it comes."""
    for each in found:
        if isinstance(each, PictureError):
            raise each
        yield each


def load_seer(kind: type[AnySeer], folder: Path, sizes: type[Any], **options: Any) -> AnySeer:
    """The model in a folder, whose `sizes` are those of that table of the config."""
    loaded = load_folder(folder, **options)
    held = loaded.config.of(sizes)
    if PREPROCESSING not in loaded.files or LABELS not in loaded.files:
        raise ModelError(f"{folder} has no {PREPROCESSING} or no {LABELS}; copy the folder again")
    made = Preprocessing.from_json(loaded.files[PREPROCESSING], str(folder))
    if made.fit.shape != (held.channels, held.height, held.width):
        raise ModelError(
            f"{folder}: {PREPROCESSING} and the config disagree about sizes; copy the folder again"
        )
    try:
        names = loads(loaded.files[LABELS])
    except ValueError as error:
        raise ModelError(f"{folder} has no {LABELS} that can be read; copy the folder again") from error
    right = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not right or len(names) != held.classes:
        raise ModelError(f"{folder / LABELS} must name {held.classes} classes; copy the folder again")
    return kind(loaded.config, loaded.model, made, names)
