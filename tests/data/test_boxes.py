"""Pictures with boxes in three layouts come out the same; what is wrong is counted and named, or one line."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.boxes import Scenes
from regard.data.pictures import lost_in
from regard.errors import DataError
from regard.images.picture import Fit

SIZE = 31, 17  # width, height
HELD = {
    "a": [("cat", (2, 3, 12, 9)), ("dog", (20, 1, 30, 16))],
    "b": [],
    "c": [("cat", (0, 0, 31, 17))],
}


def write_picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((SIZE[1], SIZE[0]), 90, np.uint8)).save(path)


def as_voc(root: Path) -> Path:
    for name, objects in HELD.items():
        write_picture(root / "JPEGImages" / f"{name}.jpg")
        inner = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax>"
            "</bndbox></object>"
            for label, (a, b, c, d) in objects
        )
        (root / "Annotations").mkdir(exist_ok=True)
        (root / "Annotations" / f"{name}.xml").write_text(f"<annotation>{inner}</annotation>")
    return root


def as_coco(root: Path) -> Path:
    images, annotations, ids = [], [], {"cat": 7, "dog": 90}  # ids with holes
    for number, (name, objects) in enumerate(HELD.items()):
        write_picture(root / "images" / f"{name}.png")
        images.append({"id": number, "file_name": f"{name}.png"})
        for label, (a, b, c, d) in objects:
            annotations.append({"image_id": number, "category_id": ids[label], "bbox": [a, b, c - a, d - b]})
    tree = {"images": images, "annotations": annotations}
    tree["categories"] = [{"id": number, "name": name} for name, number in ids.items()]
    (root / "annotations").mkdir()
    (root / "annotations" / "instances.json").write_text(json.dumps(tree))
    return root


def as_yolo(root: Path, names: str = "names: [cat, dog]") -> Path:
    (root / "data.yaml").write_text(f"train: images/train\nval: images/val\n{names}\n")
    for name, objects in HELD.items():
        write_picture(root / "images" / "train" / f"{name}.png")
        lines = [
            f"{int(label == 'dog')} {(a + c) / 62} {(b + d) / 34} {(c - a) / 31} {(d - b) / 17}\n"
            for label, (a, b, c, d) in objects
        ]
        labels = root / "labels" / "train"
        labels.mkdir(parents=True, exist_ok=True)
        if lines:
            (labels / f"{name}.txt").write_text("".join(lines))
    return root


LAYOUTS = {
    "voc": as_voc,
    "coco": as_coco,
    "yolo": as_yolo,
    "yolo by number": lambda root: as_yolo(root, "names:\n  0: cat\n  1: dog"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = Scenes((layout(tmp_path / "data"),))
    assert data.labels == {"cat": 2, "dog": 1}
    assert (data.survey.count, data.survey.boxes, data.survey.most) == (3, 3, 2)
    store = data.store(tmp_path / "store", Fit(8, 16, 1, "stretch"), ["cat", "dog"])
    assert [store["label"].row(row).tolist() for row in range(3)] == [[0, 1], [], [0]]
    wanted = np.array([HELD["a"][0][1], HELD["a"][1][1]]) / [31, 17, 31, 17]
    np.testing.assert_allclose(store["box"].row(0), wanted, atol=1e-6)
    np.testing.assert_allclose(store["box"].row(2), [[0, 0, 1, 1]], atol=1e-6)
    assert store["size"].row(1).tolist() == [17, 31]
    assert store["pixels"].row(0).shape == (1, 1, 8, 16)


def test_parts_are_found_by_their_names(tmp_path: Path) -> None:
    root = as_voc(tmp_path)
    lists = root / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    for part, names in (("train", "a\nb\n"), ("val", "c\n")):
        (lists / f"{part}.txt").write_text(names)
    assert [each.path.stem for each in Scenes((root,)).held] == ["a", "b"]
    for part in ("valid", "test"):
        assert [each.path.stem for each in Scenes((root,), part).held] == ["c"]


def test_coco_as_it_is_shared(tmp_path: Path) -> None:
    """Captions and key points lie beside the boxes, and the pictures of a part in a folder of its own."""
    root = as_coco(tmp_path)
    boxes = root / "annotations" / "instances.json"
    for part in ("train", "val"):
        for kind in ("captions", "person_keypoints"):
            (root / "annotations" / f"{kind}_{part}2017.json").write_text('{"images": [], "annotations": []}')
        (root / "annotations" / f"instances_{part}2017.json").write_text(boxes.read_text())
    boxes.unlink()
    (root / "images").rename(root / "train2017")
    assert Scenes((root,)).survey.boxes == 3
    assert Scenes((root / "annotations" / "instances_val2017.json",)).survey.boxes == 3


def test_boxes_are_cut_at_the_edge_and_those_without_area_counted(tmp_path: Path) -> None:
    root = as_coco(tmp_path / "data") if (tmp_path / "data").mkdir() is None else tmp_path
    path = root / "annotations" / "instances.json"
    tree = json.loads(path.read_text())
    for box in ([-5, -5, 15, 15], [40, 2, 9, 9], [3, 3, 0, 5]):
        tree["annotations"].append({"image_id": 1, "category_id": 7, "bbox": box})
    tree["images"].append({"id": 9, "file_name": "gone.png"})
    path.write_text(json.dumps(tree))
    data = Scenes((root,))
    assert data.survey.boxes == 4
    assert data.survey.cut.count == 2
    assert "has no area in a picture of 31 x 17" in data.survey.cut.first
    assert data.survey.lost.count == 1
    store = data.store(tmp_path / "store", Fit(8, 16, 1, "stretch"), ["cat", "dog"])
    np.testing.assert_allclose(store["box"].row(1), [[0, 0, 10 / 31, 10 / 17]], atol=1e-6)
    assert "gone.png does not exist" in lost_in(store)


def test_annotations_without_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    for name in ("coco", "yolo"):
        (tmp_path / name).mkdir()
    coco = as_coco(tmp_path / "coco")
    path = coco / "annotations" / "instances.json"
    tree = json.loads(path.read_text())
    for number in (55, 56):
        tree["annotations"].append({"image_id": number, "category_id": 7, "bbox": [1, 1, 5, 5]})
    path.write_text(json.dumps(tree))
    data = Scenes((coco,))
    assert data.survey.boxes == 3
    assert data.astray.line().startswith("2 left out that cannot be read, the first: annotation 3 of ")
    assert data.astray.first.endswith("names image 55")
    yolo = as_yolo(tmp_path / "yolo")
    (yolo / "labels" / "train" / "gone[1].txt").write_text("0 0.5 0.5 0.1 0.1\n")
    data = Scenes((yolo,))
    assert data.survey.boxes == 3
    assert (data.astray.count, data.astray.first[-27:]) == (1, "/gone[1].txt has no picture")


def test_a_folder_is_listed_once_however_many_pictures_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = as_coco(tmp_path)
    listed: list[Path] = []
    real = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: listed.append(path) or real(path))
    assert len(Scenes((root,)).held) == 3
    assert listed.count(root) == 1


def spoiled(make: Callable[[Path], Path], name: str, old: str, new: str) -> Callable[[Path], Path]:
    def spoil(root: Path) -> Path:
        make(root)
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))
        return root

    return spoil


COCO, YOLO, VOC = "annotations/instances.json", "labels/train/a.txt", "Annotations/a.xml"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: root, "holds no boxes: neither Annotations"),
        (lambda root: root / "gone", "gone does not exist"),
        (
            spoiled(as_coco, COCO, '"categories"', '"cats"'),
            "does not hold images, annotations and categories",
        ),
        (
            spoiled(as_coco, COCO, '"category_id": 90', '"category_id": 91'),
            "1 boxes are of categories that are not there, the first: annotation 1 names category 91",
        ),
        (spoiled(as_coco, COCO, "[2, 3, 10, 6]", "[2, 3]"), "annotation 0 of .* has no bbox of four numbers"),
        (spoiled(as_coco, COCO, "[2, 3, 10, 6]", '[2, 3, 10, "NaN"]'), "has no bbox of four numbers"),
        (spoiled(as_coco, COCO, '"bbox"', '"box"'), "annotation 0 of .* has no bbox of four numbers"),
        (spoiled(as_coco, COCO, "{", "("), "is no JSON"),
        (spoiled(as_yolo, YOLO, "1 0", "5 0"), "line 2: class 5 has no name"),
        (spoiled(as_yolo, YOLO, "0 0", "cat 0"), "line 1: a box is class, x, y, width and height"),
        (spoiled(as_yolo, "data.yaml", "names", "nomes"), "must have `names`"),
        (spoiled(as_yolo, "data.yaml", "[cat", "[[cat"), "is no YAML"),
        (spoiled(as_voc, VOC, "<xmin>2", "<xmin>x"), "object 0 has no bndbox of four numbers"),
        (spoiled(as_voc, VOC, "<name>cat</name>", ""), "object 0 has no name"),
        (spoiled(as_voc, VOC, "<annotation>", "<annotation"), "is no XML"),
    ],
)
def test_bad_data_is_one_line(make: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as caught:
        _ = Scenes((make(tmp_path),)).survey
    assert "\n" not in str(caught.value)


def test_pictures_without_any_box_cannot_be_learned_from(tmp_path: Path) -> None:
    root = as_yolo(tmp_path)
    for path in (root / "labels" / "train").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"there is no box in any of 3 pictures$"):
        _ = Scenes((root,)).survey
    (root / "labels" / "train" / "a.txt").write_text("0 0.5 0.5 0 0.1\n")
    with pytest.raises(
        DataError, match=r"no box in any of 3 pictures; 1 left out \(boxes\), the first: .*a\."
    ):
        _ = Scenes((root,)).survey
