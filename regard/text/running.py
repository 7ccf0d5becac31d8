"""The third kind of tokenizer: running text, of which nothing is lost; for models that write on.

Every byte is a token, so any text has ids, and `decode` of `encode` is the text itself: line breaks, tabs and
runs of spaces too. To these come the common characters that take several bytes (`characters`), or pieces that
are merged by rank inside the words of GPT-2's cuts (`subwords`: byte-pair encoding over bytes, Radford et al.
2019, section 2.2), or nothing (`bytes`). Before this file: plain text; after it: the token store.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from regard.config.text import UNITS
from regard.errors import ModelError, UsageError
from regard.foreign import MOST_MERGES, check_strings
from regard.text.normalise import LINE_MARK, SPACE_MARK
from regard.text.tokenizer import END, Specials, Tokenizer
from regard.text.vocabulary import (
    COVERAGE,
    LONGEST_PIECE,
    RESERVED,
    SPECIALS,
    broken,
    fitting_size,
    interruptible,
    until,
)

KIND = "running"
CHUNK = 2**16  # characters that are cut and encoded together
MOST_CHARACTERS = 8192  # that get a token of their own

# A document closes with the end, and the next one begins after it: one token is both.
DOCUMENTS = Specials(begin=END, never=(0, 1, 3))


def _alphabet() -> tuple[str, ...]:
    """How byte-level vocabularies write each byte: as itself where it is printable, else from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return tuple(chr(byte if byte in shown else next(others)) for byte in range(256))


ALPHABET = _alphabet()
_BYTE_OF = {letter: byte for byte, letter in enumerate(ALPHABET)}
_FACES = str.maketrans({" ": SPACE_MARK, "\n": LINE_MARK, "\t": "\u21e5", "\r": "\u240d"})
# Words begin anew at a line break after something: text that is cut there is encoded as if it were whole.
SEAM = re.compile(r"(?<=\S)(?=\n)")


def written(raw: bytes) -> str:
    """Bytes as the pieces of a byte-level vocabulary write them."""
    return "".join(ALPHABET[byte] for byte in raw)


class RunningText(Tokenizer):
    """A vocabulary of bytes, and of what is made of them.

    >>> tokenizer = RunningText.learn(["to be,\\n\\tor not to be"], "characters")
    >>> tokenizer.decode(tokenizer.encode("be\\n\\n  not ≠"))
    'be\\n\\n  not ≠'
    """

    def __init__(
        self, pieces: Sequence[str], merges: Sequence[tuple[str, str]], specials: Specials = DOCUMENTS
    ) -> None:
        """`pieces` by id, written in `ALPHABET`; those that `specials` name stand for no text."""
        self.specials = specials
        self._pieces = tuple(pieces)
        self._merges = list(merges)
        silent = {*specials.never, specials.begin, specials.end, specials.pad}
        self._bytes = [b"" if number in silent else _raw(piece) for number, piece in enumerate(self._pieces)]
        ids = {piece: number for number, piece in enumerate(self._pieces) if number not in silent}
        missing = [letter for letter in ALPHABET if letter not in ids]
        if missing:
            raise ModelError(
                f"the vocabulary has no token for the byte {_BYTE_OF[missing[0]]:#04x}; it must have all 256"
            )
        self._letters = _Letters(ids)
        self._rust: Any = None
        if self._merges:
            self._rust = RustTokenizer(BPE(ids, self._merges))
            self._rust.pre_tokenizer = ByteLevel(add_prefix_space=False)

    @classmethod
    def learn(cls, texts: Iterable[str], units: str = "subwords", vocab_size: int = 0) -> "RunningText":
        """A tokenizer for texts like these; `vocab_size` counts specials and bytes too, 0: as many as fit."""
        if units not in UNITS:
            raise UsageError(f"text.units ({units}) must be one of {', '.join(UNITS)}")
        base = [*SPECIALS, *ALPHABET]
        if units == "bytes":
            return cls(base, [])
        if vocab_size and vocab_size < len(base):
            raise UsageError(
                f"text.vocab_size ({vocab_size}) must be at least {len(base)}: specials and bytes"
            )
        if units == "characters":
            room = vocab_size - len(base) if vocab_size else MOST_CHARACTERS
            return cls([*base, *_common(texts, room)], [])
        merges = _learned(texts, vocab_size)
        made = dict.fromkeys(left + right for left, right in merges)
        return cls([*base, *made], merges)

    @property
    def units(self) -> str:
        """What its tokens are: subwords, characters or bytes."""
        if self._merges:
            return "subwords"
        return "characters" if len(self._pieces) > len(RESERVED) else "bytes"

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs that are joined, first rank first."""
        return self._merges

    def encode(self, text: str) -> list[int]:
        """The ids of a text, whole as it is; half a surrogate pair, which is no text, becomes a "?"."""
        text = text.encode("utf-8", "replace").decode()
        if self._rust is None:
            letters = self._letters
            return [number for letter in text for number in letters[letter]]
        if len(text) <= CHUNK:
            ids: list[int] = self._rust.encode(text).ids
            return ids
        found = self._rust.encode_batch_fast(list(_chunks(text)))
        return [number for each in found for number in each.ids]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each."""
        return [self.encode(text) for text in texts]

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word of a sentence; the space before a word is its own."""
        return self.encode_batch([f" {word}" if place else word for place, word in enumerate(words)])

    def spell(self, ids: Iterable[int]) -> bytes:
        """The bytes that ids stand for; a token may be a part of a character."""
        return b"".join([self._bytes[number] for number in ids])

    def decode(self, ids: Iterable[int]) -> str:
        """The text that ids spell: the inverse of `encode`. Bytes that are no UTF-8 become U+FFFD."""
        return self.spell(ids).decode("utf-8", "replace")

    def shown(self, ids: Iterable[int], *, target: bool = False) -> list[str]:
        """Pieces as the text that they are; `<0xE2>` for a byte that is a part of a character."""
        return [_face(self._bytes[number]) or self._pieces[number] for number in ids]

    def begins(self, ids: Sequence[int]) -> list[bool]:
        """Whether each of these ids begins a word; a space belongs to the word after it."""
        found, inside = [], False  # of a word
        for number in ids:
            raw = self._bytes[number]
            found.append(not (inside and _lettered(raw[:1])))
            inside = _lettered(raw[-1:]) or raw == b" "
        return found

    def to_json(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`."""
        tree = {
            "kind": KIND,
            "specials": self.specials._asdict(),
            "pieces": self._pieces,
            "merges": self._merges,
        }
        return json.dumps(tree, ensure_ascii=False)

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> "RunningText":
        """A tokenizer from what stands in such a file."""
        given, pieces = tree["specials"], tree["pieces"]
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise ModelError("tokenizer.json is broken: its pieces must be a list of strings")
        check_strings(pieces, "piece")
        if len(tree["merges"]) > MOST_MERGES:
            raise ModelError(f"tokenizer.json has {len(tree['merges']):,} merges; {MOST_MERGES:,} are read")
        never = tuple(int(number) for number in given["never"])
        specials = Specials(int(given["pad"]), int(given["begin"]), int(given["end"]), never)
        wrong = [number for number in (*specials[:3], *never) if not 0 <= number < len(pieces)]
        if wrong:
            raise ModelError(f"tokenizer.json names the id {wrong[0]}, but the vocabulary has {len(pieces)}")
        return cls(pieces, [(str(left), str(right)) for left, right in tree["merges"]], specials)


