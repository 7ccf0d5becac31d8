"""Pictures on a server: what each shows, or boxes around what is in it; a picture comes as base64 in a field.

Read and brought to the model's size at the desk, shown to the model in the batchers' threads. `/attention`
tells where each patch, each object or the whole looked. Before this file: `family.py`, `door.py`,
`looking.py`; after it: `app.py`.
"""

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.images.picture import PictureError, open_picture
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, ready
from regard.serving.completion import Glimpse
from regard.serving.door import read, results
from regard.serving.family import Family, Place, Route
from regard.serving.limits import Refusal
from regard.serving.looking import HeadsOff, checked, off_of, wrong
from regard.serving.scratch import SHARED
from regard.tasks.task import Task, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service

Name = Annotated[str, Field(max_length=1000, description="As /v1/models has it; of one model: any.")]
Pictures = str | Annotated[list[str], Field(min_length=1, max_length=bounds.PICTURES)]


class Showing(schema.Given):
    """A picture, or a list of them."""

    model: Name = ""
    image: Annotated[Pictures, Field(description="A picture file in base64, or a data: address; or a list.")]

    @property
    def pictures(self) -> list[str]:
        """One or many."""
        return [self.image] if isinstance(self.image, str) else self.image


class Classifying(Showing):
    """Pictures that are to be named."""

    top: Annotated[int, Field(ge=1, le=bounds.GUESSES, description="Labels that are told.")] = 5


class Detecting(Showing):
    """Pictures in which things are to be found."""

    threshold: Annotated[float, Field(ge=0, le=1, description="How sure a box must be.")] = 0.5


class Regarding(schema.Given):
    """A picture to look into, with heads switched off or not."""

    model: Name = ""
    image: Annotated[str, Field(description="A picture file in base64, or a data: address.")]
    heads_off: HeadsOff = Field(default_factory=dict)


@dataclass(frozen=True)
class Errand:
    """What is asked of a batch."""

    model: str
    top: int = 0
    threshold: float = 0.0


@dataclass(frozen=True)
class Part:
    """A picture (C, H, W) as the model is shown it, and its own height and width."""

    pixels: Any
    size: tuple[int, int]


