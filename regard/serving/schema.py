"""What the requests hold and what the answers look like: LibreTranslate's fields, and ours beside them.

One set of models checks what comes in and describes it at `/spec`. Unknown fields are ignored, a null counts
as not given, and a wrong value is named in one line. Before this file: `body.py`; after it: the routes.
"""

import json
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from regard.serving.limits import (
    ALTERNATIVES,
    CODE_CHARACTERS,
    HEADS_OFF,
    TERM_CHARACTERS,
    TERMS,
    TEXTS,
    Refusal,
)

Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=CODE_CHARACTERS)]
Term = Annotated[str, StringConstraints(min_length=1, max_length=TERM_CHARACTERS)]
Chosen = Annotated[
    str,
    Field(max_length=1000, description="Where several have these languages: one, as /v1/models lists it."),
]
Texts = str | Annotated[list[str], Field(max_length=TEXTS)]
Heads = Annotated[list[Annotated[int, Field(ge=0, lt=HEADS_OFF)]], Field(max_length=HEADS_OFF)]


def as_object(value: Any) -> Any:
    """In a form an object is written as JSON."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


class Given(BaseModel):
    """What every request may hold."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    carries: ClassVar[str] = ""  # it is a form with a file, and this is the name of its bound in `Limits`

    api_key: Annotated[str, Field(max_length=1000, description="Where the server asks for one.")] = ""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """The request in these fields, or a refusal that names the first wrong one."""
        return _checked(cls, fields)


class Translate(Given):
    """A text to translate, or a list of them."""

    q: Annotated[Texts, Field(description="The text, or a list of texts.")]
    source: Annotated[Code, Field(description="A language code, or auto.")] = "auto"
    target: Annotated[Code, Field(description="A language code.")]
    format: Annotated[Literal["text", "html"], Field(description="html: tags stay around their words.")] = (
        "text"
    )
    alternatives: Annotated[int, Field(ge=0, le=ALTERNATIVES, description="Other translations wanted.")] = 0
    words: Annotated[bool, Field(description="Give each word's confidence and where it came from.")] = False
    glossary: Annotated[
        dict[Term, Annotated[str, StringConstraints(max_length=TERM_CHARACTERS)]],
        BeforeValidator(as_object),
        Field(max_length=TERMS, description="Words and what they must become; itself: not translated."),
    ] = Field(default_factory=dict)
    stream: Annotated[bool, Field(description="Answer with server-sent events, a sentence each.")] = False
    model: Chosen = ""

    @property
    def texts(self) -> list[str]:
        """The texts, one or many."""
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateFile(Given):
    """A file to translate; what it is, its name says."""

    carries: ClassVar[str] = "file"

    file: Annotated[Any, Field(json_schema_extra={"type": "string", "format": "binary"})]
    source: Annotated[Code, Field(description="A language code, or auto.")] = "auto"
    target: Annotated[Code, Field(description="A language code.")]
    model: Chosen = ""


class Suggest(Given):
    """A better translation that somebody offers."""

    q: str = ""
    s: str = ""
    source: str = ""
    target: str = ""


class Detect(Given):
    """A text whose language is asked."""

    q: str


class Attention(Given):
    """A sentence to look into, with heads switched off or not."""

    q: str
    source: Code = "auto"
    target: Code
    model: Chosen = ""
    heads_off: Annotated[
        dict[str, Heads],
        BeforeValidator(as_object),
        Field(max_length=HEADS_OFF, examples=[{"decoder.0.cross": [1]}]),
    ] = Field(default_factory=dict)


Checked = TypeVar("Checked", bound=BaseModel)


def _checked(model: type[Checked], fields: dict[str, Any]) -> Checked:
    known = {name: value for name, value in fields.items() if value is not None}
    if "apiKey" in known:  # as the npm client `libretranslate` spells it
        known.setdefault("api_key", known["apiKey"])
    try:
        return model.model_validate(known)
    except ValidationError as error:
        message, field = _first_fault(error)
        raise Refusal(400, message, param=field) from None


def _first_fault(error: ValidationError) -> tuple[str, str]:
    """One line: which field, and what is wrong with it; and the field."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in fault["loc"][:2])
    if fault["type"] == "missing":
        return f"Invalid request: missing {place} parameter", place
    return f"Invalid request: {place}: {fault['msg']}", place.partition(".")[0]


def sound(texts: list[str]) -> list[str]:
    """The texts; half a surrogate pair, which is no text, becomes U+FFFD."""
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]


# Answers -------------------------------------------------------------------------------------------


class Failure(BaseModel):
    """What every refusal says."""

    error: str


class Detected(BaseModel):
    """A language and how sure that is, from 0 to 100."""

    language: str
    confidence: float


class Language(BaseModel):
    """A language that is served, and what it can be translated to."""

    code: str
    name: str
    targets: list[str]
    zero_shot: list[str] = []  # those of them that the model was never taught from this language


class TranslatedFile(BaseModel):
    """Where a translated file is fetched, for twenty minutes."""

    translatedFileUrl: str  # noqa: N815


class Translated(BaseModel):
    """The answer to `/translate`: strings for a text, lists for a list of texts."""

    translatedText: str | list[str]  # noqa: N815  LibreTranslate's spelling
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    words: list[dict[str, Any]] | list[list[dict[str, Any]]] | None = None


class Health(BaseModel):
    """Whether the server can be asked."""

    status: Literal["loading", "ready", "draining"]


class Model(BaseModel):
    """A model that is served, as OpenAI tells of one, and its task."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    task: str


class Models(BaseModel):
    """All of them."""

    object: Literal["list"]
    data: list[Model]