class _Letters(dict[str, list[int]]):
    """A character's ids: its own token, or those of its bytes; found when it is first met."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__()
        self._ids = ids

    def __missing__(self, letter: str) -> list[int]:
        raw = letter.encode()
        own = self._ids.get(written(raw))
        found = [own] if own is not None else [self._ids[ALPHABET[byte]] for byte in raw]
        self[letter] = found
        return found


def _face(raw: bytes) -> str:
    """Bytes as a person is shown them.

    >>> _face(b" be\\n"), _face(b"\\xe2\\x80")
    ('\u2581be\u21b5', '<0xE2><0x80>')
    """
    try:
        return raw.decode().translate(_FACES)
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in raw)


def _lettered(byte: bytes) -> bool:
    """Whether a byte is a part of a word: a letter, a digit, or a part of a character beyond ASCII."""
    return byte.isalnum() or byte > b"\x7f"


def _raw(piece: str) -> bytes:
    """The bytes of a piece; one that is not written in the alphabet stands for itself."""
    try:
        return bytes(_BYTE_OF[letter] for letter in piece)
    except KeyError:
        return piece.encode()


def _common(texts: Iterable[str], room: int) -> list[str]:
    """The characters of several bytes that nearly all of the text is written with, most common first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    wide = sorted((-count, letter) for letter, count in counts.items() if letter > "\x7f")
    left = -sum(count for count, _ in wide)  # characters that are still spelled in bytes
    kept: dict[str, None] = {}
    for count, letter in wide[:room]:
        if left <= (1 - COVERAGE) * counts.total():
            break
        kept[written(letter.encode("utf-8", "replace"))] = None
        left += count
    return list(kept)


def _learned(texts: Iterable[str], vocab_size: int) -> list[tuple[str, str]]:
    """The pairs that byte-pair encoding joins, most frequent first."""
    learner = RustTokenizer(BPE())
    learner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    size, seen = vocab_size, 0

    def chunks() -> Iterator[str]:
        nonlocal seen
        for text in texts:
            for chunk in _chunks(text.encode("utf-8", "replace").decode()):
                seen += len(chunk)
                yield from broken(chunk)

    # How much text there is is known at the end: as many pieces are learned as any text gets, then cut.
    trainer = BpeTrainer(
        vocab_size=(size or fitting_size(10**12)) - len(SPECIALS),
        min_frequency=2,
        max_token_length=LONGEST_PIECE,
        initial_alphabet=list(ALPHABET),
        show_progress=False,
    )
    interruptible(lambda stop: learner.train_from_iterator(until(chunks(), stop), trainer))
    merges = json.loads(learner.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges][: (size or fitting_size(seen)) - len(RESERVED)]


def _chunks(text: str) -> Iterator[str]:
    """The text in parts of some length, cut where words begin anew; without such a place it stays whole."""
    start = 0
    while len(text) - start > CHUNK:
        seam = SEAM.search(text, start + CHUNK)
        if seam is None:
            break
        yield text[start : seam.start()]
        start = seam.start()
    yield text[start:]
