"""`regard.look(model, "text")`: what a model made of a text and everything it attended to, ready to be shown.

The task of the model knows how it is made: `translated.py` for translators, `written.py` for language models.
What it becomes: HTML (`html.py`), JSON (`document.py`), SVG and PNG (`figure.py`), Pharaoh (`align.py`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.attention.record import attentions
from regard.errors import DataError, UsageError
from regard.look.align import Alignment, align
from regard.look.document import as_json, document
from regard.look.figure import Figure, figure
from regard.look.html import notebook_frame, page
from regard.look.inside import Entered, Fed
from regard.look.maps import Map
from regard.look.outlook import Outlook
from regard.look.tree import Branch
from regard.look.words import Side, join_keys, join_queries
from regard.tasks.task import task_named, task_of

MOST_NUMBERS = 4_000_000  # weights of all maps together; a browser draws no more
ENDINGS = (".html", ".json", ".pharaoh", ".png", ".svg")


@dataclass(frozen=True)
class Origin:
    """Which model it was."""

    name: str = "model"
    card: str = ""  # its README, as Markdown


@dataclass(frozen=True)
class Guess:
    """How sure a model was of a piece, and what else it thought of."""

    confidence: float  # the probability of the piece
    runners: tuple[tuple[str, float], ...] = ()  # the likeliest others with theirs (runners-up)


@dataclass(frozen=True)
class Passed:
    """One pass over all places of an output: what stood there afterwards, and where each place looked."""

    tokens: tuple[str, ...]
    written: tuple[bool, ...]  # in this pass; the others were there before
    confidence: tuple[float, ...]
    looked: Tensor | None = None  # (T, S): the mean of the heads, in the layer that is sharpest

    @property
    def text(self) -> str:
        """The tokens one after the other."""
        return " ".join(self.tokens)


@dataclass(frozen=True)
class Look:
    """One answer with the attention of every layer and head."""

    text: str
    answer: str  # the translation, or what was written on
    sides: Mapping[str, Side]  # the edges of the maps; `target` is what was foreseen or written
    maps: tuple[Map, ...]
    guesses: tuple[Guess, ...] = ()  # a piece of the target each
    given: int = 0  # the first so many pieces of the target were there: they were foreseen, not written
    score: float = 0.0  # log p / length ** length_penalty
    truncated: bool = False  # it was cut at the longest output allowed
    beam: int = 1
    task: str = "translation"
    titles: Mapping[str, str] = field(default_factory=dict)  # what people call the sides
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)  # heads that were switched off
    passes: tuple[Passed, ...] = ()  # of a model that writes all at once
    outlook: tuple[Outlook, ...] = ()  # of each piece of the target: what could have come, at any temperature
    tree: tuple[Branch, ...] = ()  # of a beam search: everything that it considered
    entered: Mapping[str, Entered] = field(default_factory=dict)  # by side: embeddings and positions
    fed: tuple[Fed, ...] = ()  # the feed-forward parts, in the order in which they ran

    def __repr__(self) -> str:
        """What was looked at, for a person at a prompt; a notebook shows the page."""
        return f"<Look: {self.text!r} -> {self.answer!r}, {len(self.maps)} maps>"

    @property
    def translation(self) -> str:
        """The answer of a translator."""
        return self.answer

    @property
    def confidence(self) -> tuple[float, ...]:
        """The probability of each piece of the target."""
        return tuple(guess.confidence for guess in self.guesses)

    @property
    def source(self) -> Side:
        """What was given, the end with it."""
        return self.side("source")

    @property
    def target(self) -> Side:
        """What was written, the end with it if it came; a language model's begins in the text given."""
        return self.side("target")

    @property
    def read(self) -> Side:
        """What the decoder read while it wrote: begin, then what it had written before."""
        return self.side("read")

    def side(self, name: str) -> Side:
        """source, target or read, if the model has it."""
        if name not in self.sides:
            raise UsageError(f"this model has no {name}; it has {', '.join(self.sides)}")
        return self.sides[name]

    def map(self, kind: str, layer: int) -> Map:
        """The map of that kind (encoder, decoder, cross) in that layer."""
        for each in self.maps:
            if (each.kind, each.layer) == (kind, layer):
                return each
        there = ", ".join(f"{each.kind} {each.layer}" for each in self.maps)
        raise UsageError(f"there is no map {kind} {layer}; there are {there}")

    def joined(self, one: Map) -> Tensor:
        """The weights (H, words, words) of a map, pieces joined to words."""
        queries, keys = (self.side(name) for name in one.sides)
        return join_queries(join_keys(one.weights, keys.words), queries.words)

    def alignment(self, layer: int | None = None) -> Alignment:
        """Which word came from which, by cross-attention; the layer that is sharpest unless told."""
        return align(self, layer)

    def figure(
        self, *, kind: str = "", layer: int | None = None, head: int | None = None, pieces: bool = False
    ) -> Figure:
        """One map as a figure; cross-attention in its sharpest layer, the mean of its heads, unless told."""
        return figure(self, kind=kind, layer=layer, head=head, pieces=pieces)

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Everything as plain values: what docs/look.md describes."""
        return document(self, vectors=vectors)

    def to_json(self, *, vectors: bool = True) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict(vectors=vectors))

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict())

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .svg, .png or .pharaoh."""
        write(Path(path), self, {".pharaoh": lambda: f"{self.alignment()}\n"})

    def bertviz(self) -> dict[str, Any]:
        """The arguments of `bertviz.model_view` and `head_view`: weights (1, H, T, S) a layer, and tokens."""
        by_kind = {kind: [m.weights[None] for m in self.maps if m.kind == kind] for kind in self.kinds}
        if len(by_kind) == 1:
            one = self.maps[0]
            return {"attention": by_kind[one.kind], "tokens": list(self.side(one.sides[0]).tokens)}
        return {
            **{f"{kind}_attention": by_kind.get(kind, []) for kind in ("encoder", "decoder", "cross")},
            "encoder_tokens": list(self.source.tokens),
            "decoder_tokens": list(self.read.tokens),
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of maps there are: encoder, decoder, cross."""
        return tuple(dict.fromkeys(each.kind for each in self.maps))

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Attention of: {self.text}")


def look(model: Any, text: str, **options: Any) -> Look:
    """What a model makes of `text`, and what every head looked at meanwhile.

    `model` is a folder, or what `regard.load` made of one. The options are those of its task:
    `regard.look.translated.look_at_translation`, `regard.look.written.look_at_writing`.
    """
    named = getattr(model, "task", None)
    task = task_of(Path(model)) if named is None else task_named(named)
    seen: Look = task.look(model if named else Path(model), text, **options)
    return seen


def opened(model: Any, load: Callable[[Path], Any]) -> tuple[Any, Origin]:
    """What a folder holds, loaded, and where it comes from; or what was loaded already."""
    if hasattr(model, "task"):
        return model, Origin()
    folder = Path(model)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return load(folder), Origin(folder.resolve().name, text)


class Shown(Protocol):
    """What can be written as a page, as text and as a figure."""

    def to_html(self) -> str: ...
    def to_json(self) -> str: ...
    def figure(self) -> Any: ...


def write(path: Path, shown: Shown, more: Mapping[str, Callable[[], str | bytes]] | None = None) -> None:
    """Write what is shown by the path's ending; `more` are endings that only this one has."""
    writers: dict[str, Callable[[], str | bytes]] = {
        ".html": shown.to_html,
        ".json": lambda: shown.to_json() + "\n",
        **(more or {}),
        ".png": lambda: shown.figure().to_png(),
        ".svg": lambda: shown.figure().to_svg(),
    }
    if path.suffix not in writers:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}; give one of {', '.join(writers)}")
    made = writers[path.suffix]()
    path.write_bytes(made.encode("utf-8", "surrogatepass") if isinstance(made, str) else made)


def check_size(model: Any, length: int, keep: Callable[[str], bool] | None, most: int) -> int:
    """Refuse what nobody could look at; about how many numbers the vectors of this text hold."""
    kept = [each for each in attentions(model) if keep is None or keep(each.site.name)]
    weights = sum(each.n_heads for each in kept) * length * length
    if weights > most:
        raise DataError(
            f"a text of {length:,} tokens has {weights:,} weights in this model and at most "
            f"{most:,} are shown; take a shorter one, or fewer attentions (only)"
        )
    return sum(4 * length * each.query.out_features for each in kept if hasattr(each, "query"))
