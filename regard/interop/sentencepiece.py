"""SentencePiece model files, source.spm and target.spm: read without the package, and written.

The file is a protocol buffer: pieces with scores and types, how the text is rewritten before it is cut, and
how the pieces were learned. The rewriting is a double-array trie (Aoe 1989) from UTF-8 bytes to strings.
"""

import struct
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.errors import ModelError, shown
from regard.foreign import LONGEST_TOKEN, read_bytes
from regard.interop.parts import need
from regard.text.normalise import SPACE_MARK
from regard.text.pieces import PieceModel
from regard.text.tokenizer import BEGIN, END, MASK, PAD, Tokenizer
from regard.text.vocabulary import RESERVED, SPECIALS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
LONGEST_KEY = 256  # bytes; what is rewritten is a few characters long
MOST_NODES = 1_000_000  # of a trie; ends may be shared, so that a small damaged one could be walked for ever
MOST_KEYS = 2**24  # bytes that lead to all of them
MOST_FIELDS = 600_000  # of a message; the pieces are fields
MOST_FILE = 2**26  # bytes of a model; those of 256,000 pieces have five million

_ROWS = 4096  # nodes looked at together

Fields = dict[int, list[int | bytes]]

# Protocol buffers --------------------------------------------------------------------------------


def parse(data: bytes) -> Fields:
    """The fields of a message: numbers, or bytes that may be a message themselves."""
    fields: Fields = {}
    place = count = 0
    while place < len(data):
        count += 1
        if count > MOST_FIELDS:
            raise ValueError(f"it has more than {MOST_FIELDS:,} parts")
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _varint(data, place)
            fields.setdefault(number, []).append(value)
            continue
        if kind == 2:
            size, place = _varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + size > len(data):
            raise ValueError("it ends too early")
        fields.setdefault(number, []).append(data[place : place + size])
        place += size
    return fields


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("it ends too early")
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def field(number: int, value: int | bytes | float) -> bytes:
    """One field of a message."""
    if isinstance(value, float):
        return _number(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, bytes):
        return _number(number << 3 | 2) + _number(len(value)) + value
    return _number(number << 3) + _number(value)


