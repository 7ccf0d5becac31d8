"""`regard check --task speech`: every kind of trouble is named with its line, and sound data has none."""

from pathlib import Path

import numpy as np
import soundfile

from regard.tasks.speech import TASK


def test_calls_are_sound(calls: Path) -> None:
    report = TASK.check([calls])
    assert report.findings == ()
    assert report.trains
    assert report.sizes["recordings"] == report.kept == 12


def test_every_kind_of_trouble_is_told(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).normal(size=8000).astype(np.float32) * 0.1
    sounds = {
        "good": noise,
        "still": np.zeros(8000, np.float32),
        "loud": np.sign(noise),
        "long": np.tile(noise, 31),
        "short": noise[:3],
    }
    for name, samples in sounds.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, 8000, subtype="FLOAT")
    (tmp_path / "broken.wav").write_text("no sound")
    (tmp_path / "half.wav").write_bytes((tmp_path / "good.wav").read_bytes()[:16_000])
    lines = ["file\ttext", "good.wav\tone", "good.wav\tone", "still.wav\ttwo", "loud.wav\tthree"]
    lines += [
        "long.wav\tfour",
        "short.wav\tfive",
        "broken.wav\tsix",
        "gone.wav\tseven",
        "good.wav",
        "\teight",
    ]
    lines += ["half.wav\tnine"]
    lines += ["good.wav\t" + "too much " * 9]
    path = tmp_path / "data.tsv"
    path.write_text("\n".join(lines) + "\n")
    report = TASK.check([path])
    found = {finding.kind: finding for finding in report.findings}
    counts = {kind: finding.count for kind, finding in found.items()}
    assert counts == {
        "columns": 2,
        "recordings": 3,
        "too long": 1,
        "silent": 1,
        "cut off": 1,
        "ends early": 1,
        "fast": 1,
        "repeated": 2,
    }
    assert not report.trains
    assert "line 6: long.wav, 31.0 s" in report.text()
    assert "line 8" in str(found["recordings"].examples)
    assert "line 12: half.wav, 0.5 s of 1.0" in report.text()
    assert report.kept == 6
    whole = tmp_path / "whole.tsv"
    whole.write_text("good.wav\tone\nlong.wav\tfour\n")
    assert TASK.check([whole]).trains
