"""The second kind of tokenizer: SentencePiece models as imported ones have them (Kudo & Richardson 2018).

A line is rewritten by the model's own table, cut into the likeliest pieces (unigram: Kudo 2018) or merged by
rank (BPE), and the pieces are looked up in the vocabulary of the network, which has an order of its own.
Source and target may have a model and a vocabulary each. What has no id becomes the unknown token. Read by
`regard.interop.sentencepiece`; kept in a tokenizer.json that needs nothing else.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE, Unigram

from regard.errors import ModelError, shown
from regard.foreign import MOST_NODES, check_strings
from regard.text.normalise import SPACE_MARK
from regard.text.tokenizer import Specials, Tokenizer
from regard.text.vocabulary import all_merges

KIND = "sentencepiece"
_UNKNOWN = "\ufffd\u2047"  # the name of the unknown piece inside the Rust models; no text has it


@dataclass(frozen=True)
class PieceModel:
    """One SentencePiece model: how a line is rewritten and cut."""

    kind: str  # unigram or bpe
    pieces: list[tuple[str, float]]  # that text is cut into, with their scores; no specials, no bytes
    rewrites: dict[str, str]  # the longest that fits is taken at each place
    add_prefix: bool = True  # a space before the line
    squeeze: bool = True  # runs of spaces become one, and the ends are bare
    byte_fallback: bool = False

    def normalise(self, text: str) -> str:
        """The line as its pieces spell it, spaces as U+2581."""
        spelled = "".join(self._rewritten(text))
        if self.squeeze:
            spelled = " ".join(word for word in spelled.split(" ") if word)
        spelled = spelled.replace(" ", SPACE_MARK)
        if self.add_prefix and text:
            spelled = SPACE_MARK + spelled
        return spelled.rstrip(SPACE_MARK) if self.squeeze else spelled

    def _rewritten(self, text: str) -> Iterable[str]:
        if self._triggers.isdisjoint(text):
            return (text,)
        parts, place = [], 0
        while place < len(text):
            for length in self._lengths.get(text[place], ()):
                found = self.rewrites.get(text[place : place + length])
                if found is not None:
                    parts.append(found)
                    place += length
                    break
            else:
                parts.append(text[place])
                place += 1
        return parts

    @cached_property
    def _triggers(self) -> frozenset[str]:
        """The last characters of what is rewritten: a line with none of them stays as it is."""
        return frozenset(key[-1] for key in self.rewrites)

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """How long the rewritten strings are that begin with a character, longest first."""
        lengths: dict[str, set[int]] = {}
        for key in self.rewrites:
            lengths.setdefault(key[0], set()).add(len(key))
        return {first: sorted(found, reverse=True) for first, found in lengths.items()}

    @cached_property
    def rust(self) -> RustTokenizer:
        """What cuts a rewritten line; it has no rewriting of its own."""
        if self.kind == "unigram":
            return RustTokenizer(Unigram([(_UNKNOWN, 0.0), *self.pieces], 0, False))
        ranked = [_UNKNOWN, *(piece for piece, _ in sorted(self.pieces, key=lambda each: -each[1]))]
        ids = {piece: number for number, piece in enumerate(ranked)}
        return RustTokenizer(BPE(ids, all_merges(ranked, 1), unk_token=_UNKNOWN, fuse_unk=True))

    def check(self) -> None:
        """Refuse what would take all memory, never come back, or is no text; ModelError."""
        check_strings((piece for piece, _ in self.pieces), "piece")
        for side in (self.rewrites.keys(), self.rewrites.values()):
            check_strings(side, "rewriting")
        if self.kind == "unigram" and (nodes := _nodes(piece for piece, _ in self.pieces)) > MOST_NODES:
            raise ModelError(
                f"the pieces make a tree of {nodes:,} nodes; more than {MOST_NODES:,} are not read"
            )
        if "" in self.rewrites or any(not piece for piece, _ in self.pieces):
            raise ModelError("tokenizer.json is broken: nothing is neither rewritten nor a piece")
        if not all(math.isfinite(score) for _, score in self.pieces):
            raise ModelError("tokenizer.json is broken: the score of a piece must be a finite number")
        try:
            self.rust.encode("")
        except ModelError:
            raise
        except Exception as error:  # the Rust side raises bare Exception
            raise ModelError(f"the pieces make no tokenizer: {shown(str(error))}") from error

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each line; neighbours without a piece stand together as they are."""
        lines = [self.normalise(text.encode("utf-8", "replace").decode()) for text in texts]
        found = self.rust.encode_batch(lines)
        return [
            [line[start:end] for start, end in each.offsets] for line, each in zip(lines, found, strict=True)
        ]