def _number(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _flag(fields: Fields, number: int, default: int) -> int:
    value = fields.get(number, [default])[-1]
    return value if isinstance(value, int) else default


def _message(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


# Reading -----------------------------------------------------------------------------------------


def read(path: Path) -> PieceModel:
    """The model in a .spm file."""
    try:
        data = read_bytes(path, MOST_FILE)
        model = _model(parse(data), path)
    except (ValueError, IndexError, struct.error) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is no SentencePiece model: {shown(str(error))}; copy it again") from error
    try:
        model.check()
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    return model


def names(path: Path) -> list[str]:
    """All pieces of a .spm file that `read` takes, specials and bytes too, in the order of their ids."""
    entries = (parse(entry) for entry in parse(read_bytes(path, MOST_FILE))[1] if isinstance(entry, bytes))
    return [_message(entry, 1).decode() for entry in entries]


def _model(proto: Fields, path: Path) -> PieceModel:
    trainer, rules = parse(_message(proto, 2)), parse(_message(proto, 3))
    kinds = {UNIGRAM: "unigram", BPE: "bpe"}
    kind = _flag(trainer, 3, UNIGRAM)
    if kind not in kinds:
        raise ModelError(f"{path} is a SentencePiece model of kind {kind}; unigram (1) and BPE (2) are known")
    pieces: list[tuple[str, float]] = []
    for entry in proto.get(1, []):
        part = parse(entry) if isinstance(entry, bytes) else {}
        piece, score = _message(part, 1).decode(), struct.unpack("<f", _message(part, 2) or bytes(4))[0]
        if _flag(part, 3, NORMAL) == USER_DEFINED:
            raise ModelError(f"{path} has the user-defined symbol {shown(piece)}; those are not supported")
        if _flag(part, 3, NORMAL) == NORMAL:
            pieces.append((piece, score))
    if not pieces:
        raise ModelError(f"{path} holds no pieces; it is no SentencePiece model, or it was cut short")
    if _flag(trainer, 24, 0) or not _flag(rules, 5, 1):
        raise ModelError(f"{path} treats spaces in a way that is not supported (as suffix, or not escaped)")
    return PieceModel(
        kinds[kind],
        pieces,
        read_charsmap(_message(rules, 2)),
        add_prefix=bool(_flag(rules, 3, 1)),
        squeeze=bool(_flag(rules, 4, 1)),
        byte_fallback=bool(_flag(trainer, 35, 0)),
    )


@lru_cache(maxsize=4)  # source and target mostly have the same
def read_charsmap(data: bytes) -> dict[str, str]:
    """What is rewritten to what, from the compiled form: size, trie, strings with zeros between them."""
    if not data:
        return {}
    (size,) = struct.unpack_from("<I", data)
    if size % 4 or 4 + size > len(data):
        raise ValueError(f"its rewriting table says {size} bytes and has {len(data) - 4}")
    units = np.frombuffer(data, "<u4", size // 4, 4)
    strings = data[4 + size :]
    found = {}
    for key, place in _walk(units):
        end = strings.find(b"\0", place, place + 4 * LONGEST_TOKEN)
        if end < 0:
            raise ValueError("its rewriting table points outside of itself, or to a very long string")
        found[key.decode()] = strings[place:end].decode()
    return found


def _walk(units: npt.NDArray[np.uint32]) -> Iterator[tuple[bytes, int]]:
    """Every key of a double-array trie with its value, a level of the trie at a time."""
    wide = units.astype(np.int64)
    shift = (wide >> 9 & 1) * 8
    base_of = np.arange(len(wide)) ^ (wide >> 10 << shift)  # where the children of each unit lie
    prefixes, bases, seen, spelled = [b""], base_of[:1], 0, 0
    for length in range(1, LONGEST_KEY + 1):
        places, keys = _children(wide, prefixes, bases)
        seen += len(places)
        spelled += len(places) * length
        bases = base_of[places]
        if seen > MOST_NODES or spelled > MOST_KEYS or (len(bases) and bases.max() >= len(wide)):
            raise ValueError("its rewriting table is damaged")
        leaves = np.flatnonzero(wide[places] >> 8 & 1)
        for leaf, value in zip(leaves.tolist(), (wide[bases[leaves]] & 0x7FFFFFFF).tolist(), strict=True):
            yield keys[leaf], value
        prefixes = keys
        if not prefixes:
            return
    raise ValueError("its rewriting table has no end")


def _children(
    units: npt.NDArray[np.int64], prefixes: list[bytes], bases: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """The units one byte further on, and the keys that lead to them."""
    labels = np.arange(1, 256)
    found, keys = [np.empty(0, np.int64)], []
    for start in range(0, len(bases), _ROWS):
        places = bases[start : start + _ROWS, None] ^ labels  # (rows, 255)
        inside = np.minimum(places, len(units) - 1)
        rows, columns = np.nonzero((places < len(units)) & ((units[inside] & 0x800000FF) == labels))
        found.append(places[rows, columns])
        keys += [
            prefixes[start + row] + bytes([column + 1])
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        ]
    return np.concatenate(found), keys


# Writing -----------------------------------------------------------------------------------------


def write(tokenizer: Tokenizer, side: int) -> bytes:
    """The model that cuts the source (0) or the target (1): the same pieces, taken in the same order."""
    if tokenizer.models:
        return _imported(tokenizer.models[side])
    kinds = {PAD: CONTROL, BEGIN: CONTROL, END: CONTROL, MASK: UNKNOWN}
    entries = [
        (
            piece,
            float(min(0, len(RESERVED) - number)),
            kinds.get(number, BYTE if number < len(RESERVED) else NORMAL),
        )
        for number, piece in enumerate(tokenizer.pieces)
    ]
    ids = field(40, MASK) + field(41, BEGIN) + field(42, END) + field(43, PAD)
    names = zip((48, 46, 47, 45), SPECIALS, strict=True)
    ids += b"".join(field(number, name.encode()) for number, name in names)
    return _file(entries, PieceModel("bpe", [], nfc_rewrites(), byte_fallback=True), ids)


def _imported(model: PieceModel) -> bytes:
    """A model that came from such a file, with the specials that every such file has."""
    entries = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    if model.byte_fallback:
        entries += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    entries += [(piece, score, NORMAL) for piece, score in model.pieces]
    return _file(entries, model, field(40, 0) + field(41, 1) + field(42, 2))


def _file(entries: list[tuple[str, float, int]], model: PieceModel, ids: bytes) -> bytes:
    pieces = b"".join(
        field(1, field(1, piece.encode()) + field(2, score) + field(3, kind))
        for piece, score, kind in entries
    )
    kind = BPE if model.kind == "bpe" else UNIGRAM
    trainer = field(3, kind) + field(4, len(entries)) + field(35, int(model.byte_fallback)) + ids
    rules = field(2, _charsmap(model.rewrites)) if model.rewrites else b""
    rules += field(3, int(model.add_prefix)) + field(4, int(model.squeeze)) + field(5, 1)
    return pieces + field(2, trainer) + field(3, rules)


def _charsmap(rewrites: Mapping[str, str]) -> bytes:
    """The rewriting, compiled by the package itself."""
    trainer = need("sentencepiece").SentencePieceTrainer
    with tempfile.TemporaryDirectory() as place:
        rules = Path(place) / "rules.tsv"
        rules.write_text("".join(f"{_points(key)}\t{_points(value)}\n" for key, value in rewrites.items()))
        trainer.train(
            sentence_iterator=iter(["a b"]),
            model_prefix=str(Path(place) / "rules"),
            model_type="char",
            vocab_size=6,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=3,
        )
        proto = parse((Path(place) / "rules.model").read_bytes())
    return _message(parse(_message(proto, 3)), 2)


def _points(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def nfc_rewrites() -> dict[str, str]:
    """What `regard.text.normalise` changes, other than at the ends of a line.

    For every character that can be composed, its parts in canonical order and half-composed; marks in an
    order that Unicode does not have are not among them.
    """
    rewrites = {"\t": " ", SPACE_MARK: "_"}
    for number in range(0x110000):
        whole = chr(number)
        parts = unicodedata.normalize("NFD", whole) if not 0xD800 <= number < 0xE000 else whole
        if parts == whole:
            continue
        composed = unicodedata.normalize("NFC", whole)
        spellings = {
            whole,
            parts,
            *(unicodedata.normalize("NFC", parts[:cut]) + parts[cut:] for cut in range(2, len(parts))),
        }
        rewrites |= {each: composed for each in spellings if each != composed}
    return rewrites
