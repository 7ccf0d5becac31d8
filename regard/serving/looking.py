"""Looking into models that read a text as a whole: `/attention` for encoders, heads off while they answer.

A look is worked on in the batchers like any answer, and is JSON when it leaves them. Before this file:
`family.py`, `door.py`; after it: `encoders.py`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import isqrt
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, ready
from regard.serving.completion import Glimpse
from regard.serving.door import results
from regard.serving.engine import check_heads
from regard.serving.family import Family
from regard.serving.limits import Refusal
from regard.serving.scratch import SHARED

Off = tuple[tuple[str, tuple[int, ...]], ...]
HeadsOff = Annotated[
    dict[str, schema.Heads],
    BeforeValidator(schema.as_object),
    Field(max_length=bounds.HEADS_OFF, description="Ours.", examples=[{"encoder.0.self": [1]}]),
]


class Viewing(schema.Given):
    """A text to look into, with heads switched off or not."""

    model: Annotated[str, Field(max_length=1000)] = ""
    text: Annotated[str, Field(validation_alias=AliasChoices("text", "q"))]
    heads_off: HeadsOff = Field(default_factory=dict)


class Looking(Family):
    """Base: a family whose models can be looked into; `named` finds one that has `own` and `place`."""

    look_field = "text"

    def named(self, name: str) -> Any:
        """The model that is meant."""
        raise NotImplementedError

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What every head looked at, reading a text; heads can be switched off."""
        ask = Viewing.of(fields)
        service, loaded = self.service, self.named(ask.model)
        if len(ask.text) > service.limits.characters:
            raise wrong("text", f"it has {len(ask.text)} characters")
        seat = service.room.enter(long=True)
        request.scope["places"].append(seat)
        text, tokens = await service.desk.do(lambda: self._text(loaded, ask), long=True)
        wish = Glimpse(loaded.place.name, off_of(ask.heads_off))
        job = service.slow.submit((self, wish), [text], [tokens])
        service.expect(seat, job.give_up)
        try:
            (body,) = await results(request, job, service.slow)
        except RegardError as error:  # nothing to look at, or too much
            raise wrong("text", str(error)) from error
        return ready(body)

    def _text(self, loaded: Any, ask: Viewing) -> tuple[str, int]:
        """The text and its tokens, if all that is seen of it can be told."""
        heads = checked(loaded.own.reader.body, ask.heads_off)
        most = isqrt(bounds.LOOK_NUMBERS // max(1, sum(heads.values())))
        (text,) = schema.sound([ask.text])
        try:
            tokens = len(loaded.own.row(text))
        except RegardError as error:
            raise wrong("text", str(error)) from error
        if tokens > most:
            raise wrong("text", f"it has {tokens} tokens; up to {most} can be told of in this model")
        return text, tokens

    def run(self, wish: Any, texts: Sequence[Any], threads: int) -> list[Any]:
        """A batch: looks, or what the family says of texts, with the heads off that were switched off."""
        off = {name: list(heads) for name, heads in wish.off}
        if not isinstance(wish, Glimpse):
            with without(off):
                return self.say(wish, texts, threads)
        loaded = self.named(wish.model)
        looks = (self.task.look(loaded.own, text, off=off, most=bounds.LOOK_NUMBERS) for text in texts)
        with SHARED.taking(2 * bounds.LOOK_BYTES * bounds.LOOK_NUMBERS):
            return [in_json(each.to_dict()) for each in looks]

    def say(self, wish: Any, texts: Sequence[Any], threads: int) -> list[Any]:
        """What is said of each text."""
        raise NotImplementedError


def checked(model: Any, off: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many heads each attention has; a refusal where `off` names others."""
    try:
        return check_heads(model, off)
    except RegardError as error:
        raise wrong("heads_off", str(error)) from error


def off_of(heads: Mapping[str, Sequence[int]]) -> Off:
    """What is off, as a value that tells batches apart."""
    return tuple((name, tuple(sorted(set(each)))) for name, each in sorted(heads.items()) if each)


def without(off: Mapping[str, Sequence[int]]) -> AbstractContextManager[None]:
    """While it lasts, these heads give nothing."""
    from regard.attention.switch import heads_off

    return heads_off(off)


def wrong(name: str, message: str) -> Refusal:
    """A field that cannot be answered."""
    return Refusal(400, f"Invalid request: {name}: {message}", param=name)
