"""Raw text in, raw text out: a model folder that translates.

Lines are read a window ahead, sorted by length into batches with little padding, searched, and handed
back in the order they came; memory stays the same however many there are. Before this file: the searches;
after it: the command line and the server.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import nn

from regard.attention.record import running_tape
from regard.attention.switch import any_off
from regard.config import DecodeConfig
from regard.data.corpus import open_parses
from regard.data.inputs import pad_sources
from regard.data.parses import Parses, token_heads
from regard.decoding.sampling import Sampling
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Spelling, way_of
from regard.errors import DataError, ModelError, UsageError, refuse_unknown
from regard.models.folder import load_folder
from regard.models.protocol import Stepper
from regard.process.waiting import watched
from regard.tasks.itself import ShowsItself, counted
from regard.tasks.task import expect
from regard.tasks.translation.manner import Manner, More, Searcher
from regard.tasks.translation.windows import batches, fitting, readable, windows
from regard.text.directions import Directions, tag_of
from regard.text.normalise import one_line
from regard.text.tokenizer import Tokenizer

WINDOW = 20  # batches read ahead

# A line in is a line out, whatever bytes the model writes.


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    text: str
    score: float  # log p / length ** length_penalty
    truncated: bool  # it reached the longest output allowed and was cut
    tokens: int = 0  # that were written, the end counted
    n_best: tuple["Translation", ...] = ()  # best first; only where more than one was asked for
    ids: tuple[int, ...] = field(default=(), repr=False)  # what was written, without specials
    words: tuple[dict[str, Any], ...] | None = None  # each word's place, confidence and origin, where asked


class Translator(ShowsItself):
    """A model with its tokenizer and its decoding defaults; `regard.load` makes one from a folder."""

    task = "translation"

    def __init__(
        self, model: nn.Module | Stepper[Any, Any], tokenizer: Tokenizer, decode: DecodeConfig | None = None
    ) -> None:
        self.model: Any = model  # an nn.Module that follows the step protocol, or any other that does
        self.tokenizer = tokenizer
        self.decode = decode or DecodeConfig()
        self.parses: tuple[Path, ...] = ()
        self.trained: int | None = None  # tokens of the longest sentence that it was trained on, if known
        self.engine: Searcher | None = None  # searches in the model's place where it can
        self.directions: Directions | None = None  # of a model for several pairs of languages
        self.pair: tuple[str, str] | None = None  # the one of them that is meant: see `to`
        self._spelling: Spelling | None = None
        self.note: str | None = None  # what a person should know about how this translator runs

    def _told(self) -> dict[str, str]:
        return {
            "model": counted(self.model),
            "vocabulary": f"{self.tokenizer.vocab_size:,} pieces",
            "search": f"beam {self.decode.beam}",
            "engine": "the native engine" if self.engine is not None else "the readable decoder",
        }

    def parsed(self, *parses: str | PathLike[str]) -> "Translator":
        """The same, for text whose dependency trees are in these CoNLL-U files: see docs/data.md."""
        modules = self.model.modules() if isinstance(self.model, nn.Module) else ()
        if not any(getattr(module, "reads_trees", False) for module in modules):
            raise UsageError(f"this model reads no dependency trees; translate without {parses[0]}")
        other = copy.copy(self)
        other.parses = tuple(map(Path, parses))
        return other

    def to(self, target: str = "", source: str = "") -> "Translator":
        """The same, writing this language; of a model for several."""
        if self.directions is None:
            raise UsageError("this model translates one pair of languages; leave out the language")
        other = copy.copy(self)
        other.pair = self.directions.chosen(source, target)
        other.tokenizer = self.tokenizer.tagged(tag_of(other.pair[1]))
        return other

    def _check_pair(self) -> None:
        """Refuse to go on before it is known what is to be written."""
        if self.directions is not None and self.pair is None:
            self.directions.chosen()

    @property
    def notes(self) -> list[str]:
        """Lines that a person should read: how it runs, and that it never saw what it is asked for."""
        notes = [self.note] if self.note else []
        if self.directions is not None and self.pair is not None and self.directions.zero_shot(self.pair):
            notes.append(f"{'-'.join(self.pair)} is zero-shot: this model learned {self.directions}")
        return notes

    def contextual(self, text: str) -> tuple[list[int], torch.Tensor]:
        """The ids of a text, its end with them, and the vectors (S, D) that the encoder gives them in it."""
        self._check_pair()
        ids = [*self.tokenizer.encode(text), self.tokenizer.end_id]
        if not hasattr(self.model, "encode"):
            raise ModelError("this model has no encoder, so that a word has no vector in its sentence")
        limit = self.model.max_length
        if limit is not None and len(ids) > limit:
            raise DataError(f"a sentence has {len(ids)} tokens and this model takes {limit}; shorten it")
        with torch.inference_mode(), _evaluating(self.model):
            return ids, self.model.encode(pad_sources([ids]).to(_device(self.model)))[0].float().cpu()

    @property
    def limit(self) -> int:
        """Source tokens of the longest sentence that it is given out of a text, the end not counted."""
        limits: list[int | None] = [self.decode.max_source, self.trained, self.model.max_length]
        return max(1, min(each for each in limits if each) - 1)

    @property
    def by_sentence(self) -> bool:
        """Whether texts are cut into sentences for it: not where a long text becomes a short one."""
        return self.decode.max_ratio > 0

    @overload
    def translate(self, texts: str, **search: Any) -> str: ...
    @overload
    def translate(self, texts: Iterable[str], **search: Any) -> list[str]: ...
    def translate(self, texts: str | Iterable[str], **search: Any) -> str | list[str]:
        """One text of any length translated; or each line of a list, in order, which are sentences already.

        The options are those of `stream`: `beam`, `batch_size`, `length_penalty`, `sampling`.
        """
        if isinstance(texts, str):
            found = self.texts([texts], **search) if self.by_sentence else self.stream([texts], **search)
            return next(found).text
        return [each.text for each in self.stream(texts, **search)]

    def texts(
        self,
        texts: Iterable[str],
        *,
        html: bool = False,
        glossary: Mapping[str, str] | None = None,
        words: bool = False,
        n_best: int = 1,
        window: int = 0,
        **search: Any,
    ) -> Iterator[Translation]:
        """One translation a text, in order: its sentences are found, what lies between them is kept.

        `html`: tags stay around their words. `glossary`: terms and what they must become. `words`: each
        word's place, confidence and origin are told. `n_best`: so many answers to each. `search` are the
        other options of `stream`.
        """
        from regard.tasks.translation.texts import Handling, translated

        if isinstance(texts, str):
            raise UsageError(f"texts takes a list of texts, not one string: [{texts[:20]!r}]")
        if self.parses:
            raise UsageError("dependency trees belong to lines; use stream, or regard translate --lines")
        handling = Handling.of(html=html, glossary=glossary, words=words, n_best=n_best)
        self.stream((), n_best=n_best, window=window, **search)  # what is wrong is said at once
        return translated(self, texts, handling, window or WINDOW * search.get("batch_size", 32), **search)

    def hypotheses(self, texts: Iterable[str], *, n_best: int = 1, **search: Any) -> list[list[Translation]]:
        """Up to `n_best` translations of each text, best first; the options are those of `stream`."""
        found = self.stream(texts, n_best=n_best, **search)
        return [list(each.n_best) if each.n_best else [each] for each in found]

    def stream(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        batch_size: int = 32,
        length_penalty: float | None = None,
        sampling: Sampling | None = None,
        window: int = 0,
        **more: Unpack[More],
    ) -> Iterator[Translation]:
        """One translation a line, in order, for as many lines as come.

        `beam` and `length_penalty` default to those of the folder. With `sampling`, words are drawn
        instead of searched and `n_best` is the number of draws. `window` is how many lines are read
        before the first is answered (0: 20 batches; 1: each line is answered at once). What stands before
        a line that cannot be translated is answered before the error is raised.
        """
        if isinstance(lines, str):
            raise UsageError(f"stream takes a list of lines, not one string: [{lines[:20]!r}]")
        refuse_unknown(more, More.__annotations__, "translating")
        named: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
        way = way_of(self.model)
        for name in ("iterations", "lengths"):
            named[name] = value = more.get(name)
            if value is not None and not way.refines:
                raise UsageError(
                    f"{name} ({value}) is of models that foresee a length and write it again "
                    "(model.kind=parallel)"
                )
        decode = dataclasses.replace(
            self.decode, **{name: value for name, value in named.items() if value is not None}
        )
        self._check_pair()
        bounds = more.get("length"), more.get("max_chars"), more.get("rescorer")
        manner = Manner(decode, n_best, batch_size, window, sampling, *bounds)
        way.check(manner.wanted(self.spelling))
        return self._stream(lines, manner)

    def spelling(self) -> Spelling:
        """How many characters each token writes; bytes count one each."""
        if self._spelling is None:
            self._spelling = Spelling.of(self.tokenizer, _width(self.model, self.tokenizer))
        return self._spelling

    def _stream(self, lines: Iterable[str], manner: Manner) -> Iterator[Translation]:
        read = 0
        with closing(open_parses(self.parses)) if self.parses else nullcontext() as parses:
            for texts, fault in windows(lines, manner.window or WINDOW * manner.batch_size):
                limit = min(manner.decode.max_source, self.model.max_length or manner.decode.max_source)
                texts, fault = readable(texts, fault, limit, read)
                sources = self.tokenizer.encode_batch(texts)
                heads = self._heads(parses, texts, sources, read) if parses else None
                count = fitting(sources, limit)
                yield from self._translate_window(sources[:count], manner, heads)
                if count < len(sources):
                    raise DataError(
                        f"line {read + count + 1} has {len(sources[count]) + 1} tokens, the end counted, "
                        f"and this model takes {limit} (decode.max_source, or its positions); split the line"
                    )
                if fault is not None:
                    raise fault
                read += len(texts)
            if parses:
                parses.finish("the text")

    def _heads(
        self, parses: Parses, texts: Sequence[str], sources: Sequence[list[int]], read: int
    ) -> list[list[int]]:
        """The trees of a window of lines, as heads of their tokens."""
        found = []
        for number, (text, ids) in enumerate(zip(texts, sources, strict=True), read + 1):
            tokens = [self.tokenizer.token(each) for each in ids]
            found.append(token_heads(parses.of(text, f"line {number}"), text, tokens))
        return found

    def _translate_window(
        self, sources: Sequence[list[int]], manner: Manner, heads: list[list[int]] | None = None
    ) -> list[Translation]:
        """Every source of a window in its place; an empty one never meets the model."""
        results = [_empty(manner.n_best)] * len(sources)
        if self._engine_for(manner) is not None:
            handfuls = iter([[i for i, ids in enumerate(sources) if ids]])  # the engine makes its own
        else:
            handfuls = batches(sources, manner.batch_size)
        with _evaluating(self.model), torch.inference_mode(), watched():
            for numbers in handfuls:
                own = None if heads is None else [heads[i] for i in numbers]
                found = self._search([[*sources[i], self.tokenizer.end_id] for i in numbers], manner, own)
                for i, hypotheses in zip(numbers, found, strict=True):
                    results[i] = self._translation(hypotheses, manner.n_best)
        return results

    def _engine_for(self, manner: Manner) -> Searcher | None:
        """The engine, if it can do what is asked here: it neither draws nor shows its attention."""
        plain = manner.sampling is None and running_tape() is None and not any_off()
        return self.engine if plain else None

    def _search(
        self, sources: list[list[int]], manner: Manner, heads: list[list[int]] | None = None
    ) -> list[list[Hypothesis]]:
        """The outputs of one batch of sources, each closed by the end token."""
        if not sources:
            return []
        engine = self._engine_for(manner)
        device = torch.device("cpu") if engine is not None else _device(self.model)
        rules = Rules.of(
            manner.decode,
            map(len, sources),
            max_length=self.model.max_length,
            vocab_size=self.tokenizer.target_vocab_size,
            specials=self.tokenizer.specials,
            device=device,
        )
        wanted = manner.wanted(self.spelling)
        if engine is not None:
            found = engine.answer(sources, rules, wanted, batch_size=manner.batch_size)
        else:
            inputs = pad_sources(sources, heads=heads).to(device)
            found = way_of(self.model).search(self.model, inputs, rules, wanted)
        if manner.rescorer is None:
            return found
        return [outputs[: manner.n_best] for outputs in manner.rescorer(sources, found)]

    def _translation(self, hypotheses: Sequence[Hypothesis], n_best: int) -> Translation:
        """Ids as text; the first is the answer."""
        texts = self.tokenizer.decode_batch(each.ids for each in hypotheses)
        found = tuple(
            Translation(one_line(text), each.score, each.truncated, each.length, ids=tuple(each.ids))
            for text, each in zip(texts, hypotheses, strict=True)
        )
        return dataclasses.replace(found[0], n_best=found) if n_best > 1 else found[0]


def load_readable(folder: str | PathLike[str], *, device: str | torch.device = "cpu") -> Translator:
    """The translator in a model folder, without the engine; `load.py` has the one with it."""
    expect(Path(folder), "translation")
    loaded = load_folder(Path(folder), device=device)
    translator = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    translator.trained = loaded.config.data.max_length
    translator.directions = Directions.of(loaded.config.text)
    if missing := [tag for tag in _tags(translator.directions) if tag not in translator.tokenizer.tags]:
        raise ModelError(f"{folder}: tokenizer.json has no {missing[0]}, which its config needs")
    only = translator.directions is not None and len(translator.directions.targets) == 1
    return translator.to() if only else translator


def _tags(directions: Directions | None) -> list[str]:
    return [tag_of(code) for code in directions.targets] if directions else []


def _width(model: Any, tokenizer: Tokenizer) -> int:
    """Rows of the output matrix, which may be more than there are tokens."""
    weight = getattr(model, "output_weight", None)
    return tokenizer.target_vocab_size if weight is None else len(weight)


def _empty(n_best: int) -> Translation:
    """The translation of nothing."""
    nothing = Translation("", 0.0, False)
    return dataclasses.replace(nothing, n_best=(nothing,)) if n_best > 1 else nothing


def _device(model: Any) -> torch.device:
    parameters = model.parameters() if isinstance(model, nn.Module) else iter(())
    first = next(parameters, None)
    return torch.device("cpu") if first is None else first.device


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Without dropout inside the block; a model in training goes on training after it."""
    training = getattr(model, "training", False)
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()