class Seeing(Family):
    """Base: the models of one task of pictures, with one route."""

    path = ""
    takes: type[Showing] = Showing
    look_field = "image"

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.models: dict[str, Any] = {}

    def load(self, place: Place) -> None:
        """As its verb loads it."""
        self.models[place.name] = self.task.load(place.folder, device=self.service.loading.device)

    async def warm(self) -> None:
        """A white picture for each model."""
        import numpy as np

        for name, model in self.models.items():
            blank = Part(np.full(model.made.fit.shape, 255, np.uint8), model.made.fit.shape[1:])
            await asyncio.to_thread(self.run, Errand(name, 1), [blank], 1)

    def describe(self, place: Place) -> dict[str, Any]:
        """Its classes, and the size that pictures are brought to."""
        model = self.models.get(place.name)
        if model is None:
            return {}
        return {"classes": len(model.names), "height": model.made.fit.height, "width": model.made.fit.width}

    def routes(self) -> Sequence[Route]:
        """Its own."""
        told: Mapping[str, Any] = {"content": {"application/json": {}}}
        return (Route(self.path, self.answer, self.takes, told, queued=True),)

    async def answer(self, request: Request) -> Response:
        """What is said of each picture; an object for one, a list for a list."""
        ask: Any = await read(self.service, request, self.takes)
        service, name = self.service, self.named(ask.model)
        seat = service.room.enter(long=True)
        request.scope["places"].append(seat)
        fit = self.models[name].made.fit
        seat.hold(len(ask.pictures) * (bounds.SENTENCE + 4 * fit.height * fit.width * fit.channels))
        parts = await service.desk.do(lambda: [self.part(name, each) for each in ask.pictures], long=True)
        wish = Errand(name, getattr(ask, "top", 0), getattr(ask, "threshold", 0.0))
        job = service.slow.submit((self, wish), parts, [1] * len(parts))
        service.expect(seat, job.give_up)
        found = await results(request, job, service.slow)
        seat.computed()
        return ready(found[0] if isinstance(ask.image, str) else b"[%b]" % b",".join(found))

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What every head looked at in a picture; heads can be switched off."""
        ask = Regarding.of(fields)
        service, name = self.service, self.named(ask.model)
        checked(self.models[name].model, ask.heads_off)
        seat = service.room.enter(long=True)
        request.scope["places"].append(seat)
        seat.hold(bounds.LOOK_NUMBERS * bounds.NUMBER + len(ask.image))
        data = await service.desk.do(lambda: picture_of(ask.image), long=True)
        job = service.slow.submit((self, Glimpse(name, off_of(ask.heads_off))), [data], [1])
        service.expect(seat, job.give_up)
        try:
            (body,) = await results(request, job, service.slow)
        except RegardError as error:  # nothing to look at, or too much
            raise wrong("image", str(error)) from error
        return ready(body)

    def run(self, wish: Any, texts: Sequence[Any], threads: int) -> list[bytes]:
        """A batch: looks, or what is said of pictures."""
        if not isinstance(wish, Glimpse):
            return self.say(wish, texts)
        model, off = self.models[wish.model], {name: list(heads) for name, heads in wish.off}
        with SHARED.taking(2 * bounds.LOOK_BYTES * bounds.LOOK_NUMBERS):
            looks = (
                self.task.look(model, "the picture", picture=each, off=off, most=bounds.LOOK_NUMBERS)
                for each in texts
            )
            return [in_json(each.to_dict()) for each in looks]

    def say(self, wish: Errand, pictures: Sequence[Part]) -> list[bytes]:
        """What is said of each picture."""
        raise NotImplementedError

    def named(self, name: str) -> str:
        """The model that is meant."""
        self.service.check_ready()
        if name in self.models or (not name and len(self.models) == 1):
            return name or next(iter(self.models))
        other = next((each for each in self.service.served if name in each.places), None)
        what = f"is {with_article(other.task.noun)}" if other else "is not there"
        said = f"model {name[:100]!a} {what}; for this there are {', '.join(self.models)}"
        raise Refusal(404, said, param="model", code="model_not_found")

    def part(self, name: str, given: str) -> Part:
        """A picture of its base64, or a refusal; at the desk."""
        from regard.tasks.detection.detector import read_upright

        data = picture_of(given)
        try:
            return Part(*read_upright(data, "the picture", self.models[name].made))
        except PictureError as error:
            raise wrong("image", str(error)) from None


def picture_of(given: str) -> bytes:
    """The file that a field holds, if it is a picture that is not too large; at the desk."""
    try:
        data = b64decode(given.partition("base64,")[2] or given, validate=True)
        width, height = open_picture(data).size
    except PictureError as error:
        raise wrong("image", str(error)) from None
    except (binascii.Error, ValueError):
        raise wrong("image", "it is no base64") from None
    if width * height > bounds.PICTURE_PIXELS:
        raise wrong("image", f"{width} x {height} pixels; at most {bounds.PICTURE_PIXELS:,} are read here")
    return data


class Classify(Seeing):
    """Models that say what a picture shows."""

    path, takes = "/v1/images/classifications", Classifying

    def say(self, wish: Errand, pictures: Sequence[Part]) -> list[bytes]:
        """As `regard classify --json` has them."""
        model = self.models[wish.model]
        labels = model.label([each.pixels for each in pictures])
        return [in_json(model.said(label, wish.top)) for label in labels]


class Detect(Seeing):
    """Models that find things in a picture."""

    path, takes = "/v1/images/detections", Detecting

    def say(self, wish: Errand, pictures: Sequence[Part]) -> list[bytes]:
        """Size, and label, score and box (left, top, width, height) of each object, the surest first."""
        model = self.models[wish.model]
        found = model.find([each.pixels for each in pictures], [each.size for each in pictures])
        pairs = zip(found, pictures, strict=True)
        seen = [model.seen(each, part.size, wish.threshold) for each, part in pairs]
        return [
            in_json(
                {"height": each.height, "width": each.width, "objects": [one.said() for one in each.objects]}
            )
            for each in seen
        ]