class SentencePieces(Tokenizer):
    """Two piece models and the vocabularies of the network that reads and writes their pieces."""

    leads = True

    def __init__(
        self,
        models: tuple[PieceModel, PieceModel],
        vocabularies: tuple[Sequence[str], Sequence[str]],
        specials: Specials,
        unknown: tuple[int, int],
    ) -> None:
        self._models, self.specials, self._unknown = models, specials, unknown
        self._vocabularies = tuple(vocabularies[0]), tuple(vocabularies[1])
        silent = {*specials.never, specials.begin, specials.end, specials.pad, unknown[1]}
        self._spelled = [
            b"" if number in silent else _bytes(piece) for number, piece in enumerate(self._vocabularies[1])
        ]
        self._ids = tuple(
            {piece: number for number, piece in enumerate(side) if not self._special(number, which)}
            for which, side in enumerate(self._vocabularies)
        )

    def _special(self, number: int, which: int) -> bool:
        """Whether no text, whatever it says, may become this id."""
        return number in (*self.specials.never, self.specials.end, self.specials.begin, self._unknown[which])

    @property
    def vocab_size(self) -> int:
        """How many ids the source has."""
        return len(self._vocabularies[0])

    @property
    def target_vocab_size(self) -> int:
        """How many ids the target has."""
        return len(self._vocabularies[1])

    @property
    def pieces(self) -> tuple[str, ...]:
        """All tokens of the source by id."""
        return self._vocabularies[0]

    @property
    def target_pieces(self) -> tuple[str, ...]:
        """All tokens of the target by id."""
        return self._vocabularies[1]

    @property
    def unknown_id(self) -> int:
        """What stands for text that has no id."""
        return self._unknown[0]

    @property
    def models(self) -> tuple[PieceModel, PieceModel]:
        """The piece models of the source and of the target."""
        return self._models

    def token(self, number: int) -> str:
        """The source token with this id."""
        return self._vocabularies[0][number]

    def encode(self, text: str) -> list[int]:
        """The ids of one line of the source; no end."""
        return self._encode([text], 0)[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each."""
        return self._encode(texts, 0)

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of lines of the target language."""
        return self._encode(texts, 1)

    def _encode(self, texts: Sequence[str], which: int) -> list[list[int]]:
        model = self._models[which]
        # A model that can spell everything takes a code for text.
        apart = (lambda text: ([], text)) if model.byte_fallback else _language_code
        codes, rests = zip(*map(apart, texts), strict=True) if texts else ((), ())
        lookup = self._lookup(which)
        return [
            [number for piece in [*code, *pieces] for number in lookup(piece)]
            for code, pieces in zip(codes, model.cut(rests), strict=True)
        ]

    def _lookup(self, which: int) -> Any:
        """Piece -> ids: its own, its bytes' if the model spells what it does not know, or the unknown one."""
        ids, unknown = self._ids[which], self._unknown[which]
        known = (
            {piece for piece, _ in self._models[which].pieces} if self._models[which].byte_fallback else None
        )

        def lookup(piece: str) -> list[int]:
            if known is not None and piece not in known:
                return [ids.get(f"<0x{byte:02X}>", unknown) for byte in piece.encode()]
            return [ids.get(piece, unknown)]

        return lookup

    def decode(self, ids: Iterable[int]) -> str:
        """The text that target ids spell; specials and the unknown token are dropped."""
        text = self.spell(ids).decode("utf-8", "replace")
        return text.strip() if self._models[1].squeeze else text.removeprefix(" ")

    def spell(self, ids: Iterable[int]) -> bytes:
        """The bytes that target ids stand for; a token may be a part of a character."""
        return b"".join([self._spelled[number] for number in ids]).replace(SPACE_MARK.encode(), b" ")

    def to_json(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`."""
        source, target = self._models
        tree = {
            "kind": KIND,
            "specials": self.specials._asdict(),
            "unknown": self._unknown,
            "source": _tree(source),
            "target": None if target == source else _tree(target),
            "vocabulary": self._vocabularies[0],
            "target_vocabulary": None
            if self._vocabularies[0] == self._vocabularies[1]
            else self._vocabularies[1],
        }
        return json.dumps(tree, ensure_ascii=False)

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> "SentencePieces":
        """A tokenizer from what stands in such a file."""
        if tree["kind"] != KIND:
            raise ModelError(
                f"tokenizer.json is of kind {shown(tree['kind'])}, which this version does not know"
            )
        models = [_model(tree[side] or tree["source"]) for side in ("source", "target")]
        source = _strings(tree["vocabulary"])
        target = _strings(tree["target_vocabulary"] or source)
        given = tree["specials"]
        never = tuple(int(number) for number in given["never"])
        specials = Specials(int(given["pad"]), int(given["begin"]), int(given["end"]), never)
        unknown = int(tree["unknown"][0]), int(tree["unknown"][1])
        _check_ids(specials, unknown, len(source), len(target))
        return cls((models[0], models[1]), (source, target), specials, unknown)


def _check_ids(specials: Specials, unknown: tuple[int, int], source: int, target: int) -> None:
    """Every special id must be one of the vocabulary."""
    asked = (
        (specials.pad, specials.end, unknown[0]),
        (specials.begin, specials.end, unknown[1], *specials.never),
    )
    for numbers, size in zip(asked, (source, target), strict=True):
        wrong = [number for number in numbers if not 0 <= number < size]
        if wrong:
            raise ModelError(f"tokenizer.json names the id {wrong[0]}, but the vocabulary has {size}")


def _tree(model: PieceModel) -> dict[str, Any]:
    """Its fields as they are: copying hundreds of thousands of rewritings takes seconds."""
    return {each.name: getattr(model, each.name) for each in fields(model)}


def _model(tree: dict[str, Any]) -> PieceModel:
    pieces = [(str(piece), float(score)) for piece, score in tree["pieces"]]
    if tree["kind"] not in ("unigram", "bpe"):
        raise ModelError(
            f"tokenizer.json holds a piece model of kind {shown(tree['kind'])}; unigram and bpe are known"
        )
    rewrites = dict(
        zip(_strings(list(tree["rewrites"])), _strings(list(tree["rewrites"].values())), strict=True)
    )
    flags = {name: bool(tree[name]) for name in ("add_prefix", "squeeze", "byte_fallback")}
    model = PieceModel(tree["kind"], pieces, rewrites, **flags)
    model.check()
    return model


def _strings(values: Sequence[Any]) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ModelError("tokenizer.json is broken: a vocabulary must be a list of strings")
    check_strings(values, "piece")
    return values


def _nodes(pieces: Iterable[str]) -> int:
    """How large the tree of all beginnings of the pieces is: what cutting by likelihood is done with."""
    nodes, before = 0, ""
    for piece in sorted(pieces):
        shared = next((i for i, (a, b) in enumerate(zip(before, piece, strict=False)) if a != b), len(before))
        nodes += len(piece.encode()) - len(piece[:shared].encode())
        before = piece
    return nodes


def _bytes(piece: str) -> bytes:
    """The bytes that a piece stands for."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return bytes([int(piece[3:5], 16)])
        except ValueError:
            pass
    return piece.encode()


def _language_code(text: str) -> tuple[list[str], str]:
    """The code that multilingual models want in front, >>fra<<, and the rest."""
    end = text.find("<<") if text.startswith(">>") else -1
    return ([text[: end + 2]], text[end + 2 :]) if end >= 0 else ([], text)
