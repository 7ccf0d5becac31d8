"""The fourth kind of tokenizer: WordPiece, as BERT and what was made of it have it (Wu et al. 2016).

A line is cleaned, perhaps lower-cased, cut at spaces and punctuation, and each word into the longest pieces
of the vocabulary from its left; a piece that goes on with a word begins with ##. A word that cannot be cut so
becomes the unknown token. Read by `regard.interop.bert`; kept in a tokenizer.json that needs nothing else.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from regard.errors import ModelError, shown
from regard.foreign import check_strings
from regard.text.normalise import SPACE_MARK
from regard.text.tokenizer import Specials, Tokenizer

KIND = "wordpiece"
MORE = "##"  # before a piece that goes on with a word
_NAMES = ("pad", "unknown", "begin", "end", "mask")


@dataclass(frozen=True)
class Cleaning:
    """What is done to a line before it is cut."""

    lowercase: bool = True
    strip_accents: bool | None = None  # None: where it is lower-cased
    clean: bool = True  # control characters go, every blank is a space
    chinese: bool = True  # each Chinese character is a word


@dataclass(frozen=True)
class Marks:
    """The ids that stand for no text."""

    pad: int
    unknown: int
    begin: int  # [CLS]
    end: int  # [SEP]
    mask: int


class WordPieces(Tokenizer):
    """A vocabulary of pieces, and how a line is made ready for it.

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
    >>> tokenizer = WordPieces(pieces, Marks(0, 1, 2, 3, 4))
    >>> tokenizer.encode("The cats!"), tokenizer.decode([5, 6, 7])
    ([5, 6, 7, 1], 'the cats')
    """

    def __init__(self, pieces: Sequence[str], marks: Marks, cleaning: Cleaning | None = None) -> None:
        check_strings(pieces, "piece")
        if len(set(pieces)) != len(pieces):
            raise ModelError("tokenizer.json is broken: a piece stands in it twice")
        wrong = [number for number in asdict(marks).values() if not 0 <= number < len(pieces)]
        if wrong:
            raise ModelError(f"tokenizer.json names the id {wrong[0]}, but the vocabulary has {len(pieces)}")
        self._pieces, self.marks, self.cleaning = tuple(pieces), marks, cleaning or Cleaning()
        self.mask_id = marks.mask
        never = (marks.pad, marks.unknown, marks.begin, marks.end, marks.mask)
        self.specials = Specials(marks.pad, marks.begin, marks.end, never)
        ids = {piece: number for number, piece in enumerate(pieces)}
        unknown = pieces[marks.unknown]
        # No added tokens: "[SEP]" in a text is three words, whoever writes it.
        self._rust = RustTokenizer(
            WordPiece(ids, unk_token=unknown, max_input_chars_per_word=100, continuing_subword_prefix=MORE)
        )
        how = self.cleaning
        self._rust.normalizer = BertNormalizer(how.clean, how.chinese, how.strip_accents, how.lowercase)
        self._rust.pre_tokenizer = BertPreTokenizer()

    def encode(self, text: str) -> list[int]:
        """The ids of one line; no begin, no end."""
        ids: list[int] = self._rust.encode(_plain(text)).ids
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each, side by side."""
        return [each.ids for each in self._rust.encode_batch_fast([_plain(text) for text in texts])]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that ids spell, spaces between words; what was cleaned away does not come back."""
        return self.spell(ids).decode().removeprefix(" ")

    def spell(self, ids: Iterable[int]) -> bytes:
        """The bytes that ids stand for, with a space before every word."""
        silent = self.specials.never
        pieces = (self._pieces[number] for number in ids if number not in silent)
        return "".join(each[len(MORE) :] if each.startswith(MORE) else f" {each}" for each in pieces).encode()

    def begins(self, ids: Sequence[int]) -> list[bool]:
        """Whether each of them begins a word."""
        return [not self._pieces[number].startswith(MORE) for number in ids]

    def shown(self, ids: Iterable[int], *, target: bool = False) -> list[str]:
        """The pieces as people see them: a mark before each one that begins a word."""
        silent = self.specials.never
        pieces = [(number, self._pieces[number]) for number in ids]
        return [
            piece
            if number in silent
            else piece[len(MORE) :]
            if piece.startswith(MORE)
            else SPACE_MARK + piece
            for number, piece in pieces
        ]

    @property
    def unknown_id(self) -> int:
        """What stands for a word that cannot be spelled."""
        return self.marks.unknown

    def to_json(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`."""
        tree = {
            "kind": KIND,
            "marks": asdict(self.marks),
            "cleaning": asdict(self.cleaning),
            "pieces": self._pieces,
        }
        return json.dumps(tree, ensure_ascii=False)

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> "WordPieces":
        """A tokenizer from what stands in such a file."""
        marks = Marks(**{name: int(tree["marks"][name]) for name in _NAMES})
        given = dict(tree["cleaning"])
        if any(value not in (True, False, None) for value in given.values()):
            raise ModelError(f"tokenizer.json is broken: a line is cleaned or not, it says {shown(given)}")
        return cls(list(tree["pieces"]), marks, Cleaning(**given))


def _plain(text: str) -> str:
    """Half a surrogate pair, which is no text, becomes a "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
