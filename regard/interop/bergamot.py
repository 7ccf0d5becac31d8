"""Firefox's translators (Bergamot: Bogoychev et al. 2020) become model folders of ours.

A folder holds `model.enpt.intgemm.alphas.bin`, Marian's binary format; `vocab.enpt.spm`, or `srcvocab` and
`trgvocab`; and mostly `lex.50.50.enpt.s2t.bin`, a lexical shortlist. Each may be gzipped. The binary:

    the number 1, how many tensors; of each the length of its name, its type, its dimensions, its bytes; all
    names; all shapes; padding; all tensors.  Numbers have 8 bytes, those of shapes 4.

A matrix of bytes lies transposed, and behind it stands the number that its weights were multiplied with.
The tensors become ours here; the vocabulary is read by `sentencepiece.py`, the shortlist by `regard.engine`.
"""

import gzip
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.config import Config
from regard.engine.shortlist import Shortlist
from regard.errors import ModelError, shown
from regard.foreign import read_bytes, toml_value
from regard.interop import sentencepiece
from regard.interop.tensors import Taking, settle
from regard.models.folder import Loaded
from regard.text.pieces import SentencePieces
from regard.text.tokenizer import Specials, Tokenizer

WHAT = "Marian"
VERSION = struct.pack("<Q", 1)
MOST_FILE = 2**31  # bytes of a model; those of Firefox have 17 to 60 million
MOST_TENSORS = 10_000
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
SETTINGS = "special:model.yml"
LEXICON = 0xF11A48D5013417F5
_HEADER, _COUNTS = struct.Struct("<4Q"), struct.Struct("<6Q")
_LANGUAGES = re.compile(r"model\.([a-z]{2,3})([a-z]{2,3})\.")
_EPS = 1e-6  # of every norm there


def marian_at(path: Path) -> Path | None:
    """The Marian model in a folder, or the file itself: by its first bytes. None: there is none."""
    if path.is_file():
        return path if is_marian(path) else None
    if (path / "config.json").exists():
        return None
    names = (*path.glob("model*.bin"), *path.glob("model*.bin.gz"))
    return next((each for each in sorted(names) if is_marian(each)), None)


def is_marian(path: Path) -> bool:
    """Whether a file begins as Marian's binary format does."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return bool(file.read(len(VERSION)) == VERSION)
    except (OSError, EOFError, zlib.error):
        return False


def read(path: Path) -> Loaded:
    """The model in a file of Marian's, with the vocabulary and the shortlist beside it."""
    tensors, settings = read_items(path)
    config = _config(settings, path)
    taking = Taking(tensors, path)
    for name in [name for name in tensors if name.endswith("_QuantMultA")]:
        taking.drop(name)  # how activations were rounded; ours are by what they are
    tokenizer = _tokenizer(path, config)
    model = taking.model(config, _tensors(taking, config), WHAT)
    return Loaded(config, model, tokenizer)


# The binary format ---------------------------------------------------------------------------------


class _Item(NamedTuple):
    name: str
    kind: int
    shape: tuple[int, ...]
    data: bytes


