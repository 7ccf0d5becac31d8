"""A completion: what OpenAI's clients ask for, checked, and how its texts are told in OpenAI's shape.

Before this file: `schema.py`, `writing.py`; after it: `completions.py`.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.draft import Draft, News, Token
from regard.serving.family import Place

if TYPE_CHECKING:
    from regard.tasks.language.writer import Wish, Writer

Stop = Annotated[str, StringConstraints(min_length=1, max_length=bounds.STOP_CHARACTERS)]
Ids = Annotated[list[int], Field(min_length=1)]


class Completion(schema.Given):
    """What OpenAI's `/v1/completions` takes, and ours beside it."""

    model: Annotated[str, Field(max_length=1000, description="As /v1/models has it; of one model: any.")] = ""
    prompt: Annotated[
        str | Ids | Annotated[list[str], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)],
        Field(description="A text, several, or the same as token ids."),
    ] = ""
    max_tokens: Annotated[int, Field(ge=0, le=10**6)] = 16
    temperature: Annotated[float, Field(ge=0, le=2, description="0: the likeliest token each time.")] = 1.0
    top_p: Annotated[float, Field(ge=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=10**6, description="Ours: of so many tokens; 0: of all.")] = 0
    min_p: Annotated[float, Field(ge=0, le=1, description="Ours: tokens this likely beside the first.")] = 0.0
    n: Annotated[int, Field(ge=1, le=bounds.ROWS, description="Texts for each prompt.")] = 1
    stream: bool = False
    stream_options: dict[str, Any] = Field(default_factory=dict)
    stop: Stop | Annotated[list[Stop], Field(max_length=bounds.STOPS)] = Field(default_factory=list)
    logprobs: Annotated[int, Field(ge=0, le=bounds.LOGPROBS)] | None = None
    echo: bool = False
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    logit_bias: Annotated[
        dict[Annotated[int, Field(ge=0)], Annotated[float, Field(ge=-100, le=100)]],
        Field(max_length=bounds.BIASES),
    ] = Field(default_factory=dict)
    best_of: int | None = None
    suffix: str = ""
    heads_off: Annotated[
        dict[str, schema.Heads],
        BeforeValidator(schema.as_object),
        Field(max_length=bounds.HEADS_OFF, description="Ours.", examples=[{"decoder.0.self": [1]}]),
    ] = Field(default_factory=dict)
    return_token_ids: Annotated[bool, Field(description="Ours: tokens and runners-up by their ids.")] = False

    @property
    def prompts(self) -> list[str] | list[list[int]]:
        """One or many."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        given: Any = self.prompt
        return [given] if isinstance(given[0], int) else given


def wish_of(ask: Completion) -> "Wish":
    from regard.decoding.sampling import Sampling
    from regard.tasks.language.writer import Wish

    # A draw needs a temperature; without one every text of a prompt is the likeliest.
    sampling = Sampling(
        temperature=max(ask.temperature, 1e-4) if ask.temperature else 1.0,
        top_k=ask.top_k if ask.temperature else 1,
        top_p=max(ask.top_p, 1e-9),
        min_p=ask.min_p,
        seed=secrets.randbits(62) if ask.seed is None else ask.seed,
    )
    return Wish(
        tokens=max(1, ask.max_tokens),
        sampling=sampling if ask.temperature or ask.n > 1 else None,
        draws=ask.n,
        presence=ask.presence_penalty,
        frequency=ask.frequency_penalty,
        bias=tuple(ask.logit_bias.items()),
        stop=(ask.stop,) if isinstance(ask.stop, str) else tuple(ask.stop),
        slide=False,
    )


class Inspection(schema.Given):
    """A text to look into, with heads switched off or not."""

    model: Annotated[str, Field(max_length=1000)] = ""
    prompt: str
    heads_off: Annotated[
        dict[str, schema.Heads], BeforeValidator(schema.as_object), Field(max_length=bounds.HEADS_OFF)
    ] = Field(default_factory=dict)
    slide: Annotated[bool, Field(description="Of a text that is too long, the last that can be told.")] = (
        False
    )


@dataclass(frozen=True)
class Glimpse:
    """Look into a text: what is asked of a batch."""

    model: str
    off: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Loaded:
    """A model that is loaded, and what it costs."""

    place: Place
    writer: "Writer"
    context: int  # tokens of a prompt and what is written on
    cached: int  # bytes of keys and values, a token
    active: int  # bytes that are worked with while a token is read

    @property
    def vocabulary(self) -> int:
        """Ids that there are."""
        return self.writer.tokenizer.target_vocab_size

    def cost(self, starts: Sequence[Sequence[int]], draws: int, tokens: int) -> int:
        """Bytes that writing takes, at most: the cache, reading the prompts, choosing tokens."""
        longest = max(map(len, starts))
        rows = len(starts) * draws
        reading = len(starts) * longest * (longest + self.active)
        return rows * ((longest + tokens) * self.cached + 48 * self.vocabulary) + reading


@dataclass
class Choice:
    """One text of an answer, as far as it is written."""

    index: int
    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    ended: str | None = None

    def add(self, news: News) -> None:
        """There is more."""
        self.text += news.text
        self.tokens += news.tokens
        self.ended = news.ended or self.ended


@dataclass
class Asked:
    """A completion under way."""

    ask: Completion
    loaded: Loaded
    draft: Draft
    echoes: list[str]  # of each prompt, where it is to be told again
    long: bool
    head: dict[str, Any] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)  # of a row: characters that were told
    written: int = 0

    def __post_init__(self) -> None:
        name = self.loaded.place.name
        known = {"id": f"cmpl-{secrets.token_hex(12)}", "object": "text_completion"}
        self.head = {**known, "created": int(time.time()), "model": name}

    @property
    def usage(self) -> dict[str, int]:
        """Tokens read and written."""
        read = sum(map(len, self.draft.starts))
        counts = {"prompt_tokens": read, "completion_tokens": self.written}
        return counts | {"total_tokens": read + self.written}

    def tree(self, choice: Choice) -> dict[str, Any]:
        """A choice, or a part of one, as OpenAI has it."""
        found: dict[str, Any] = {"text": choice.text, "index": choice.index, "logprobs": None}
        if self.ask.logprobs is not None:
            found["logprobs"] = self._logprobs(choice)
        if self.ask.return_token_ids:
            found["token_ids"] = [token.id for token in choice.tokens]
            if choice.index not in self.offsets:  # the first that is told of it
                found["prompt_token_ids"] = list(self.draft.starts[choice.index // self.ask.n])
        self.offsets[choice.index] = self.offsets.get(choice.index, 0) + len(choice.text)
        return found | {"finish_reason": choice.ended}

    def _logprobs(self, choice: Choice) -> dict[str, Any]:
        spell = self._spelled
        offsets, at = [], self.offsets.get(choice.index, 0)
        for token in choice.tokens:
            offsets.append(at)
            at += len(text) if not (text := spell(token.id)).startswith("bytes:") else 0
        found: dict[str, Any] = {
            "tokens": [spell(token.id) for token in choice.tokens],
            "token_logprobs": [token.logp for token in choice.tokens],
            "top_logprobs": [{spell(i): p for i, p in token.top} or None for token in choice.tokens],
            "text_offset": offsets,
        }
        if self.ask.return_token_ids:  # in their order, which an object does not keep for digits
            found["runners"] = [[[i, spell(i), p] for i, p in token.top] for token in choice.tokens]
        return found

    def _spelled(self, number: int) -> str:
        """A token as text; one that is a part of a character, as its bytes, like OpenAI's."""
        tokenizer = self.loaded.writer.tokenizer
        raw = tokenizer.spell([number])
        try:
            return raw.decode() or tokenizer.target_pieces[number]
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
