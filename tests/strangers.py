"""What strangers send: folders that mean harm; pickles and archives are in `strangers_packed.py`.

A case is a name and a function that spoils a healthy copy. `bounded` runs cases in a process of their own and
says how each ended and how much memory they took together. The laws are in tests/laws/test_stranger_laws.py.
"""

import contextlib
import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.config import Config, known_keys, merge
from regard.interop.huggingface import names
from regard.models import build, folder
from regard.text.tokenizer import Tokenizer


class Case(NamedTuple):
    """One attack: what it is called, and what it does to a fresh copy of a folder."""

    name: str
    spoil: Callable[[Path], object]


class Outcome(NamedTuple):
    """How a case ended: the class of its error ("" for none), the message, the exit code it would have.

    And what it cost: the most megabytes above what there were before, and seconds of the processor, which are
    those of a quiet machine on a busy one too.
    """

    name: str
    error: str
    message: str
    code: int
    megabytes: float = 0.0
    seconds: float = 0.0


SHAPE = {
    "model.d_model": 22,
    "model.n_heads": 2,
    "model.d_ff": 13,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.norm": "post",
}


def healthy(out: Path) -> Path:
    """A model folder of ours that loads."""
    tokenizer = Tokenizer.train(["the cat sees a dog"] * 9, 0)
    config = merge(Config(), SHAPE | {"model.vocab_size": tokenizer.vocab_size})
    folder.save(out, config=config, model=build(config), tokenizer=tokenizer, card="# Card\n")
    return out


