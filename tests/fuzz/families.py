"""Models of other families with one file from a stranger, and recordings.

Small ones, made by transformers or by the tests of their readers. What is tried on each: its own file, the
same with every setting exchanged for something odd, and cut ones. Beside it: `folders.py`; used by
`parsers.py` and `corpus.py`.
"""

import functools
import io
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz import ground

ODD = (0, -1, 3, 65_536, 4_000_000, 10**400, 1e308, float("nan"), None, True, "x", "\x1b[2J", "\ud800", {})
ALWAYS: tuple[Any, ...] = (["x"], {"a": [1]})  # what no table can be asked for
TURNS = 3  # odd values beside these that each setting gets
LONGEST = 70  # settings of a table that are exchanged
LETTERS = ["▁", *"thecasonm.", "th", "▁t", "▁th", "▁the"]
PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS]
LLAMA = (12, 16, 1, 2, 1, len(PIECES), 31)  # width, hidden, layers, heads, heads of keys, vocabulary, length


# Folders and files -----------------------------------------------------------------------------------


def _gpt2(folder: Path) -> None:
    import transformers

    from regard.text.running import RunningText

    text = RunningText.learn(ground.LINES * 9, vocab_size=280)
    pieces = [piece for piece in text.pieces if not piece.startswith("<") or len(piece) == 1]
    ids = {piece: number for number, piece in enumerate([*pieces, "<|endoftext|>"])}
    sizes = {"n_positions": 31, "n_embd": 12, "n_layer": 1, "n_head": 3}
    ends = {"eos_token_id": len(ids) - 1, "bos_token_id": len(ids) - 1}
    config = transformers.GPT2Config(vocab_size=len(ids), **sizes, **ends)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(map(" ".join, text.merges)), encoding="utf-8")


def _llama(folder: Path) -> None:
    import transformers

    width, hidden, layers, heads, keys, size, length = LLAMA
    config = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys,
        vocab_size=size,
        max_position_embeddings=length,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    vocab = {piece: number for number, piece in enumerate(PIECES)}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True}
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}), encoding="utf-8")


def _llama2c(folder: Path) -> None:
    width, hidden, layers, heads, keys, size, length = LLAMA
    head = width // heads
    each = 2 * width + 2 * width * width + 2 * keys * head * width + 3 * hidden * width
    numbers = size * width + layers * each + width + length * head
    (folder / "model.bin").write_bytes(struct.pack("<7i", *LLAMA) + bytes(4 * numbers))
    raw = [piece.replace("▁", " ").encode() for piece in PIECES]
    rows = (struct.pack("<fi", -float(i), len(each)) + each for i, each in enumerate(raw))
    (folder / "tokenizer.bin").write_bytes(struct.pack("<i", max(map(len, raw))) + b"".join(rows))


def _vit(folder: Path) -> None:
    import transformers

    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 20}
    config = transformers.ViTConfig(**sizes, image_size=12, patch_size=4, num_labels=5)
    transformers.ViTForImageClassification(config).save_pretrained(folder)


def _detr(folder: Path) -> None:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[12, 20], depths=[1, 1], out_features=["stage2"]
    )
    sides = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sides.items()}
    config = transformers.DetrConfig(
        use_timm_backbone=False, backbone_config=backbone, d_model=12, num_queries=7, num_labels=5, **sizes
    )
    transformers.DetrForObjectDetection(config).save_pretrained(folder)
    size = {"size": {"height": 45, "width": 61}}
    (folder / "preprocessor_config.json").write_text(json.dumps(size))


