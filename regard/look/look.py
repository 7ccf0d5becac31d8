"""`regard.look(model, "sentence")`: one translation and everything it attended to, ready to be shown.

The translation is made as `regard translate` makes it, with cache and beam; the weights are those of that
very search (`trace.py`). What it becomes: HTML (`html.py`), JSON (`document.py`), SVG and PNG (`figure.py`),
Pharaoh (`align.py`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.attention.switch import heads_off
from regard.errors import DataError, ModelError, UsageError
from regard.look.align import Alignment, align
from regard.look.document import as_json, document
from regard.look.figure import Figure, figure
from regard.look.html import notebook_frame, page
from regard.look.maps import Map, maps
from regard.look.trace import Watched, attentions, follow
from regard.look.words import Side, join_keys, join_queries
from regard.tasks.translation.translator import Translator, load_readable

MOST_NUMBERS = 4_000_000  # weights of all maps together; a browser draws no more
ENDINGS = (".html", ".json", ".pharaoh", ".png", ".svg")


@dataclass(frozen=True)
class Origin:
    """Which model it was."""

    name: str = "model"
    card: str = ""  # its README, as Markdown


@dataclass(frozen=True)
class Look:
    """One translation with the attention of every layer and head."""

    text: str
    translation: str
    score: float  # log p / length ** length_penalty
    truncated: bool  # it was cut at the longest output allowed
    beam: int
    source: Side  # the end with it
    target: Side  # what was written, the end with it if it came
    read: Side  # what the decoder read while it wrote: begin, then what it had written before
    confidence: tuple[float, ...]  # probability of each piece that was written
    maps: tuple[Map, ...]
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)  # heads that were switched off

    def side(self, name: str) -> Side:
        """source, target or read."""
        side: Side = getattr(self, name)
        return side

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
        writers: dict[str, Callable[[], str | bytes]] = {
            ".html": self.to_html,
            ".json": lambda: self.to_json() + "\n",
            ".pharaoh": lambda: f"{self.alignment()}\n",
            ".png": lambda: self.figure().to_png(),
            ".svg": lambda: self.figure().to_svg(),
        }
        write(Path(path), writers)

    def bertviz(self) -> dict[str, Any]:
        """The arguments of `bertviz.model_view` and `head_view`: weights (1, H, T, S) a layer, and tokens."""
        by_kind = {kind: [m for m in self.maps if m.kind == kind] for kind in ("encoder", "decoder", "cross")}
        return {
            **{f"{kind}_attention": [m.weights[None] for m in found] for kind, found in by_kind.items()},
            "encoder_tokens": list(self.source.tokens),
            "decoder_tokens": list(self.read.tokens),
        }

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Attention of: {self.text}")


def look(
    model: Translator | str | PathLike[str],
    text: str,
    *,
    beam: int | None = None,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    only: Collection[str] | None = None,
    most: int = MOST_NUMBERS,
) -> Look:
    """Translate `text` and keep what every head looked at while it was translated.

    `model` is a folder or a `Translator`. `vectors` keeps queries, keys and values too, for the walk through
    a head. `off` switches heads off: {"decoder.1.cross": [0, 3]}. `only` names the attentions to keep.
    There are at most `most` weights, or it is refused, and as many numbers in vectors, or they are left out.
    """
    translator, origin = opened(model)
    ids = translator.tokenizer.encode(text)
    if not ids:
        raise DataError("there is nothing to look at: the text is empty")
    keep = None if only is None else frozenset(only).__contains__
    numbers = _check_size(translator.model, len(ids) + 1, keep, most)
    begin, end = translator.tokenizer.begin_id, translator.tokenizer.end_id
    watched = Watched(translator.model, end=end, vectors=vectors and numbers <= most, keep=keep)
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    with heads_off(silent):
        (found,) = Translator(watched, translator.tokenizer, translator.decode).stream([text], beam=beam)
    written = [*found.ids, *([] if found.truncated else [end])]
    trace = follow(watched, written, begin=begin)
    taped = maps(trace)
    if not taped:
        raise ModelError(f"{origin.name} has no attention to look at: its model taped nothing")
    return Look(
        text=text,
        translation=found.text,
        score=found.score,
        truncated=found.truncated,
        beam=translator.decode.beam if beam is None else beam,
        source=Side.of(trace.source, translator.tokenizer),
        target=Side.of(written, translator.tokenizer, target=True),
        read=Side.of([begin, *written[:-1]], translator.tokenizer, target=True),
        confidence=trace.confidence,
        maps=taped,
        origin=origin,
        off=silent,
    )


def opened(model: Translator | str | PathLike[str]) -> tuple[Translator, Origin]:
    """A translator and where it comes from."""
    if isinstance(model, Translator):
        return model, Origin()
    folder = Path(model)
    translator = load_readable(folder)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return translator, Origin(folder.resolve().name, text)


def write(path: Path, writers: Mapping[str, Callable[[], str | bytes]]) -> None:
    """Write what the writer of the path's ending gives."""
    if path.suffix not in writers:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}; give one of {', '.join(writers)}")
    made = writers[path.suffix]()
    path.write_bytes(made.encode("utf-8", "surrogatepass") if isinstance(made, str) else made)


def _check_size(model: Any, length: int, keep: Callable[[str], bool] | None, most: int) -> int:
    """Refuse what nobody could look at; about how many numbers the vectors of this sentence hold."""
    kept = [each for each in attentions(model) if keep is None or keep(each.site.name)]
    weights = sum(each.n_heads for each in kept) * length * length
    if weights > most:
        raise DataError(
            f"a sentence of {length:,} tokens has {weights:,} weights in this model and at most "
            f"{most:,} are shown; take a shorter one, or fewer attentions (only)"
        )
    return sum(4 * length * each.query.out_features for each in kept if hasattr(each, "query"))
