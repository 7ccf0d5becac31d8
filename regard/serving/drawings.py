"""Generators of pictures on a server: OpenAI's `/v1/images/generations`, and what was looked at meanwhile.

The prompt is the class; without one every class is drawn in turn. A picture is one item of a batch, so that
requests share the generator; it leaves the threads as a PNG in base64. Before this file: `family.py`,
`door.py`; after it: `app.py`.
"""

import asyncio
import random
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, ready
from regard.serving.door import read, results
from regard.serving.family import Family, Place, Route
from regard.serving.limits import Refusal
from regard.serving.looking import HeadsOff, Off, checked, off_of, wrong
from regard.tasks.task import Task, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service
    from regard.tasks.gan.drawer import Drawer

Name = Annotated[str, Field(max_length=1000, description="As /v1/models has it; of one model: any.")]
Label = Annotated[str, Field(max_length=1000, description="The class; empty: every class in turn.")]
Seed = Annotated[int, Field(ge=0, lt=2**32, description="The same seed draws the same; one is chosen.")]
FEW = 8  # pictures; more of them are long


class Generation(schema.Given):
    """What OpenAI's `/v1/images/generations` takes; `seed` and `spread` are ours."""

    model: Name = ""
    prompt: Label = ""
    n: Annotated[int, Field(ge=1, le=bounds.DRAWINGS)] = 1
    seed: Seed | None = None
    spread: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 1.0
    response_format: Literal["b64_json"] = "b64_json"


class Inspection(schema.Given):
    """A drawing to look into: the first of a seed."""

    model: Name = ""
    drawing: Annotated[str, Field(max_length=1000, description="The class; any text where there are none.")]
    seed: Seed = 1
    heads_off: HeadsOff = Field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    """What is asked of a batch."""

    model: str
    spread: float


@dataclass(frozen=True)
class Glimpse:
    """A look that is asked for."""

    model: str
    seed: int
    off: Off


class Drawings(Family):
    """The generators of a server."""

    look_field = "drawing"

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.models: dict[str, Drawer] = {}

    def load(self, place: Place) -> None:
        """As its verb loads it."""
        self.models[place.name] = self.task.load(place.folder, device=self.service.loading.device)

    async def warm(self) -> None:
        """A picture of each."""
        for drawer in self.models.values():
            await asyncio.to_thread(drawer.draw, 1)

    def describe(self, place: Place) -> dict[str, Any]:
        """What can be asked for, and how large a picture is."""
        drawer = self.models.get(place.name)
        return {} if drawer is None else {"classes": list(drawer.names[: bounds.TEXTS]), "side": drawer.side}

    def routes(self) -> Sequence[Route]:
        """OpenAI's."""
        told: dict[str, Any] = {"content": {"application/json": {}}}
        return (Route("/v1/images/generations", self.generate, Generation, told, queued=True),)

    def named(self, name: str) -> tuple[str, "Drawer"]:
        """The model that is meant."""
        self.service.check_ready()
        if name in self.models:
            return name, self.models[name]
        if not name and len(self.models) == 1:
            return next(iter(self.models.items()))
        other = next((each for each in self.service.served if name in each.places), None)
        what = f"is {with_article(other.task.noun)}" if other else "is not there"
        said = f"model {name[:100]!a} {what}; for this there are {', '.join(self.models)}"
        raise Refusal(404, said, param="model", code="model_not_found")

    async def generate(self, request: Request) -> Response:
        """Pictures of a class, or of every class."""
        ask = await read(self.service, request, Generation)
        name, drawer = self.named(ask.model)
        labels = self._labels(drawer, ask)
        seed = random.randrange(2**32) if ask.seed is None else ask.seed
        seat = self.service.room.enter(long=ask.n > FEW)
        request.scope["places"].append(seat)
        seat.hold(ask.n * (bounds.SENTENCE + 8 * drawer.bytes))
        batcher = self.service.slow if ask.n > FEW else self.service.quick
        rows = [(seed, number, label) for number, label in enumerate(labels)]
        job = batcher.submit((self, Wish(name, ask.spread)), rows, [1] * len(rows))
        self.service.expect(seat, job.give_up)
        found = await results(request, job, batcher)
        seat.computed()
        tail = in_json({"created": int(time.time()), "model": name, "seed": seed})
        data = b",".join([b'{"b64_json":"%b"}' % each for each in found])
        return ready(b'{"data":[%b],%b' % (data, tail[1:]))

    def _labels(self, drawer: "Drawer", ask: Generation) -> list[int | None]:
        """The class of each picture."""
        if ask.prompt:
            return [self._number(drawer, ask.prompt, "prompt")] * ask.n
        return [number % len(drawer.names) if drawer.names else None for number in range(ask.n)]

    def _number(self, drawer: "Drawer", label: str, field: str) -> int | None:
        try:
            return drawer.number_of(label)
        except RegardError as error:
            raise wrong(field, str(error)) from error

    def run(self, wish: Any, texts: Sequence[Any], threads: int) -> list[bytes]:
        """PNGs in base64, or the JSON of looks."""
        from regard.images.sheet import as_png

        drawer = self.models[wish.model]
        if isinstance(wish, Glimpse):
            off = {name: list(heads) for name, heads in wish.off}
            looks = (self.task.look(drawer, text, seed=wish.seed, off=off) for text in texts)
            return [in_json(each.to_dict()) for each in looks]
        return [b64encode(as_png(picture)) for picture in drawer.rows(texts, spread=wish.spread)]

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What every head looked at, drawing and judging; heads can be switched off."""
        ask = Inspection.of(fields)
        name, drawer = self.named(ask.model)
        if drawer.names:
            self._number(drawer, ask.drawing, "drawing")
        checked(drawer.model, ask.heads_off)
        seat = self.service.room.enter(long=True)
        request.scope["places"].append(seat)
        seat.hold(bounds.LOOK_NUMBERS * bounds.NUMBER)
        wish = Glimpse(name, ask.seed, off_of(ask.heads_off))
        job = self.service.slow.submit((self, wish), [ask.drawing], [1])
        self.service.expect(seat, job.give_up)
        try:
            (body,) = await results(request, job, self.service.slow)
        except RegardError as error:  # nothing to look at
            raise wrong("drawing", str(error)) from error
        return ready(body)
