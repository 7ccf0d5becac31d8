"""A generator from pictures to drawings: folder, scores, exact resuming, what is refused."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import environment
from drawing import SETTINGS, hasten, train_stripes
from PIL import Image

import regard
from regard.cli.main import run as command
from regard.errors import UsageError
from regard.models.folder import load_folder
from regard.tasks.gan.drawer import noise_of
from regard.tasks.gan.objective import Adversaries
from regard.training.metrics import read_metrics
from regard.training.objective import Loss


def flags() -> list[str]:
    return [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def test_the_folder_has_all_it_needs(generator: Path) -> None:
    names = {path.name for path in generator.iterdir()}
    assert names >= {"model.safetensors", "judge.safetensors", "classes.json", "samples", "samples.png"}
    assert not names & {"tokenizer.json", "generation.json"}
    assert sorted(path.name for path in (generator / "samples").iterdir()) == ["001.png", "002.png"]
    card = (generator / "README.md").read_text(encoding="utf-8")
    for said in (
        "![drawings](samples.png)",
        "Real against real",
        "2 classes: lying, standing",
        "8-picture batches",
        "FID",
    ):
        assert (said in card) == (said != "FID")
    lines = read_metrics(generator / "metrics.jsonl")
    wanted = {"frechet", "classified", "coverage", "density", "precision", "recall", "taught"}
    assert {key.removeprefix("valid_") for key in lines[-1] if key.startswith("valid_")} == wanted
    assert {"loss_generator", "loss_discriminator"} <= lines[-1].keys()


def test_a_drawing_is_a_function_of_seed_and_number(generator: Path) -> None:
    drawer = regard.load(generator)
    many, few = (drawer.draw(count, "lying", seed=3).pictures for count in (70, 5))
    assert many.shape == (70, 1, 8, 8)
    assert np.abs(many[:5].astype(int) - few).max() <= 1  # other batches may round otherwise
    assert np.array_equal(few, drawer.draw(5, "lying", seed=3).pictures)
    assert not np.array_equal(few, drawer.draw(5, "lying", seed=4).pictures)
    assert not np.array_equal(few, drawer.draw(5, "standing", seed=3).pictures)
    assert list(drawer.draw(5).classes) == ["lying", "standing", "lying", "standing", "lying"]
    assert torch.equal(noise_of(3, 0, 9, 5)[4:], noise_of(3, 4, 5, 5))


def test_draw_writes_sheets_and_arrays(generator: Path, tmp_path: Path) -> None:
    sheet, arrays = tmp_path / "a.png", tmp_path / "a.npz"
    assert command(["draw", "-m", str(generator), "--class", "lying", "-n", "6", "-o", str(sheet)]) == 0
    assert Image.open(io.BytesIO(sheet.read_bytes())).size == (3 * 8 + 4, 2 * 8 + 2)
    assert command(["draw", "-m", str(generator), "-n", "3", "-o", str(arrays), "--seed", "9"]) == 0
    held = np.load(arrays)
    assert held["images"].shape == (3, 8, 8, 1)
    assert held["labels"].tolist() == ["lying", "standing", "lying"]


def test_evaluate_gives_every_score_and_real_beside_it(
    generator: Path, stripes: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hasten(monkeypatch)
    monkeypatch.setattr("regard.tasks.gan.evaluate.TAUGHT", 32)
    assert command(["evaluate", "-m", str(generator), str(stripes), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["drawings"] == 35
    assert found["features"] == "features of the folder's own classifier"
    assert {"frechet", "precision", "recall", "density", "coverage", "classified", "taught"} <= found.keys()
    assert found["real"]["frechet"] < found["frechet"]
    assert found["real"]["coverage"] > 0.5
    assert command(["evaluate", "-m", str(generator), str(stripes)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].split() == ["drawings", "real", "pictures"]
    assert lines[1].startswith("Fréchet distance (own classifier)")


def test_killed_it_goes_on_bit_for_bit(
    generator: Path, stripes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(99))
    original = Adversaries.losses

    def killed(self: Adversaries, model: Any, batch: Any) -> Iterator[Loss]:
        for loss in original(self, model, batch):
            yield loss
            if next(calls) == 19:  # four batches are rehearsed: between the two losses of the fifth step
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Adversaries, "losses", killed)
        with pytest.raises(KeyboardInterrupt):
            train_stripes(tmp_path / "killed", stripes)
    steps = [path.name for path in (tmp_path / "killed" / "checkpoints").glob("step-*")]
    assert steps
    train_stripes(tmp_path / "killed", stripes)
    for name in ("model.safetensors", "judge.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (generator / name).read_bytes()


def test_pictures_without_labels(stripes: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.npz"
    np.savez(bare, images=np.load(stripes)["images"])
    folder = train_stripes(tmp_path / "model", bare, **{"train.max_steps": 1, "gan.attend": 0})
    drawer = regard.load(folder)
    assert drawer.draw(3).pictures.shape == (3, 1, 8, 8)
    assert list(drawer.draw(2).classes) == ["", ""]
    assert command(["draw", "-m", str(folder), "--class", "7"]) == 2
    assert "this generator knows no classes, and 7 was asked for" in capfd.readouterr().err


def test_pictures_of_other_sizes_are_resized_and_it_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    random = np.random.default_rng(1)
    for number in range(22):
        size = (9, 13, 3) if number % 2 else (8, 8, 3)
        Image.fromarray(random.integers(0, 256, size, np.uint8)).save(folder / f"{number}.png")
    out = tmp_path / "model"
    with pytest.MonkeyPatch.context() as patch:
        hasten(patch)
        settings = [*flags(), "--set", "train.max_steps=1", "--set", "train.accumulate=2"]
        assert command(["train", "--task", "gan", str(folder), "-o", str(out), *settings]) == 0
    said = capfd.readouterr().err
    assert "22 pictures, drawn in 8 x 8 pixels, colour" in said
    assert "11 of other sizes (2 of them) were resized and cut to that" in said
    assert load_folder(out).model.generator.out.out_channels == 3


@pytest.mark.parametrize(
    ("count", "label", "more", "said"),
    [
        (3, "seven", {}, "there is no class seven; there are lying, standing"),
        (0, None, {}, r"n \(0\) must be between 1 and 10,000"),
        (10001, None, {}, r"n \(10001\) must be between 1 and 10,000"),
        (3, None, {"seed": -1}, r"seed \(-1\) must be between 0 and"),
        (3, None, {"spread": -1.0}, r"spread \(-1\) must be between 0 and 10"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    generator: Path, count: int, label: str | None, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        regard.load(generator).draw(count, label, **more)


def test_and_is_one_line_on_the_command_line(generator: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cases = {
        ("--columns", "-1"): "columns (-1) must be 0 or more",
        ("-o", "sheet.gif"): "sheet.gif ends in .gif; give one of .png, .npz",
        ("-n", "0"): "n (0) must be between 1 and 10,000",
    }
    for more, said in cases.items():
        assert command(["draw", "-m", str(generator), *more]) == 2
        assert said in capfd.readouterr().err.splitlines()[-1]


def test_what_cannot_be_learned_from_is_one_line(
    stripes: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one"
    one.mkdir()
    Image.new("L", (8, 8)).save(one / "a.png")
    words = tmp_path / "words"
    words.mkdir()
    for number in range(30):
        (words / f"{number}.png").write_text("no picture", encoding="utf-8")
    cases = [
        ([str(one)], "1 picture; to learn to draw takes 20 at least"),
        ([str(words)], "there is no picture to learn from"),
        ([str(tmp_path / "gone")], "does not exist"),
        ([str(stripes), "--set", "gan.side=30"], "gan.side (30) must be 4, 5, 6 or 7 doubled, such as 28"),
        ([str(stripes), "--set", "gan.channels=2"], "gan.channels (2) must be 1 (grey) or 3 (colour)"),
        ([str(stripes), "--set", "attention.kind=local"], "means nothing to model.kind=sagan"),
    ]
    for number, (arguments, said) in enumerate(cases):
        assert command(["train", "--task", "gan", "-o", str(tmp_path / f"m{number}"), *arguments]) == 2
        assert said in capfd.readouterr().err.splitlines()[-1]


def test_a_further_run_takes_the_same_classes(generator: Path, stripes: Path, tmp_path: Path) -> None:
    held = np.load(stripes)
    other = tmp_path / "other.npz"
    np.savez(other, images=held["images"], labels=np.arange(70) % 3)
    call = ["train", "--task", "gan", "-o", str(tmp_path / "more"), "--from", str(generator)]
    bounds = ["--set", "train.max_steps=1", "--set", "train.batch_tokens=8"]
    assert command([*call, str(other), *bounds]) == 2
    with pytest.MonkeyPatch.context() as patch:
        hasten(patch)
        assert command([*call, str(stripes), *bounds]) == 0
    assert regard.load(tmp_path / "more").names == ("lying", "standing")


def test_drawing_and_looking_load_nothing_of_training(generator: Path) -> None:
    code = f"""
import sys
import regard
from regard.look.look import look

drawer = regard.load({str(generator)!r})
drawer.draw(2)
look(drawer, "lying").to_json()
assert not [name for name in sys.modules if name.startswith("regard.training")]
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
