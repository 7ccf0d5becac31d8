"""Pictures with boxes in, a detector out: trained, killed and gone on with, used, measured."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

import regard
from regard.cli.main import run as command
from regard.images.picture import PictureError, open_picture
from regard.tasks.detection.demo import write_scenes
from regard.tasks.detection.drawing import drawn
from regard.tasks.detection.lesson import Finding

SETTINGS = [
    *("--set", "train.max_steps=12", "--set", "train.batch_tokens=64", "--set", "train.valid_every=6"),
    *("--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.d_ff=20"),
    *("--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1", "--set", "detection.blocks=0"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1", "--set", "detection.queries=6"),
]


def train(data: Path, out: Path, *more: str) -> int:
    return command(["train", "--task", "detection", str(data), "-o", str(out), *SETTINGS, *more])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("scenes"), 24, 5, side=32)


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "run"
    assert train(data, out) == 0
    return out


def test_it_is_measured_and_its_card_says_how(
    trained: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command(["evaluate", "-m", str(trained), str(data), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert {"ap", "ap50", "ap75"} <= found.keys()
    assert 0 <= found["ap"] <= found["ap50"] <= 1
    assert found["pictures"] == 24
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert "A detector trained on" in card
    assert "24 pictures with" in card


def test_killed_it_goes_on_bit_for_bit(
    trained: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(999))
    original = Finding.losses

    def killed(self: Finding, model: object, batch: object) -> object:
        if next(calls) == 9:
            raise KeyboardInterrupt
        return original(self, model, batch)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Finding, "losses", killed)
        assert train(data, tmp_path / "killed", "--set", "train.save_every=0") == 130
    assert train(data, tmp_path / "killed", "--set", "train.save_every=0") == 0
    files = [place / "model.safetensors" for place in (trained, tmp_path / "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_detect_writes_coco_lines_and_drawings(
    trained: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in sorted(data.glob("*.png"))[:2]]
    capfd.readouterr()
    call = ["detect", "-m", str(trained), *files, "--threshold", "0"]
    assert command([*call, "--json", "-o", str(tmp_path / "drawn")]) == 0
    tree = json.loads(capfd.readouterr().out)
    assert [each["file_name"] for each in tree["images"]] == files
    assert tree["images"][0]["width"] == 32
    assert len(tree["annotations"]) == 12
    assert all(0 <= each["score"] <= 1 and len(each["bbox"]) == 4 for each in tree["annotations"])
    assert {each["category_id"] for each in tree["annotations"]} <= {
        each["id"] for each in tree["categories"]
    }
    assert open_picture(tmp_path / "drawn" / "00001.png").size == (480, 480)
    assert command(call) == 0
    lines = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert len(lines) == 12
    assert all(len(line) == 7 for line in lines)
    assert command([*call[:-1], "1"]) == 0
    assert capfd.readouterr().out == ""


def test_pictures_of_one_name_have_drawings_of_their_own_and_empty_lines_are_no_folder(
    trained: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "0.png").write_bytes(next(data.glob("*.png")).read_bytes())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "0.png").write_bytes((tmp_path / "0.png").read_bytes())
    (tmp_path / "list").write_text(f"{tmp_path / '0.png'}\n\n{tmp_path / 'other' / '0.png'}\n")
    call = ["detect", "-m", str(trained), "-i", str(tmp_path / "list"), "-o", str(tmp_path / "drawn")]
    assert command(call) == 2
    assert "an empty line names no picture" in capfd.readouterr().err
    assert {each.name for each in (tmp_path / "drawn").iterdir()} == {"0.png", "0-2.png"}


def test_heads_are_ranked_by_what_ap_loses(
    trained: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command(["look", "--ablate", "-m", str(trained), str(data), "--limit", "3"]) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0].endswith("with all heads, 3 pictures")
    assert {line.split()[0] for line in told[3:]} == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}


def test_what_cannot_be_read_is_said(
    trained: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = str(next(data.glob("*.png"))), tmp_path / "bad.png"
    bad.write_text("no picture")
    assert command(["detect", "-m", str(trained), str(bad), good, "--json"]) == 2
    out, err = capfd.readouterr()
    assert len(json.loads(out)["images"]) == 1
    assert "1 of 2 pictures could not be read" in err
    assert command(["detect", "-m", str(trained), str(bad)]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert command(["detect", "-m", str(trained), good, "--threshold", "2"]) == 2
    assert "--threshold (2) must be between 0 and 1" in capfd.readouterr().err
    with pytest.raises(PictureError, match="does not exist"):
        next(regard.load(trained).detect(["gone.png"]))


def test_what_is_left_out_of_a_measurement_is_counted_and_named(
    trained: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.png").write_bytes(next(data.glob("*.png")).read_bytes())
    (tmp_path / "bad.png").write_text("no picture")
    boxes = [[0, 1, 2, 9, 9], [0, 1, 2, 0, 9], [7, 3, 3, 9, 9]]
    tree = {
        "images": [{"id": 1, "file_name": "good.png"}, {"id": 2, "file_name": "bad.png"}],
        "categories": [{"id": 0, "name": regard.load(trained).names[0]}, {"id": 7, "name": "ox"}],
        "annotations": [
            {"id": number, "image_id": 1, "category_id": kind, "bbox": box}
            for number, (kind, *box) in enumerate(boxes)
        ],
    }
    (tmp_path / "all.json").write_text(json.dumps(tree))
    capfd.readouterr()
    assert command(["evaluate", "-m", str(trained), str(tmp_path / "all.json"), "--json"]) == 0
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert told.keys() == {"ap", "ap50", "ap75", "pictures", "boxes", "left_out"}
    assert (told["pictures"], told["boxes"], told["left_out"]) == (1, 2, 1)
    assert "1 left out that cannot be read, the first: " in err
    assert "1 left out without area, the first: " in err
    assert "1 boxes of labels that the model does not know, the first: ox" in err


def test_a_turned_picture_has_boxes_where_it_is_looked_at(trained: Path, data: Path) -> None:
    image = open_picture(next(data.glob("*.png"))).resize((40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    held = io.BytesIO()
    image.save(held, "PNG", exif=exif)
    seen = next(regard.load(trained).detect([held.getvalue()], 0.0))
    assert (seen.height, seen.width) == (40, 20)
    assert (
        Image.open(io.BytesIO(drawn(held.getvalue(), seen.objects, regard.load(trained).names))).height > 40
    )


def test_bad_data_is_one_line(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert train(tmp_path / "empty", tmp_path / "out") == 2
    assert "holds no boxes" in capfd.readouterr().err.splitlines()[-1]
    assert train(data, tmp_path / "out", "--set", "detection.stride=5") == 2
    assert "detection.stride (5) must be 0, 4, 8, 16 or 32" in capfd.readouterr().err.splitlines()[-1]
