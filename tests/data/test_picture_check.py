"""`regard check` on pictures: every kind of trouble is counted and named, and stops what it must."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.cli.main import run as command
from regard.data.boxes import Scenes
from regard.data.picture_check import check_pictures, check_scenes
from regard.data.pictures import Pictures


def write(path: Path, seed: int, size: tuple[int, int] = (8, 12)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)).save(path)
    return path


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    for label, first in (("cat", 0), ("dog", 10)):
        for number in range(3):
            write(tmp_path / label / f"{number}.png", first + number)
    write(tmp_path / "dog" / "again.png", 0)  # the first cat
    write(tmp_path / "dog" / "same.png", 10)
    write(tmp_path / "cat" / "tall.png", 20, (30, 12))
    Image.new("L", (12, 8), 7).save(tmp_path / "cat" / "grey.png")
    whole = write(tmp_path / "cat" / "torn.jpg", 21, (64, 64)).read_bytes()
    (tmp_path / "cat" / "torn.jpg").write_bytes(whole[: len(whole) // 2])
    return tmp_path


def test_every_kind_of_trouble_is_counted_and_named(animals: Path) -> None:
    report = check_pictures(Pictures((animals,)), labelled=True, fewest=2)
    found = {each.kind: each for each in report.findings}
    counts = {kind: each.count for kind, each in found.items()}
    wanted = {"broken": 1, "contradicting": 1, "repeated": 2, "blank": 1, "other sizes": 1, "labels": 2}
    assert counts == wanted
    assert "torn.jpg" in found["broken"].examples[0].note
    assert "again.png is dog" in found["contradicting"].examples[0].note
    assert "grey.png" in found["blank"].examples[0].note
    assert found["labels"].what == "cat 5, dog 5"
    assert (report.sizes, report.kept, report.trains) == ({"pictures": 11}, 10, True)


@pytest.mark.parametrize(
    ("task", "labels", "kind"),
    [
        ("image", ["cat"], "too few labels"),
        ("image", ["cat", "dog", "dog"], "rare labels"),
        ("gan", ["a"], "too few"),
    ],
)
def test_what_training_refuses_is_refused(
    task: str, labels: list[str], kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, label in enumerate(labels):
        write(tmp_path / label / f"{number}.png", number)
    assert command(["check", "--task", task, str(tmp_path), "--json"]) == 2
    tree = json.loads(capfd.readouterr().out)
    assert not tree["trains"]
    assert kind in [each["kind"] for each in tree["findings"]]


def test_boxes_are_looked_at_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.png", number, (20, 30))
    tree = {
        "images": [{"id": n, "file_name": f"{n}.png", "height": 20, "width": 30} for n in range(4)],
        "categories": [{"id": 7, "name": "cell"}],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 7, "bbox": [2, 3, 9, 9]},
            {"id": 2, "image_id": 0, "category_id": 7, "bbox": [2, 3, 0, 9]},
            {"id": 3, "image_id": 1, "category_id": 7, "bbox": [25, 3, 50, 9]},
        ],
    }
    (tmp_path / "all.json").write_text(json.dumps(tree))
    report = check_scenes(Scenes((tmp_path / "all.json",)))
    counts = {each.kind: each.count for each in report.findings}
    assert counts == {"broken": 1, "no area": 1, "over the edge": 1, "no boxes": 1, "labels": 1}
    assert report.sizes == {"pictures": 4, "boxes": 3}
    assert command(["check", "--task", "detection", str(tmp_path / "all.json")]) == 0
    out = capfd.readouterr().out
    assert "4 pictures, 3 boxes; training keeps 3 pictures and leaves out 1 pictures and 1 boxes" in out
    assert "over the edge: 1 (kept)" in out