def _whisper(folder: Path) -> None:
    import transformers

    from regard.text.running import ALPHABET

    letters = len(ALPHABET)
    sides = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sides.items()}
    ends = dict.fromkeys(("eos_token_id", "pad_token_id", "bos_token_id"), letters)
    config = transformers.WhisperConfig(
        vocab_size=letters + 2 + 99 + 6 + 1501,
        d_model=12,
        decoder_start_token_id=letters + 1,
        **sizes,
        **ends,
    )
    transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    ids = {letter: number for number, letter in enumerate([*ALPHABET, "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "merges.txt").write_text("")


def _firefox(folder: Path) -> None:
    from tests.interop import test_bergamot

    test_bergamot.write(folder, test_bergamot.weights())


# Each with the files of it that a stranger may have written; the last word is what is handed to the reader.
FAMILIES: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "gpt2": (_gpt2, ("config.json", "vocab.json", "merges.txt"), ""),
    "llama": (_llama, ("config.json", "tokenizer.json"), ""),
    "llama2c": (_llama2c, ("model.bin", "tokenizer.bin"), "model.bin"),
    "vit": (_vit, ("config.json",), ""),
    "detr": (_detr, ("config.json", "preprocessor_config.json"), ""),
    "whisper": (_whisper, ("config.json", "generation_config.json", "vocab.json"), ""),
    "firefox": (_firefox, ("model.enpt.bin", "vocab.enpt.spm", "lex.50.50.enpt.s2t.bin"), ""),
}


@functools.cache
def _honest(family: str) -> Path:
    folder = ground.place() / family
    folder.mkdir()
    FAMILIES[family][0](folder)
    return folder


def _reader(family: str, name: str) -> Callable[[bytes], None]:
    """A model of a family with this file from a stranger: imported, and its tokenizer used."""

    def parser(data: bytes) -> None:
        from regard.interop import known

        copy = ground.place() / f"{family}-copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(_honest(family), copy)
        (copy / name).write_bytes(data)
        path = copy / FAMILIES[family][2]
        loaded = known.read(path)
        known.add(path, loaded, copy)
        if loaded.text is not None:
            loaded.text.decode(loaded.text.encode("the cat sat — 狗 \u0301"))

    return parser


def sound(data: bytes) -> None:
    """A recording, at the rate of a model."""
    from regard.audio.sound import Recording

    path = ground.place() / "sound.wav"
    path.write_bytes(data)
    for block in Recording(path).blocks(16_000):
        assert abs(block).max(initial=0) < 1e6


PARSERS = {
    **{
        f"{family}-{name}": _reader(family, name)
        for family, (_, names, _) in FAMILIES.items()
        for name in names
    },
    "sound": sound,
}


# What they are given -----------------------------------------------------------------------------------


def _exchanged(tree: dict[str, Any]) -> Iterator[Any]:
    """A tree with each of its settings exchanged for some odd ones, in tables too; of long ones the first."""
    yield tree
    for number, (key, value) in enumerate(list(tree.items())[:LONGEST]):
        for odd in (*ALWAYS, *(ODD[(number * 5 + turn * 3) % len(ODD)] for turn in range(TURNS))):
            yield tree | {key: odd}
        if isinstance(value, dict) and len(value) < LONGEST:
            yield from (tree | {key: each} for each in _exchanged(value))


def seeds(name: str) -> list[bytes]:
    """The inputs of one reader."""
    if name == "sound":
        return _recordings()
    family, _, file = name.partition("-")
    data = (_honest(family) / file).read_bytes()
    cuts = [data[: len(data) * part // 7] for part in range(7)]
    if file.endswith(".json"):
        tree = json.loads(data)
        first, second, *_ = [*tree, "x", "y"]
        odd = {first: [1], second: 0.5}  # two that cannot be put in an order
        return [json.dumps(each).encode() for each in (*_exchanged(tree), tree | odd)] + cuts
    heads = [
        data[:place] + struct.pack("<i", value) + data[place + 4 :]
        for place in range(0, min(64, len(data) - 4), 4)
        for value in (0, -1, 2**24, 2**31 - 1)
    ]
    return [data, *cuts, *heads, data + data, b"\xff" * 64]


def _recordings() -> list[bytes]:
    import numpy as np
    import soundfile

    found = []
    for kind in ("WAV", "FLAC", "OGG", "AIFF", "AU"):
        file = io.BytesIO()
        soundfile.write(file, np.sin(np.arange(900) / 9).astype(np.float32), 8000, format=kind)
        data = file.getvalue()
        heads = (
            data[:place] + struct.pack("<I", value) + data[place + 4 :]
            for place in range(4, 44, 4)
            for value in (0, 2**31, 2**32 - 1)
        )
        found += [data, data[: len(data) // 2], data[:30], *heads]
    return [*found, b"", b"RIFF", bytes(5000)]
