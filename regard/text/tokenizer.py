"""Text to ids and back: a joint byte-pair vocabulary that can spell anything (Sennrich et al. 2016).

A line is normalised, its spaces become U+2581, and pairs of symbols are merged by rank; a character
that has no token of its own is spelled in UTF-8 bytes, so there is no unknown token. Merging is what
sentencepiece's BPE does with the same vocabulary: the cuts of `_CUTS` bind only while it is learned,
for no piece learned under them can cross them later. Before this file: `normalise`; after it: the
token store of `regard.data`.
"""

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tokenizers import Regex
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Metaspace, Split
from tokenizers.pre_tokenizers import Sequence as InTurn

from regard.errors import ModelError, shown
from regard.foreign import MOST_MERGED, MOST_MERGES, check_strings, loads
from regard.text.normalise import SPACE_MARK, normalise
from regard.text.vocabulary import RESERVED, SPECIALS, TAG, Vocabulary, learn

PAD, BEGIN, END, MASK = range(len(SPECIALS))
REMEMBERED = 2**21  # characters of words whose ids are kept
FEW = 16  # words; to encode more of them side by side is worth waking threads

# A word with the space before it; a digit alone; any other character alone, with the space before it.
# The joiners U+200C and U+200D belong to the words of Persian and of India.
_LETTER = r"\p{L}\p{M}\x{200C}\x{200D}"
_CUTS = Regex(rf"{SPACE_MARK}?[{_LETTER}]+|{SPACE_MARK}?[^{_LETTER}\p{{N}}{SPACE_MARK}]|\p{{N}}|{SPACE_MARK}")

# Words are encoded on all cores. In a forked child the threads of the library are gone and waiting
# for them would be for ever, so children encode on one core.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=lambda: os.environ.update(TOKENIZERS_PARALLELISM="false"))


class Specials(NamedTuple):
    """The ids that stand for no text. The defaults are those of our own tokenizers."""

    pad: int = PAD
    begin: int = BEGIN  # what a decoder reads first
    end: int = END
    never: tuple[int, ...] = (PAD, BEGIN, MASK)  # what is never written

    @property
    def mask(self) -> int:
        """What stands where a token is not known yet; the last of what is never written."""
        return self.never[-1]

    @property
    def blank(self) -> int:
        """What a place says that says nothing (CTC)."""
        return self.pad


OUR_SPECIALS = Specials()


def cuts() -> InTurn:
    """What stands between the words of a line: no token reaches over one of these cuts."""
    return InTurn([Metaspace(SPACE_MARK, prepend_scheme="always"), Split(_CUTS, "isolated")])