def marian(out: Path) -> Path:
    """The same as Hugging Face would keep it, with pickled weights and our own tokenizer."""
    tokenizer = Tokenizer.train(["the cat sees a dog"] * 9, 0)
    config = merge(Config(), SHAPE | {"model.vocab_size": tokenizer.vocab_size})
    state = build(config).state_dict()
    weights = {}
    for ours, theirs in names(config.model):
        weights |= dict(zip(theirs, state[ours].chunk(len(theirs)), strict=True))
    tree = {"model_type": "marian", "vocab_size": tokenizer.vocab_size, "d_model": 22, "dropout": 0.0}
    tree |= {f"{side}_layers": 1 for side in ("encoder", "decoder")}
    tree |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    tree |= {f"{side}_ffn_dim": 13 for side in ("encoder", "decoder")}
    tree |= {"activation_function": "relu", "scale_embedding": True, "pad_token_id": 0, "eos_token_id": 2}
    out.mkdir()
    (out / "config.json").write_text(json.dumps(tree))
    (out / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    torch.save({name: part.clone() for name, part in weights.items()}, out / "pytorch_model.bin")
    return out


def bounded(
    cases: Iterable[Case], base: Path, place: Path, work: Callable[[Path], object]
) -> tuple[list[Outcome], float]:
    """Each case on a copy of `base` in `place`, worked on in one child; megabytes that all of them left."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w") as answers:
            torch.set_num_threads(1)
            before = _resident()
            for case in cases:
                answers.write(json.dumps(_outcome(case, base, place, work)) + "\n")
            answers.write(json.dumps(_resident() - before) + "\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        *lines, grown = (json.loads(line) for line in answers)
    os.waitpid(child, 0)
    return [Outcome(*line) for line in lines], grown


def _outcome(case: Case, base: Path, place: Path, work: Callable[[Path], object]) -> Outcome:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    case.spoil(place)
    outcome = Outcome(case.name, "", "", 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
    before, began = _resident(), _processor()
    try:
        work(place)
    except BaseException as error:  # what a library panics with is no Exception
        outcome = Outcome(case.name, type(error).__name__, str(error), getattr(error, "exit_code", 1))
    return outcome._replace(megabytes=_peak() - before, seconds=_processor() - began)


def _processor() -> float:
    """Seconds of this process and of the children that it waited for."""
    return sum(os.times()[:4])


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# Folders -----------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    10**400,
    -1,
    65536,
    4_000_000,
    1e308,
    "\x1b[2J" * 9,
    [[[]]],
    {"a": {"b": 1}},
    None,
    True,
)


def sign(place: Path) -> None:
    """Make the checksums true, as somebody would who means harm."""
    tree = json.loads((place / "config.json").read_text())
    checksums = {
        name: hashlib.sha256((place / name).read_bytes()).hexdigest()
        for name in ("model.safetensors", "tokenizer.json")
    }
    tree.pop("checksums", None)
    checksums["config.json"] = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()
    (place / "config.json").write_text(json.dumps({**tree, "checksums": checksums}))


def _setting(key: str, value: Any) -> Case:
    def spoil(place: Path) -> None:
        tree = json.loads((place / "config.json").read_text())
        table, _, leaf = key.partition(".")
        tree[table][leaf] = value
        (place / "config.json").write_text(json.dumps(tree))
        sign(place)

    return Case(f"config.json {key} {str(value)[:20] if value != 10**400 else 'digits'}", spoil)


def _written(file: str, text: str | bytes, what: str) -> Case:
    """A file replaced, and the folder signed again."""

    def spoil(place: Path) -> None:
        (place / file).write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        if file in ("model.safetensors", "tokenizer.json"):
            sign(place)

    return Case(f"{file} {what}", spoil)


def _tokenizers() -> Iterator[Case]:
    def pieces(kind: str, words: list[str], **over: Any) -> str:
        side = {"kind": kind, "pieces": [[word, -1.0] for word in words], "rewrites": {}}
        side |= {"add_prefix": True, "squeeze": True, "byte_fallback": False} | over
        tree = {"kind": "sentencepiece", "unknown": [1, 1], "source": side, "target": None}
        tree |= {"specials": {"pad": 3, "begin": 3, "end": 0, "never": [3]}, "target_vocabulary": None}
        return json.dumps(tree | {"vocabulary": ["</s>", "<unk>", *words[:50], "<pad>"]})

    stairs = ["a" * n for n in range(1, 2000)]
    for kind in ("unigram", "bpe", "word", "", "\x1b"):
        yield _written("tokenizer.json", pieces(kind, ["a", "b"]), f"kind {kind!r}")
        yield _written("tokenizer.json", pieces(kind, stairs), f"{kind!r} stairs")
        yield _written("tokenizer.json", pieces(kind, stairs[:511]), f"{kind!r} low stairs")
        yield _written("tokenizer.json", pieces(kind, ["a", ""]), f"{kind!r} of nothing")
    many = [f"{number:0400d}" for number in range(5000)]
    yield _written("tokenizer.json", pieces("unigram", many), "long pieces")
    for rewrites in (
        {"": "a"},
        {"a": "\ud800"},
        {"\ud800": "a"},
        {"a" * 999: "b"},
        {"a": "b" * 999},
        {"a": 3},
        3,
    ):
        yield _written(
            "tokenizer.json", pieces("unigram", ["a"], rewrites=rewrites), f"rewrites {str(rewrites)[:9]!r}"
        )
    for score in (float("nan"), float("inf"), 10**400, "x", None, [1]):
        yield _written("tokenizer.json", pieces("unigram", ["a"], pieces=[["a", score]]), "scores")
    for never in ([10**9], [-1], ["x"], 5, [[3]], [10**400]):
        tree = json.loads(pieces("unigram", ["a"]))
        tree["specials"]["never"] = never
        yield _written(
            "tokenizer.json", json.dumps(tree), f"never {str(never)[:9]!r}" if never != [10**400] else "never"
        )
    vocab = {"type": "BPE", "vocab": {word: number for number, word in enumerate(stairs)}, "merges": []}
    for model in (
        vocab,
        vocab | {"vocab": {"a": 1}},
        vocab | {"merges": [["a"]]},
        vocab | {"vocab": []},
        3,
        None,
    ):
        yield _written("tokenizer.json", json.dumps({"model": model}), f"model {str(model)[:9]!r}")
    for text in ("", "[" * 10**5, "3", '{"kind": ' + "9" * 400 + "}", "\ud800", "[" + "[]," * 10**6 + "[]]"):
        yield _written("tokenizer.json", text, f"text {text[:9]!r}")


def _weights() -> Iterator[Case]:
    def file(header: Any, body: bytes = b"") -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + body

    entry = {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}
    for name, value in (
        *(("shape", value) for value in ([10**12], [-3], [2**63], ["x"], 3, None, [3] * 10**5, [1.5])),
        *(("dtype", value) for value in ("F4", 3, None, ["F32"], "\x1b[2J" * 999)),
        *(("data_offsets", value) for value in ([0, 10**12], [12, 0], [-1, 11], [0], None, "x", [0, 12.0])),
    ):
        yield _written(
            "model.safetensors", file({"a": entry | {name: value}}, bytes(12)), f"{name} {str(value)[:20]}"
        )
    for header in (
        {"__metadata__": None},
        {"__metadata__": 3, "a": entry},
        [],
        3,
        {"a": 3},
        {"a" * 10**6: entry},
    ):
        yield _written("model.safetensors", file(header, bytes(12)), f"header {str(header)[:20]}")
    for header in (b"", b"{", b"\xff" * 99, b"[" * 10**5, b'{"a":' + b"9" * 5000 + b"}"):
        yield _written("model.safetensors", file(header), f"header {header[:9]!r}")
    for data in (b"", b"\0" * 7, struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 10**8) + b"{}"):
        yield _written("model.safetensors", data, f"bytes {data[:9]!r}")
    many = {f"t{number}": entry for number in range(50_000)}
    yield _written("model.safetensors", file(many, bytes(12)), "50,000 tensors")


def _places() -> Iterator[Case]:
    """What may lie in the place of a file."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "generation.json"):
        yield Case(
            f"{name} is a folder", lambda place, name=name: ((place / name).unlink(), (place / name).mkdir())
        )
        yield Case(
            f"{name} is a pipe", lambda place, name=name: ((place / name).unlink(), os.mkfifo(place / name))
        )
        for target in (name, "/dev/zero", "/dev/full", "."):
            yield Case(
                f"{name} leads to {target}",
                lambda place, name=name, target=target: (
                    (place / name).unlink(),
                    (place / name).symlink_to(target),
                ),
            )
        yield Case(f"{name} has holes", lambda place, name=name: os.truncate(place / name, 2**26))


def folders() -> list[Case]:
    """Three hundred and more model folders."""
    keys = [key for key in known_keys() if not key.startswith("decode.")]
    cases = [
        _setting(key, VALUES[(number * 3 + turn) % len(VALUES)])
        for number, key in enumerate(keys)
        for turn in range(3)
    ]
    huge = {
        "model.encoder_layers": (256, 65536),
        "model.vocab_size": (4_000_000,),
        "positions.max_length": (10**6,),
    }
    cases += [_setting(key, value) for key, values in huge.items() for value in values]
    for key in (key for key in known_keys() if key.startswith("decode.")):
        for value in VALUES[:8]:
            text = json.dumps({key.partition(".")[2]: value})
            cases.append(_written("generation.json", text, f"{key} {text[:30]}"))
    return [*cases, *_tokenizers(), *_weights(), *_places()]