def read_items(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file by name, in fp32 and as they multiply from the left (in, out); its settings."""
    tensors: dict[str, Tensor] = {}
    settings: dict[str, Any] = {}
    try:
        for item in _items(_unpacked(path)):
            if item.name == SETTINGS:
                settings = _settings(item.data.rstrip(b"\0").decode())
            elif not item.name.endswith("_QuantMultA"):
                tensors[item.name] = _tensor(item, path)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{path} is no whole model of {WHAT} ({shown(str(error))}); copy it again"
        ) from error
    if not settings:
        raise ModelError(f"{path} does not hold its settings ({SETTINGS}); it cannot be read without them")
    return tensors, settings


def _unpacked(path: Path) -> bytes:
    if path.suffix != ".gz":
        return read_bytes(path, MOST_FILE)
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ModelError(f"{path} is no gzip file, or not all of it; copy it again") from error
    if len(data) > MOST_FILE:
        raise ModelError(f"{path} unpacks to more than {MOST_FILE:,} bytes; it is not what its name says")
    return data


def _items(data: bytes) -> Iterator[_Item]:
    version, count = struct.unpack_from("<2Q", data)
    if version != 1 or not 0 < count <= MOST_TENSORS:
        raise ValueError(f"version {version} with {count} tensors")
    place = 16 + count * _HEADER.size
    headers = list(_HEADER.iter_unpack(data[16:place]))
    names, shapes = [], []
    for length, *_ in headers:
        names.append(_cut(data, place, length).rstrip(b"\0").decode())
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack(f"<{dimensions}i", _cut(data, place, 4 * dimensions)))
        place += 4 * dimensions
    place += 8 + struct.unpack_from("<Q", data, place)[0]
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        yield _Item(name, kind, shape, _cut(data, place, size))
        place += size


def _cut(data: bytes, place: int, size: int) -> bytes:
    if size > len(data) or place + size > len(data):
        raise ValueError("it ends too early")
    return data[place : place + size]


def _tensor(item: _Item, path: Path) -> Tensor:
    """fp32 of either type; embeddings of bytes lie as they are."""
    count = int(np.prod(item.shape, dtype=np.int64))
    if count <= 0 or min(item.shape) < 1:
        raise ValueError(f"{item.name} has the shape {item.shape}")
    if item.kind == FLOAT32:
        return torch.from_numpy(np.frombuffer(item.data, "<f4", count).copy()).view(item.shape)
    if item.kind != INTGEMM8:
        raise ModelError(
            f"{path}: {shown(item.name)} is of type {item.kind:#x}; 32-bit floats and the bytes of intgemm8 "
            "are read"
        )
    numbers = torch.from_numpy(np.frombuffer(item.data, np.int8, count).astype(np.float32))
    (factor,) = struct.unpack_from("<f", item.data, count)
    if not factor > 0:
        raise ValueError(f"{item.name} was multiplied with {factor}")
    rows, columns = item.shape
    numbers /= factor
    if "Wemb" in item.name:
        return numbers.view(rows, columns)
    turned: Tensor = numbers.view(columns, rows).t()
    return turned


def _settings(text: str) -> dict[str, Any]:
    """The YAML that Marian writes: words with values, and lists beneath them.

    >>> _settings('enc-depth: 6\\ndim-vocabs:\\n  - 8\\n  - 9\\nskip: false')
    {'enc-depth': 6, 'dim-vocabs': [8, 9], 'skip': False}
    """
    found: dict[str, Any] = {}
    word = ""
    for line in text.splitlines():
        if line.startswith("  - ") and isinstance(found.get(word), list):
            found[word].append(toml_value(line[4:].strip()))
        elif ":" in line and not line.startswith((" ", "#")):
            word, _, value = line.partition(":")
            found[word] = toml_value(value.strip()) if value.strip() else []
    return found


# Settings ------------------------------------------------------------------------------------------

_TAKEN: dict[str, tuple[Any, ...]] = {  # what Marian's transformer has in many ways, and the one that is read
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("rnn", "self-attention"),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d",),
    "transformer-postprocess-top": ("",),
    "transformer-ffn-depth": (2,),
    "transformer-ffn-activation": ("relu", "swish"),
    "transformer-train-position-embeddings": (False,),
    "transformer-tied-layers": ([],),
    "ulr": (False,),
    "lemma-dim-emb": (0,),
}


def _config(theirs: dict[str, Any], path: Path) -> Config:
    """Our config of their settings."""
    for key, taken in _TAKEN.items():
        if theirs.get(key, taken[0]) not in taken:
            known = ", ".join(map(str, taken)) or "nothing"
            raise ModelError(f"{path} has {key}: {shown(theirs[key])}; regard import reads {known}")
    recurrent = theirs.get("transformer-decoder-autoreg") == "rnn"
    if recurrent and theirs.get("dec-cell") != "ssru":
        raise ModelError(f"{path} has dec-cell: {shown(theirs.get('dec-cell'))}; regard import reads ssru")
    sizes, width = theirs.get("dim-vocabs"), theirs.get("dim-emb", 0)
    if (
        not isinstance(sizes, list)
        or len(sizes) != 2
        or not all(type(each) is int for each in (*sizes, width))
    ):
        raise ModelError(f"{path} does not say dim-vocabs and dim-emb; it is no whole model of {WHAT}")
    one = bool(theirs.get("tied-embeddings-all"))
    if not one and not theirs.get("tied-embeddings"):
        raise ModelError(f"{path} has an output matrix of its own; regard import reads tied-embeddings")
    languages = _LANGUAGES.match(path.name)
    settings = {
        "model.kind": "ssru" if recurrent else "transformer",
        "model.norm": "post",
        "model.norm_eps": _EPS,
        "model.vocab_size": sizes[0] + 1,  # the last one is what a decoder begins with: zeros
        "model.target_vocab_size": 0 if one else sizes[1] + 1,
        "model.tied": "all" if one else "target",
        "model.d_model": width,
        "model.n_heads": theirs.get("transformer-heads"),
        "model.encoder_layers": theirs.get("enc-depth"),
        "model.decoder_layers": theirs.get("dec-depth"),
        "model.d_ff": theirs.get("transformer-dim-ffn"),
        "model.activation": theirs.get("transformer-ffn-activation", "swish"),
        "model.output_bias": not theirs.get("output-omit-bias", False),
        "positions.base": _base(width),
        "text.source": languages[1] if languages else "",
        "text.target": languages[2] if languages else "",
        "decode.beam": 1,
        "decode.length_penalty": 1.0,
    }
    return settle(settings, path, f"model of {WHAT}")


def _base(width: int) -> float:
    """Marian's slowest wave is 10000 times slower than its first; the paper's would be, were there one more.

    >>> round(_base(256), 2)
    10752.17
    """
    waves = max(2, width // 2)
    return float(10000.0 ** (waves / (waves - 1)))


# Weights -------------------------------------------------------------------------------------------

_HEADS = {"query": ("q",), "key_value": ("k", "v"), "out": ("o",)}


def _tensors(taking: Taking, config: Config) -> Iterator[tuple[str, Tensor]]:
    """Ours by name, of theirs."""
    shape = config.model
    if shape.tied == "all":
        yield "embedding.weight", _with_begin(taking.take("Wemb"))
    else:
        yield "embedding.weight", _with_begin(taking.take("encoder_Wemb"))
        yield "own_target.weight", _with_begin(taking.take("decoder_Wemb"))
    if shape.output_bias:
        bias = taking.take("decoder_ff_logit_out_b").flatten()
        yield "output_bias", torch.cat([bias, bias.new_zeros(1)])
    for i in range(shape.encoder_layers):
        ours, theirs = f"encoder.{i}", f"encoder_l{i + 1}"
        yield from _attention(taking, f"{ours}.attention", f"{theirs}_self")
        yield from _norm(taking, f"{ours}.around_attention", f"{theirs}_self_Wo")
        yield from _network(taking, ours, theirs)
    for i in range(shape.decoder_layers):
        ours, theirs = f"decoder.{i}", f"decoder_l{i + 1}"
        if shape.kind == "ssru":
            unit = f"{ours}.recurrence"
            yield f"{unit}.value.weight", taking.take(f"{theirs}_rnn_W", turned=True)
            yield f"{unit}.forget.weight", taking.take(f"{theirs}_rnn_Wf", turned=True)
            yield f"{unit}.forget.bias", taking.take(f"{theirs}_rnn_bf").flatten()
            yield from _norm(taking, f"{ours}.around_recurrence", f"{theirs}_rnn_ffn")
        else:
            yield from _attention(taking, f"{ours}.attention", f"{theirs}_self")
            yield from _norm(taking, f"{ours}.around_attention", f"{theirs}_self_Wo")
        yield from _attention(taking, f"{ours}.cross", f"{theirs}_context")
        yield from _norm(taking, f"{ours}.around_cross", f"{theirs}_context_Wo")
        yield from _network(taking, ours, theirs)


def _with_begin(table: Tensor) -> Tensor:
    """(V, D) -> (V + 1, D): Marian's decoder reads zeros before it has written anything."""
    return torch.cat([table, table.new_zeros(1, table.shape[1])])


def _attention(taking: Taking, ours: str, theirs: str) -> Iterator[tuple[str, Tensor]]:
    for part, letters in _HEADS.items():
        weights = [taking.take(f"{theirs}_W{letter}", turned=True) for letter in letters]
        yield f"{ours}.{part}.weight", torch.cat(weights)
        biases = [taking.take(f"{theirs}_b{letter}").flatten() for letter in letters]
        yield f"{ours}.{part}.bias", torch.cat(biases)


def _network(taking: Taking, ours: str, theirs: str) -> Iterator[tuple[str, Tensor]]:
    for part, number in (("inner", 1), ("outer", 2)):
        yield f"{ours}.feed_forward.{part}.weight", taking.take(f"{theirs}_ffn_W{number}", turned=True)
        yield f"{ours}.feed_forward.{part}.bias", taking.take(f"{theirs}_ffn_b{number}").flatten()
    yield from _norm(taking, f"{ours}.around_feed_forward", f"{theirs}_ffn_ffn")


def _norm(taking: Taking, ours: str, theirs: str) -> Iterator[tuple[str, Tensor]]:
    yield f"{ours}.norm.weight", taking.take(f"{theirs}_ln_scale").flatten()
    yield f"{ours}.norm.bias", taking.take(f"{theirs}_ln_bias").flatten()


# What lies beside it -------------------------------------------------------------------------------


def _beside(path: Path, *patterns: str) -> Path | None:
    found = (each for pattern in patterns for each in sorted(path.parent.glob(pattern)))
    return next(found, None)


def _tokenizer(path: Path, config: Config) -> SentencePieces:
    """SentencePiece's pieces with their own numbers, and one more to begin with."""
    both = _beside(path, "vocab*.spm", "srcvocab*.spm")
    if both is None:
        raise ModelError(f"{path.parent} has no vocab.*.spm, which {path.name} was trained with")
    files = both, (_beside(path, "trgvocab*.spm") if both.name.startswith("src") else both) or both
    models = sentencepiece.read(files[0]), sentencepiece.read(files[1])
    sides = [sentencepiece.names(file) for file in files]
    sizes = config.model.vocab_size, config.model.target_vocab_size or config.model.vocab_size
    for file, side, size in zip(files, sides, sizes, strict=True):
        if len(side) != size - 1 or "</s>" not in side or "<unk>" not in side:
            raise ModelError(
                f"{file} has {len(side):,} pieces, {path.name} is for {size - 1:,} with </s> and <unk>; "
                "they do not belong together"
            )
        side.append("<s>" if "<s>" not in side else "<begin>")
    begin, end = len(sides[1]) - 1, sides[1].index("</s>")
    unknown = sides[0].index("<unk>"), sides[1].index("<unk>")
    specials = Specials(begin, begin, end, tuple(sorted({begin, unknown[1]})))
    return SentencePieces(models, (sides[0], sides[1]), specials, unknown)


def lexicon(path: Path, tokenizer: Tokenizer) -> Shortlist | None:
    """The shortlist that lies beside a model, if there is one."""
    file = _beside(path, "lex*.s2t.bin", "lex*.s2t.bin.gz")
    if file is None:
        return None
    try:
        data = _unpacked(file)
        magic, _, first, _, places, count = _COUNTS.unpack_from(data)
        if magic != LEXICON:
            raise ValueError("it begins otherwise")
        offsets = np.frombuffer(_cut(data, _COUNTS.size, 8 * places), "<u8").astype(np.int64)
        ids = np.frombuffer(_cut(data, _COUNTS.size + 8 * places, 4 * count), "<u4").astype(np.int64)
        sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
        right = len(offsets) == sizes[0] and len(ids) == (offsets[-1] if len(offsets) else 0)
        if not right or any(a > b for a, b in pairwise(offsets.tolist())) or (ids >= sizes[1] - 1).any():
            raise ValueError(f"its {places:,} lists are not those of {sizes[0] - 1:,} tokens")
    except (struct.error, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{file} is no lexical shortlist ({shown(str(error))}); copy it again") from error
    never = tokenizer.specials.never
    always = np.setdiff1d([*range(min(first, sizes[1] - 1)), tokenizer.end_id], never)
    starts = np.append(offsets, offsets[-1])  # what a decoder begins with has no list
    joint = tokenizer.pieces == tokenizer.target_pieces
    lists = starts.astype(np.int32), ids.astype(np.int32), always.astype(np.int32)
    return Shortlist(lists[0], lists[1], lists[2], sizes[1], never, joint)
