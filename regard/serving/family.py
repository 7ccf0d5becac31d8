"""What a task puts on the server: its models, its routes, its work. One class a task, named by `Task.serves`.

The server makes one of every task, with the folders that are served of it; without any, its routes say so.
To serve another task, write such a class: nothing else changes. Before this file: `service.py`; after it:
`libretranslate.py`, `completions.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from regard.errors import UsageError
from regard.kinds import TASKS
from regard.serving.limits import Refusal
from regard.serving.schema import Given
from regard.tasks.task import Task, task_named, task_of, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service


@dataclass(frozen=True)
class Place:
    """A model folder that is to be served, and what was said of it: `NAME=DIR`, `en-de=DIR`."""

    folder: Path
    said: str = ""

    @property
    def name(self) -> str:
        """What clients call it."""
        return self.said or self.folder.resolve().name


@dataclass(frozen=True)
class Loading:
    """How models are loaded: the options of `Task.load`."""

    device: str = "cpu"
    precision: str = "auto"
    engine: str = "auto"
    shortlist: bool = False  # of translators that have one
    pivot: str = ""  # a language by way of which pairs that have no model are translated
    remember: int = 0  # bytes for sentences that come again


def parse_place(argument: str) -> Place:
    """`DIR` or `NAME=DIR` as a place; a folder that cannot be served is refused."""
    said, sign, folder = argument.partition("=")
    named = bool(sign and said and folder) and not Path(argument).exists()
    place = Place(Path(folder), said) if named else Place(Path(argument))
    family_class(task_of(place.folder), place.folder).check(place)
    return place


@dataclass(frozen=True)
class Route:
    """One address, and what it does."""

    path: str
    call: Callable[[Request], Awaitable[Response]]
    takes: type[Given] | None = None  # what is posted to it; None: it is got
    gives: Mapping[str, Any] = field(default_factory=dict)  # the answer, as `/spec` describes it
    queued: bool = False  # it needs a place in the room: where that is full, its head alone is read
    direct: bool = False  # no layer stands between it and the guard


class Family:
    """Base: the models of one task on one server."""

    look_field: ClassVar[str] = ""  # of `/attention`: the field that says it is asked of this task
    look_carries: ClassVar[str] = ""  # where that is a file: the name of its bound in `Limits`

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        self.service, self.task = service, task
        self.places = {place.name: place for place in places}
        self.guests: dict[str, Place] = {}  # places of other tasks, whose folders its routes take too

    @classmethod
    def check(cls, place: Place) -> None:
        """Refuse a place that cannot be served; nothing is loaded yet."""

    # Loading and ending -----------------------------------------------------------------------------

    def load(self, place: Place) -> None:
        """Load one model; called in a thread."""
        raise NotImplementedError

    def engine_threads(self) -> int | None:
        """Threads of the native engine; None: torch computes, which takes all that there are."""
        return None

    async def warm(self) -> None:
        """Everything is loaded: do what is slow the first time."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do beside what is in the batchers."""
        return True

    @property
    def waiting(self) -> int:
        """Requests that wait for it beside those in the batchers."""
        return 0

    def close(self) -> None:
        """Begin nothing more."""

    # Answering --------------------------------------------------------------------------------------

    def routes(self) -> Sequence[Route]:
        """What it answers; there are these routes even where no such model is served."""
        return ()

    @property
    def answering(self) -> bool:
        """Whether there is a model for its routes."""
        return bool(self.places or self.guests)

    def run(self, wish: Any, texts: Sequence[Any], threads: int) -> list[Any]:
        """A batch, in a thread of the batchers: what is wished of each text."""
        raise NotImplementedError

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What `/attention` answers."""
        raise Refusal(404, f"{with_article(self.task.noun)} cannot be looked into here")

    def line(self, place: Place) -> str:
        """What is said of a model when the server begins."""
        return f"{place.name}, {with_article(self.task.noun)}: {place.folder}"

    def describe(self, place: Place) -> dict[str, Any]:
        """What `/v1/models` and `/model` tell of a model beside its name."""
        return {}

    def wanted(self, query: Mapping[str, str]) -> list[Place]:
        """The places that the query of `/model` asks for."""
        if "source" in query or "target" in query:
            return []
        name = query.get("model")
        return [place for place in self.places.values() if name in (None, place.name)]

    async def absent(self, request: Request) -> Response:
        """What its routes answer where there is no such model."""
        there = " and ".join(dict.fromkeys(with_article(each.task.noun) for each in self.service.served))
        raise Refusal(404, f"this server has no {self.task.noun}; it serves {there}")


def family_class(task: Task, folder: Path | None = None) -> type[Family]:
    """The class that serves a task; a task that has none is refused, by the name of its folder."""
    if not task.serves:
        raise UsageError(f"{folder} holds {with_article(task.noun)}, and regard serve does not know it")
    module, _, name = task.serves.partition(":")
    found: type[Family] = getattr(import_module(module), name)
    return found


def _distinct(places: Sequence[Place]) -> list[Place]:
    """The places; of folders that are called the same, the folder around each belongs to its name."""
    names = [place.name for place in places]
    around = [f"{place.folder.resolve().parent.name}/{place.name}" for place in places]
    return [
        place if place.said or names.count(place.name) == 1 else Place(place.folder, longer)
        for place, longer in zip(places, around, strict=True)
    ]


def _host(task: Task) -> str:
    """The task whose family serves this one: its own, or the first of ours that is served the same way."""
    alike = (name for name in TASKS.own if task.serves and task_named(name).serves == task.serves)
    return next(alike, task.name)


def families(service: "Service", places: Sequence[Place]) -> dict[str, Family]:
    """A family for each of our tasks that can be served, and for every other that a folder holds."""
    held: dict[str, list[Place]] = {}
    for place in _distinct(places):
        held.setdefault(_host(task_of(place.folder)), []).append(place)
    ours = [name for name in TASKS.own if task_named(name).serves and _host(task_named(name)) == name]
    found = {}
    for name in dict.fromkeys([*ours, *held]):
        task, own = task_named(name), held.get(name, [])
        found[name] = family_class(task, own[0].folder if own else None)(service, task, own)
    for host, family in found.items():
        family.guests = {
            place.name: place
            for other, own in held.items()
            for place in own
            if other != host and host in task_of(place.folder).also
        }
    names = [place.name for each in held.values() for place in each]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two models are called {twice[0]}; give them names: NAME=DIR")
    return found
