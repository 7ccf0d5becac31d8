"""What hostile files are put into: a small model folder of random weights, a Marian folder, a shortlist.

Made by code in a moment, so that one file at a time can be exchanged and the rest around it is whole; the
checksums follow, as whoever makes a hostile folder would see to. Used by `parsers.py`.
"""

import functools
import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

LINES = (
    "a b c d e f g h",
    "A B C D E F G H",
    "the cat sat on the mat.",
    "ein Haus, zwei Häuser!",
    "日本語 1984",
)
SHAPE = {
    "model.d_model": 12,
    "model.n_heads": 2,
    "model.d_ff": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "positions.max_length": 64,
    "decode.beam": 2,
    "text.source": "en",
    "text.target": "de",
}
PIECES = ("▁", "a", "b", "c", "▁a", "▁b", "at", "▁c", "cat", "▁cat", "e", "h", "t", "▁the")


@functools.cache
def place() -> Path:
    """A folder of this process; it goes with it."""
    here = tempfile.TemporaryDirectory(prefix="regard-fuzz-", ignore_cleanup_errors=True)
    _KEPT.append(here)
    return Path(here.name)


_KEPT: list[Any] = []


@functools.cache
def model_folder() -> Path:
    """A folder as `regard train` makes it, with a shortlist and metrics."""
    import torch

    from regard.config import Config, merge
    from regard.models import build
    from regard.models.folder import save
    from regard.text.tokenizer import Tokenizer

    torch.manual_seed(5)
    tokenizer = Tokenizer.train(LINES * 9, vocab_size=0)
    config = merge(Config(), SHAPE | {"model.vocab_size": tokenizer.vocab_size})
    folder = place() / "model"
    save(folder, config=config, model=build(config), tokenizer=tokenizer, card="# A model\n")
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "valid_loss": 1.5}\n')
    _shortlist(folder, tokenizer)
    return folder


@functools.cache
def writer_folder() -> Path:
    """A language model of random weights."""
    from writers import write_writer

    return write_writer(place() / "writer", positions__kind="rotary")


def _shortlist(folder: Path, tokenizer: Any) -> None:
    import numpy as np

    from regard.engine.shortlist import Shortlist

    size = tokenizer.vocab_size
    starts, ids = np.arange(size + 1, dtype=np.int32), np.arange(size, dtype=np.int32)
    always = np.array([tokenizer.end_id, 5, 7], np.int32)
    Shortlist(starts, ids, always, size, tokenizer.specials.never, True).save(folder, tokenizer)


def exchanged(name: str, data: bytes) -> Path:
    """A copy of the model folder with other bytes in a file of it, and with the checksums they ask for."""
    folder = place() / "exchanged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model_folder(), folder)
    (folder / name).write_bytes(data)
    try:
        tree = json.loads((folder / "config.json").read_bytes())
        sums = tree.pop("checksums")
        sums |= {
            each: _digest((folder / each).read_bytes()) for each in ("model.safetensors", "tokenizer.json")
        }
        sums["config.json"] = _digest(json.dumps(tree, sort_keys=True).encode())
        (folder / "config.json").write_text(json.dumps(tree | {"checksums": sums}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # no config any more: left as it is
    return folder


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# A folder of transformers ----------------------------------------------------------------------------


@functools.cache
def marian_folder() -> Path:
    """A Marian folder: config, vocabulary, two SentencePiece models, weights."""
    import safetensors.torch
    import torch

    from regard.config import Config, merge
    from regard.interop.huggingface import names
    from regard.models import build

    folder = place() / "marian"
    folder.mkdir()
    words = ["</s>", "<unk>", *PIECES, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "config.json").write_text(json.dumps(marian_config(len(words))))
    (folder / "generation_config.json").write_text('{"num_beams": 2, "bad_words_ids": [[16]]}')
    (folder / "tokenizer_config.json").write_text('{"unk_token": "<unk>", "separate_vocabs": false}')
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(piece_model(list(PIECES)))
    shape = {"model.norm": "post", "model.vocab_size": len(words), "model.d_model": 12, "model.n_heads": 2}
    sizes = {"model.d_ff": 16, "model.encoder_layers": 1, "model.decoder_layers": 1}
    config = merge(Config(), shape | sizes)
    ours = build(config).state_dict()
    theirs = {
        name: part.clone()
        for own, parts in names(config.model)
        for name, part in zip(parts, torch.chunk(ours[own], len(parts)), strict=True)
    }
    safetensors.torch.save_file(theirs, folder / "model.safetensors")
    return folder


def marian_config(size: int) -> dict[str, Any]:
    """The settings of such a model."""
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in _SIDE.items()}
    return sides | {
        "model_type": "marian",
        "vocab_size": size,
        "d_model": 12,
        "activation_function": "relu",
        "max_position_embeddings": 64,
        "pad_token_id": size - 1,
        "eos_token_id": 0,
        "decoder_start_token_id": size - 1,
        "bad_words_ids": [[size - 1]],
        "num_beams": 2,
        "scale_embedding": True,
        "dropout": 0.1,
    }


_SIDE = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}


def exchanged_marian(name: str, data: bytes) -> Path:
    """A copy of the Marian folder with other bytes in a file of it."""
    folder = place() / "exchanged-marian"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(marian_folder(), folder)
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(data)
    return folder


BERT = {
    "vocab_size": 14,
    "hidden_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
}
WORDPIECES = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "##s",
    "a",
    "b",
    "sat",
    "on",
    ".",
    "c",
)


@functools.cache
def bert_folder() -> Path:
    """A sentence encoder as sentence-transformers keeps it."""
    import transformers

    folder = place() / "bert"
    transformers.BertModel(transformers.BertConfig(**BERT)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    types = ("Transformer", "Pooling", "Normalize")
    modules = [
        {"type": f"sentence_transformers.models.{each}", "path": f"{n}_{each}"}
        for n, each in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder


def exchanged_bert(name: str, data: bytes) -> Path:
    """A copy of it with other bytes in a file."""
    copy = place() / "bert-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bert_folder(), copy)
    (copy / name).write_bytes(data)
    return copy


def piece_model(pieces: list[str], *, kind: int = 1, charsmap: bytes = b"") -> bytes:
    """A SentencePiece model file: unigram (1) or BPE (2)."""
    from regard.interop.sentencepiece import CONTROL, NORMAL, UNKNOWN, field

    entries = [
        ("<unk>", UNKNOWN),
        ("<s>", CONTROL),
        ("</s>", CONTROL),
        *((piece, NORMAL) for piece in pieces),
    ]
    listed = b"".join(
        field(1, field(1, piece.encode()) + field(2, -float(number)) + field(3, sort))
        for number, (piece, sort) in enumerate(entries)
    )
    rules = field(2, charsmap) if charsmap else b""
    return listed + field(2, field(3, kind)) + field(3, rules + field(3, 1) + field(4, 1) + field(5, 1))
