"""Pictures in, a classifier out: trained, killed and gone on with, used; what is bad is one line."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import NAMES, sample, write_classifier, write_pictures
from PIL import Image

import regard
from regard.cli.main import run as command
from regard.errors import UsageError
from regard.images.glyphs import glyphs
from regard.images.picture import PictureError
from regard.tasks.image.augment import augmented, mirror_is_right
from regard.tasks.image.lesson import Classes

SETTINGS = [
    *("--set", "train.max_steps=30", "--set", "train.batch_tokens=480", "--set", "train.valid_every=20"),
    *("--set", "model.d_model=12", "--set", "model.n_heads=2", "--set", "model.d_ff=20"),
    *("--set", "model.encoder_layers=1", "--set", "train.precision=fp32", "--set", "train.threads=1"),
    *("--set", "image.blocks=0", "--set", "train.lr=0.01"),
]


def train(data: Path, out: Path, *more: str) -> int:
    return command(["train", "--task", "image", str(data), "-o", str(out), *SETTINGS, *more])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "run"
    assert train(data, out) == 0
    return out


def test_a_card_shows_which_heads_stayed_a_convolution(data: Path, tmp_path: Path) -> None:
    more = ["image.start=convolution", "model.n_heads=9", "model.d_model=18", "train.max_steps=2"]
    assert train(data, tmp_path / "run", *(word for each in more for word in ("--set", each))) == 0
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert "9 of 9 still look at their place of the kernel." in card
    assert "(heads.png)" in card
    assert Image.open(io.BytesIO((tmp_path / "run" / "heads.png").read_bytes())).format == "PNG"


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classifier(tmp_path_factory.mktemp("random"))


def test_it_learns_and_the_card_shows_what_was_taken_for_what(
    trained: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command(["evaluate", "-m", str(trained), str(data), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["accuracy"] > 0.8
    assert 0 < found["macro_f1"] <= 1
    assert found["pictures"] == 60
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert "A classifier of pictures trained on" in card
    assert "(confusion.png)" in card
    assert "-patch batches" in card
    assert "3 classes: bars 20, dots 20, field 20" in card
    assert Image.open(io.BytesIO((trained / "confusion.png").read_bytes())).format == "PNG"
    made = json.loads((trained / "preprocessing.json").read_text(encoding="utf-8"))
    assert made["fit"] == {"height": 8, "width": 12, "channels": 1, "how": "crop"}


def test_killed_it_goes_on_bit_for_bit(
    trained: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(999))
    original = Classes.losses

    def killed(self: Classes, model: object, batch: object) -> object:
        if next(calls) == 17:
            raise KeyboardInterrupt
        return original(self, model, batch)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Classes, "losses", killed)
        assert train(data, tmp_path / "killed", "--set", "train.save_every=0") == 130
    assert train(data, tmp_path / "killed", "--set", "train.save_every=0") == 0
    files = [place / "model.safetensors" for place in (trained, tmp_path / "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_classify_says_a_line_a_picture(
    random_model: Path,
    data: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = sorted(map(str, data.rglob("*.png")))[:3]
    capfd.readouterr()
    assert command(["classify", "-m", str(random_model), *files, "--top", "2"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == files
    assert all(len(line.split("\t")) == 5 and line.split("\t")[1] in NAMES for line in lines)
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO("\n".join(files).encode())))
    )
    assert command(["classify", "-m", str(random_model), "--json"]) == 0
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [each["file"] for each in told] == files
    assert all(abs(sum(each["labels"].values()) - 1) < 1e-5 for each in told)
    assert [each["label"] for each in told] == [line.split("\t")[1] for line in lines]


def test_a_picture_that_cannot_be_read_keeps_its_line(
    random_model: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = str(next(data.rglob("*.png")))
    bad = tmp_path / "bad.jpg"
    bad.write_text("no picture")
    capfd.readouterr()
    assert command(["classify", "-m", str(random_model), good, str(bad), good, "", "--json"]) == 2
    out, err = capfd.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [set(each) & {"label", "error"} for each in told] == [{"label"}, {"error"}, {"label"}, {"error"}]
    assert told[-1]["error"] == "an empty line names no picture"
    assert err.splitlines()[-1].endswith("2 of 4 pictures could not be read; the lines above say why")
    assert command(["classify", "-m", str(random_model), str(bad)]) == 2
    err = capfd.readouterr().err
    assert "bad.jpg is no picture" in err
    assert len(err.splitlines()) == 1


def test_heads_are_ranked_by_what_accuracy_loses(
    trained: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command(["look", "--ablate", "-m", str(trained), str(data), "--limit", "7"]) == 0
    told = capfd.readouterr().out.splitlines()
    assert re.fullmatch(r"accuracy \d\.\d+ with all heads, [5-7] pictures", told[0])
    assert {line.split()[0] for line in told[3:]} == {"encoder.0.self", "pool.0.cross"}
    assert command(["look", "--ablate", "-m", str(trained), str(data), "--beam", "2"]) == 2
    assert "--beam means nothing to a classifier of pictures" in capfd.readouterr().err


def test_python_reads_paths_and_bytes(random_model: Path, data: Path) -> None:
    classifier = regard.load(random_model)
    path = next(data.rglob("*.png"))
    one, other = classifier.classify([path, path.read_bytes()])
    assert one == other
    for alone in (path, str(path), path.read_bytes()):
        assert [each.name for each in classifier.classify(alone)] == [one.name]
    with pytest.raises(PictureError, match="does not exist"):
        next(classifier.classify(["gone.png"]))
    with pytest.raises(UsageError, match="not as Image"):
        next(classifier.classify([Image.new("L", (8, 8))]))


def test_neighbours_change_nothing(random_model: Path) -> None:
    classifier = regard.load(random_model)
    random = np.random.default_rng(5)
    pictures = [sample(kind % 3, random)[None] for kind in range(7)]
    together = classifier.label(pictures)
    for picture, label in zip(pictures, together, strict=True):
        alone = classifier.label([picture])[0]
        assert alone.chances == pytest.approx(label.chances, abs=1e-5)


def test_an_unknown_label_is_always_wrong(
    random_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (write_pictures(tmp_path / "data", 6) / "dots").rename(tmp_path / "data" / "stripes")
    capfd.readouterr()
    assert command(["evaluate", "-m", str(random_model), str(tmp_path / "data"), "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["accuracy"] <= 4 / 6
    assert "2 pictures of labels that the model does not know, the first: stripes" in err


def test_what_is_left_out_of_a_measurement_is_counted_and_named(
    random_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_pictures(tmp_path / "data", 6)
    (data / "dots" / "zz.jpg").write_text("no picture")
    capfd.readouterr()
    assert command(["evaluate", "-m", str(random_model), str(data), "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out).keys() == {"accuracy", "macro_f1", "pictures", "left_out"}
    assert "1 left out that cannot be read, the first: " in err
    assert "zz.jpg" in err


def bad_one_class(place: Path) -> None:
    for name in NAMES[1:]:
        for path in (place / name).iterdir():
            path.unlink()
        (place / name).rmdir()


def bad_single(place: Path) -> None:
    for path in sorted((place / "dots").iterdir())[1:]:
        path.unlink()


def bad_flat(place: Path) -> None:
    for number, path in enumerate(sorted(place.rglob("*.png"))):
        path.rename(place / f"{number}.png")
    for name in NAMES:
        (place / name).rmdir()


def bad_files(place: Path) -> None:
    for path in place.rglob("*.png"):
        path.write_text("no picture")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (bad_one_class, "all 2 pictures are bars; there must be two classes at least"),
        (bad_single, "there is one picture of dots"),
        (bad_flat, "these pictures have no labels"),
        (bad_files, "there is no picture to learn from; 6 left out that cannot be read, the first: "),
    ],
)
def test_bad_data_is_one_line(
    spoil: object, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_pictures(tmp_path / "data", 6)
    spoil(data)  # type: ignore[operator]
    assert train(data, tmp_path / "out") == 2
    said = capfd.readouterr().err.splitlines()
    assert words in said[-1]
    assert "Traceback" not in "".join(said)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["image.patch=3"], "image.patch (3) must be a power of 2"),
        (["positions.kind=alibi"], "knows a line, not a picture; take sinusoidal, learned"),
        (["image.start=convolution", "model.n_heads=4"], "must be 9, 25 or 49 on a grid, not 4"),
        (
            ["image.start=convolution", "positions.kind=rotary", "model.n_heads=2"],
            "needs positions.kind=quadratic",
        ),
        (["image.pooling=first", "positions.kind=rotary"], "image.pooling=first stands outside the picture"),
        (["model.kind=decoder", "model.decoder_layers=1"], "it takes encoder, conv"),
        (["image.colour=1"], "unknown config key image.colour"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(
    more: list[str], words: str, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = [word for each in more for word in ("--set", each)]
    assert train(data, tmp_path / "out", *flags) == 2
    assert words in capfd.readouterr().err.splitlines()[-1]


def test_a_folder_that_was_tampered_with_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_classifier(tmp_path / "model")
    (folder / "preprocessing.json").write_text("{}")
    assert command(["classify", "-m", str(folder), "x.png"]) == 2
    assert "preprocessing.json is damaged" in capfd.readouterr().err


def test_pictures_are_varied_and_nothing_else() -> None:
    torch.manual_seed(1)
    pixels = torch.randn(5, 3, 9, 11)
    assert torch.equal(augmented(pixels, 0.0, flip=False), pixels)
    flipped = augmented(pixels.repeat(9, 1, 1, 1), 0.0, flip=True)
    same = (flipped == pixels.repeat(9, 1, 1, 1)).flatten(1).all(1)
    mirrored = (flipped == pixels.repeat(9, 1, 1, 1).flip(3)).flatten(1).all(1)
    assert bool((same ^ mirrored).all())
    assert 0 < int(same.sum()) < 45
    state = torch.get_rng_state()
    first = augmented(pixels, 1.0, flip=True)
    torch.set_rng_state(state)
    assert torch.equal(first, augmented(pixels, 1.0, flip=True))
    assert first.shape == pixels.shape
    assert not torch.equal(first, pixels)


def test_mirroring_is_tried_out_on_the_pictures() -> None:
    images, names = zip(*glyphs(600, 16, letters="EFKLPR2"), strict=True)
    numbers = np.array(["EFKLPR2".index(name) for name in names])
    assert not mirror_is_right(np.stack(images), numbers)
    random = np.random.default_rng(1)
    kinds = random.integers(0, 3, 600)
    symmetric = np.stack([np.full((1, 16, 16), 40 + 80 * kind) for kind in kinds])
    symmetric = (symmetric + random.integers(0, 30, symmetric.shape)).astype(np.uint8)
    assert mirror_is_right(symmetric, kinds)
