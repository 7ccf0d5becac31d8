"""README's commands work as they stand: each block is run in order, on small files of the names it uses.

Only the training is made short. A line that cannot be run here must be known below, so that none goes
untested unnoticed.
"""

import json
import random
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from command import QUICK, ROOT, environment, letters, write_lines
from pictures import write_pictures
from PIL import Image

from regard.tasks.detection.demo import write_scenes

README = ROOT / "README.md"
_BLOCK = re.compile(r"^```(console|sh|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("git clone", "pip install")  # needs a network or an environment of its own


def commands(markdown: str) -> list[str]:
    """The command lines of the console blocks (after `$ `) and of the shell blocks (all), in order.

    >>> commands("```console\\n$ make demo  # text\\nout\\n```\\nprose\\n```sh\\n# note\\na -b\\n```\\n")
    ['make demo  # text', 'a -b']
    """
    found = []
    for language, block in _BLOCK.findall(markdown):
        lines = re.sub(r"\s*\\\n\s*(?:> )?", " ", block).splitlines()
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return found


def shortened(line: str) -> str:
    """The same command with training that ends in seconds, in a folder of its own, and a server that ends.

    The family in full takes a quarter of an hour; tests/cli/test_compare.py runs smaller ones.
    """
    if line.startswith("regard serve"):
        serve = f"{line.partition('#')[0]} --port 0"
        return f"timeout --preserve-status 9 {serve} || test $? = {128 + signal.SIGTERM}"
    if line.startswith("regard compare"):
        small = "--cost --lengths 8,16,32 --widths 8,16,32 --seconds 5"
        return line.replace("--cost", small) if "--cost" in line else f"{line.partition('#')[0]} --help"
    if line.startswith("regard demo"):
        return f"{line.partition('#')[0]} --minutes 0.02"
    if " --from " in line:  # takes its shape from the model before
        flags = "--set train.max_steps=2"
    else:
        flags = " ".join(["--fresh", *QUICK, "--set", "train.max_steps=2"])
    return re.sub(r"\bregard train\b", f"regard train {flags}", line.replace("--finish 5", "--finish 0.01"))


def write_stories(folder: Path) -> None:
    """A model of llama2.c that is small and knows nothing: 8 wide, one layer, a letter a piece."""
    width, hidden, heads, length = 8, 12, 2, 16
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *map(chr, range(256)), " ", *"OnceupatimE"]
    sizes = (len(pieces) * width, width, 4 * width**2, width, 3 * hidden * width, width)
    count = sum(sizes) + 2 * length * (width // heads // 2)
    head = struct.pack("<7i", width, hidden, 1, heads, heads, len(pieces), length)
    numbers = random.Random(1)
    weights = struct.pack(f"<{count}f", *(numbers.uniform(-1, 1) for _ in range(count)))
    (folder / "stories15M.bin").write_bytes(head + weights)
    rows = (struct.pack("<fi", 0.0, len(each.encode())) + each.encode() for each in pieces)
    (folder / "tokenizer.bin").write_bytes(struct.pack("<i", 8) + b"".join(rows))


def write_bert(folder: Path) -> None:
    """A BERT of one layer that knows nothing, with the words that README's examples have."""
    import torch
    from safetensors.torch import save_file

    width, hidden, words = 8, 12, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "fine", "film"]
    rows = {"word_embeddings": len(words), "position_embeddings": 40, "token_type_embeddings": 2}
    shapes = {f"embeddings.{name}.weight": (count, width) for name, count in rows.items()}
    products = {"intermediate.dense": (hidden, width), "output.dense": (width, hidden)}
    products |= {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
    products |= {"attention.output.dense": (width, width)}
    norms = ["embeddings.LayerNorm"]
    norms += [f"encoder.layer.0.{name}LayerNorm" for name in ("attention.output.", "output.")]
    for name, shape in products.items():
        shapes |= {f"encoder.layer.0.{name}.weight": shape, f"encoder.layer.0.{name}.bias": shape[:1]}
    shapes |= {f"{name}.{part}": (width,) for name in norms for part in ("weight", "bias")}
    folder.mkdir()
    save_file({name: torch.randn(shape) for name, shape in shapes.items()}, folder / "model.safetensors")
    (folder / "vocab.txt").write_text("\n".join(words))
    tree = {"model_type": "bert", "hidden_size": width, "num_attention_heads": 2, "num_hidden_layers": 1}
    tree |= {"intermediate_size": hidden, "hidden_act": "gelu", "hidden_dropout_prob": 0.1}
    tree |= {"vocab_size": len(words), "max_position_embeddings": 40}
    (folder / "config.json").write_text(json.dumps(tree))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files that README names, and with `regard` on the path."""
    for number, stem in enumerate(("my", "more", "test", "valid")):
        src, tgt = letters(40, seed=number)
        write_lines(tmp_path / f"{stem}.en", src)
        write_lines(tmp_path / f"{stem}.de", tgt)
    write_stories(tmp_path)
    write_bert(tmp_path / "all-MiniLM-L6-v2")
    (tmp_path / "my_texts").mkdir()
    write_lines(tmp_path / "my_texts" / "sea.txt", [f"The sea was calm on day {day}." for day in range(200)])
    write_lines(tmp_path / "other.txt", ["The sea was rough."])
    write_lines(tmp_path / "questions.txt", ["a film"])
    write_lines(tmp_path / "answers.txt", ["a fine film", "film", "a"])
    write_lines(tmp_path / "reviews.tsv", ["a fine film\tgood", "a film\tbad"] * 30)
    write_pictures(tmp_path / "pictures")
    write_scenes(tmp_path / "cells", 24, 1, side=32)
    for name in ("cat.jpg", "blood.jpg"):
        Image.new("L", (32, 32), 90).save(tmp_path / name)
    script = tmp_path / "bin" / "regard"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m regard "$@"\n')
    script.chmod(0o755)
    return tmp_path


def test_the_commands_of_the_readme(place: Path, subtests: pytest.Subtests):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    variables = environment()
    variables["PATH"] = f"{place / 'bin'}:{variables['PATH']}"
    for line in commands(README.read_text(encoding="utf-8")):
        with subtests.test(line):
            if line.startswith("make "):
                assert line.split()[1] in targets
            elif not line.startswith(_ELSEWHERE):
                assert re.search(r"\bregard \w+", line), "how is this line tested?"
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", shortened(line)],
                    cwd=place,
                    env=variables,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, done.stderr


def test_the_readme_has_commands():
    lines = commands(README.read_text(encoding="utf-8"))
    assert {"make demo", "make test"} <= {" ".join(line.split()[:2]) for line in lines}
    assert any(line.startswith("regard train") for line in lines)
