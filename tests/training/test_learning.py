"""The point of it all: a small model learns what can be learned from a few hundred lines."""

from pathlib import Path

import numpy as np
import pytest

import regard

WORDS = ["ba", "de", "fi", "go", "ku", "la", "mo", "ne"]
SETTINGS = {
    "model.d_model": 64,
    "model.n_heads": 4,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_ff": 128,
    "positions.kind": "sinusoidal",  # one layer needs places, not distances alone, to reverse
    "model.dropout": 0.0,
    "train.lr": 0.004,
    "train.batch_tokens": 600,
    "train.valid_every": 10_000,
    "train.save_every": 1e6,
}


def sentences(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(2, 6))) for _ in range(count)]


def learn(tmp_path: Path, sources: list[str], targets: list[str], steps: int) -> regard.Translator:
    for name, lines in (("src", sources), ("tgt", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = SETTINGS | {"train.max_steps": steps}
    regard.train(
        tmp_path / "src", tmp_path / "tgt", out=tmp_path / "out", overrides=settings, device="cpu", quiet=True
    )
    return regard.load(tmp_path / "out")


def test_a_handful_of_pairs_is_learned_by_heart(tmp_path: Path) -> None:
    sources = ["the cat sleeps", "a dog barks", "rain falls", "we sing", "good night"]
    targets = ["die Katze schläft", "ein Hund bellt", "Regen fällt", "wir singen", "gute Nacht"]
    assert learn(tmp_path, sources, targets, 120).translate(sources, beam=1) == targets


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_copying_and_reversing_are_learned_for_unseen_sentences(tmp_path: Path, task: str) -> None:
    def answer(line: str) -> str:
        return line if task == "copy" else " ".join(reversed(line.split()))

    known = sentences(1500, seed=1)
    new = [line for line in dict.fromkeys(sentences(200, seed=2)) if line not in set(known)][:60]
    translator = learn(tmp_path, known, [answer(line) for line in known], 300)
    found = translator.translate(new, beam=1)
    right = sum(output == answer(line) for output, line in zip(found, new, strict=True))
    assert right >= 0.9 * len(new), f"{right} of {len(new)}"