class Tokenizer:
    """A vocabulary and its two directions.

    >>> tokenizer = Tokenizer.train(["the cat", "the dog"] * 9, vocab_size=0)
    >>> tokenizer.decode(tokenizer.encode("the cat  </s> ≠ 狗"))
    'the cat </s> ≠ 狗'
    """

    specials, mask_id = OUR_SPECIALS, MASK
    leads = False  # whether a text that is written on begins with the begin token
    tags: Mapping[str, int] = {}  # tokens that stand before a source and spell nothing
    _before: tuple[int, ...] = ()  # what every text begins with: see `tagged`

    def __init__(self, vocabulary: Vocabulary) -> None:
        ids = {piece: number for number, piece in enumerate(vocabulary.pieces)}
        model = BPE(ids, vocabulary.merges, byte_fallback=True)
        self._rust = RustTokenizer(model)
        # No added tokens: the text "</s>" stays four characters, whoever writes it.
        self._rust.pre_tokenizer = cuts()
        self._words: dict[str, list[int]] = {}
        self._remembered = 0
        self._tagged: dict[str, Tokenizer] = {}
        self._pieces = vocabulary.pieces
        self._bytes = [_spelling(number, piece) for number, piece in enumerate(vocabulary.pieces)]
        signs = ((piece, number) for piece, number in ids.items() if piece.startswith((">>", "<b")))
        self.tags = {piece: number for piece, number in signs if TAG.fullmatch(piece)}
        if self.tags:
            for number in self.tags.values():
                self._bytes[number] = b""
            self.specials = Specials(never=(PAD, BEGIN, *self.tags.values(), MASK))

    @classmethod
    def train(cls, lines: Iterable[str], vocab_size: int, tags: Sequence[str] = ()) -> "Tokenizer":
        """A tokenizer learned from `lines`, read once and never held in memory together.

        `vocab_size` counts everything, the specials, the bytes and the `tags` too; 0 means chosen by the
        amount of text (`regard.text.vocabulary.fitting_size`). The same lines give the same tokenizer.
        """
        return cls(learn(map(normalise, lines), vocab_size, cuts(), tags))

    def tagged(self, tag: str) -> "Tokenizer":
        """The same, where a tag stands before every text that is encoded, but an empty one; "": none does."""
        if tag not in self._tagged:
            other = copy.copy(self)
            other._before = (self.tags[tag],) if tag else ()
            other._words, other._remembered = {}, 0
            self._tagged[tag] = other
        return self._tagged[tag]

    @property
    def models(self) -> tuple[Any, ...]:
        """The SentencePiece models of source and target, where it is made of such."""
        return ()

    @property
    def pad_id(self) -> int:
        """What fills up a batch."""
        return self.specials.pad

    @property
    def begin_id(self) -> int:
        """What a decoder reads first."""
        return self.specials.begin

    @property
    def end_id(self) -> int:
        """What closes a line."""
        return self.specials.end

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""
        return len(self._pieces)

    @property
    def target_vocab_size(self) -> int:
        """How many ids the target has; only imported tokenizers have another number for it."""
        return self.vocab_size

    def encode(self, text: str) -> list[int]:
        """The ids of one line, normalised first; no begin, no end."""
        ids = self._rust.encode(normalise(text)).ids
        return [*self._before, *ids] if ids else ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each, much faster: no token crosses a space, so a word need be encoded only once."""
        lines = [normalise(text).split(" ") for text in texts]
        known = self._known(set().union(*lines))
        found = [[number for word in words for number in known[word]] for words in lines]
        return [[*self._before, *ids] if ids else ids for ids in found] if self._before else found

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word of a sentence, as the whole sentence has them."""
        return self.encode_batch(list(words))

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of lines of the target language; one vocabulary serves both."""
        return (self.tagged("") if self._before else self).encode_batch(texts)

    def _known(self, words: set[str]) -> dict[str, list[int]]:
        """The memory of words and their ids, with all of `words` in it.

        A full memory is replaced, not emptied, so that another thread may go on reading it.
        """
        if self._remembered > REMEMBERED:
            self._words, self._remembered = {}, 0
        memory = self._words
        new = list(words.difference(memory))
        many = len(new) > FEW
        encodings = self._rust.encode_batch_fast(new) if many else map(self._rust.encode, new)
        for word, encoding in zip(new, encodings, strict=True):
            memory[word] = encoding.ids
        self._remembered += sum(map(len, new))
        return memory

    def decode(self, ids: Iterable[int]) -> str:
        """The text that `ids` spell: the inverse of `encode`.

        Specials are dropped, bytes that are no UTF-8 become U+FFFD, and nothing is refused but an id
        outside the vocabulary (IndexError).
        """
        table = self._bytes
        text = b"".join([table[number] for number in ids]).decode("utf-8", "replace")
        return text.replace(SPACE_MARK, " ").removeprefix(" ")

    def spell(self, ids: Iterable[int]) -> bytes:
        """The bytes that ids stand for, one after the other; a token may be a part of a character."""
        return b"".join([self._bytes[number] for number in ids]).replace(SPACE_MARK.encode(), b" ")

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """`decode` of each."""
        return [self.decode(ids) for ids in batch]

    @property
    def pieces(self) -> tuple[str, ...]:
        """All tokens by id."""
        return self._pieces

    @property
    def target_pieces(self) -> tuple[str, ...]:
        """All tokens of the target by id."""
        return self.pieces

    @property
    def unknown_id(self) -> int:
        """What stands for a piece that is unknown to others; our own lines never need it."""
        return MASK

    def begins(self, ids: Sequence[int]) -> list[bool]:
        """Whether each of these ids, as a line has them, begins a word; a sign is a word."""
        found, inside = [], False  # of a word
        for number in ids:
            piece = self._pieces[number]
            byte = len(SPECIALS) <= number < len(RESERVED)
            letters = byte or piece[:1].isalnum()
            found.append(not (inside and letters))
            inside = byte or piece[-1:].isalnum() or piece == SPACE_MARK  # the space before a word is its own
        return found

    def shown(self, ids: Iterable[int], *, target: bool = False) -> list[str]:
        """Pieces as a person is shown them; an imported model may have others for its target."""
        pieces = self.target_pieces if target else self.pieces
        return [pieces[number] for number in ids]

    def token(self, number: int) -> str:
        """The piece with this id as it stands in the vocabulary: `▁cat`, `<0x0A>`, `</s>`."""
        return self._pieces[number]

    def to_json(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`, the same for equal tokenizers."""
        return self._rust.to_str(pretty=False)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """A tokenizer from what `to_json` gave."""
        try:
            tree = loads(text)
            if tree.get("kind") == "running":
                from regard.text.running import RunningText

                return RunningText.from_tree(tree)
            if tree.get("kind") == "wordpiece":
                from regard.text.wordpiece import WordPieces

                return WordPieces.from_tree(tree)
            if tree.get("kind"):
                from regard.text.pieces import SentencePieces

                return SentencePieces.from_tree(tree)
            return cls(_read(tree["model"]))
        except ModelError:
            raise
        except Exception as error:  # the Rust side raises bare Exception
            reason = f"{type(error).__name__}: {shown(str(error))}"
            raise ModelError(f"tokenizer.json is broken ({reason}); take the model folder anew") from error


def _spelling(number: int, piece: str) -> bytes:
    """The bytes that an id stands for."""
    if number < len(SPECIALS):
        return b""
    if number < len(RESERVED):
        return bytes([number - len(SPECIALS)])
    return piece.encode()


def _read(model: dict[str, Any]) -> Vocabulary:
    """The vocabulary inside a tokenizer.json, if it is laid out as ours."""
    ids: dict[str, int] = model["vocab"]
    pieces = sorted(ids, key=ids.__getitem__)
    if [ids[piece] for piece in pieces] != list(range(len(ids))):
        raise ModelError("tokenizer.json is broken: its ids are not 0, 1, 2, ...; take the model folder anew")
    if model["type"] != "BPE" or tuple(pieces[: len(RESERVED)]) != RESERVED:
        raise ModelError(
            f"tokenizer.json is not one of ours: its first {len(RESERVED)} ids must be "
            f"{', '.join(SPECIALS)} and the bytes; use the one that was trained with the model"
        )
    merges = [(left, right) for left, right in model["merges"]]
    check_strings(pieces, "piece")
    if len(merges) > MOST_MERGES or sum(len(left) + len(right) for left, right in merges) > MOST_MERGED:
        raise ModelError(f"tokenizer.json has {len(merges):,} merges, which is more or longer than is read")
    return Vocabulary(tuple(pieces), merges)
