"""How pictures with boxes lie in files: COCO's json, YOLO's text files, Pascal VOC's xml; found by looking.

Each becomes `Annotated`: a picture, boxes by their corners, and a label a box.
"""

import glob
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from regard.data.lines import decode, read_lines
from regard.data.picture_files import PARTS
from regard.data.pictures import Lost
from regard.errors import DataError, ModelError, shown
from regard.foreign import MOST_JSON, MOST_SETTINGS, read_bytes, read_json
from regard.images.picture import named_as_picture

Box = tuple[float, float, float, float]  # left, top, right, bottom
Boxes = list[Box]
_OTHER = {"test": "valid", "valid": "test", "train": ""}


class Annotated(NamedTuple):
    """A picture, boxes of what is in it, and their labels; `shares`: of the picture's sides, not pixels."""

    path: Path
    boxes: Boxes
    labels: list[str]
    shares: bool = False


def annotated(path: Path, part: str, astray: Lost) -> list[Annotated]:
    """The pictures of a part of a folder, or of a COCO json; `astray` counts what is said of no picture."""
    if path.is_file() and path.suffix == ".json":
        root = path.parent.parent if path.parent.name == "annotations" else path.parent
        return list(_coco(path, root, astray))
    if not path.is_dir():
        missing = "does not exist" if not path.exists() else "is no folder"
        raise DataError(f"{path} {missing}; give a folder of pictures and boxes, or a COCO json")
    if (path / "Annotations").is_dir():
        return list(_voc(path, part))
    for name in ("data.yaml", "data.yml"):
        if (path / name).is_file():
            return list(_yolo(path / name, part, astray))
    files = [*path.glob("*.json"), *path.glob("annotations/*.json"), *path.glob("*/*.json")]
    if chosen := _of_part([file for file in dict.fromkeys(files) if file.is_file()], part):
        return list(_coco(chosen, path, astray))
    raise DataError(
        f"{path} holds no boxes: neither Annotations/*.xml (Pascal VOC) nor data.yaml (YOLO) nor a COCO json"
    )


def _wanted(part: str) -> Iterator[tuple[str, ...]]:
    """The names that a part may have; then those of what is taken where it is not there."""
    yield PARTS[part]
    if _OTHER[part]:
        yield PARTS[_OTHER[part]]


def _of_part(files: list[Path], part: str) -> Path | None:
    """The file of a part, by its name or its folder's; the only one where no name says anything.

    Beside COCO's instances_ stand captions_ and person_keypoints_ of the same parts: they are passed over.
    """
    files = [file for file in files if file.name.startswith("instances")] or files
    for names in _wanted(part):
        for file in sorted(files):
            if any(name in f"{file.parent.name}/{file.name}" for name in names):
                return file
    strange = [
        file for file in sorted(files) if not any(n in file.name for names in PARTS.values() for n in names)
    ]
    return strange[0] if strange else None


# COCO ------------------------------------------------------------------------------------------------


def _coco(path: Path, root: Path, astray: Lost) -> Iterator[Annotated]:
    try:
        tree = read_json(path, "what COCO has", most=MOST_JSON)
    except ModelError as error:
        raise DataError(str(error).replace("copy the folder again", "make it again")) from error
    try:
        names = {each["id"]: str(each["name"]) for each in tree["categories"]}
        held: dict[Any, tuple[Boxes, list[str]]] = {each["id"]: ([], []) for each in tree["images"]}
        nameless = Lost()
        for place, each in enumerate(tree["annotations"]):
            if each.get("iscrowd"):
                continue
            if each["image_id"] not in held:
                astray.add(f"annotation {place} of {path} names image {shown(each['image_id'])}")
                continue
            if each["category_id"] not in names:
                nameless.add(f"annotation {place} names category {shown(each['category_id'])}")
                continue
            left, top, width, height = _bbox(each, f"annotation {place} of {path}")
            boxes, labels = held[each["image_id"]]
            boxes.append((left, top, left + width, top + height))
            labels.append(names[each["category_id"]])
        if nameless.count:
            raise DataError(
                f"{path}: {nameless.count:,} boxes are of categories that are not there, the first: "
                f"{nameless.first}"
            )
        files = [(each["id"], str(each["file_name"])) for each in tree["images"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        what = "images, annotations and categories" if isinstance(error, KeyError) else "what COCO has in it"
        raise DataError(f"{path} does not hold {what}; is it a COCO json?") from error
    # once: beside thousands of pictures it takes long to tell which are folders
    below = sorted(each for each in root.iterdir() if each.is_dir())
    for number, name in files:
        yield Annotated(_picture(name, [path.parent, root, root / "images", *below]), *held[number])


def _bbox(annotation: Any, where: str) -> Box:
    """Left, top, width and height."""
    try:
        left, top, width, height = map(_number, annotation["bbox"])
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{where} has no bbox of four numbers; mend it, or leave it out") from None
    return left, top, width, height


def _picture(name: str, folders: list[Path]) -> Path:
    """Where a picture of a COCO json lies: beside it, in the folder, or in one below that."""
    found = (folder / name for folder in folders if (folder / name).is_file())
    return next(found, folders[0] / name)


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a box of finite numbers")
    return number


# YOLO ------------------------------------------------------------------------------------------------


def _yolo(path: Path, part: str, astray: Lost) -> Iterator[Annotated]:
    import yaml

    try:
        tree = yaml.safe_load(read_bytes(path, MOST_SETTINGS).decode())
        names = tree["names"]
        words = (
            dict(enumerate(names))
            if isinstance(names, list)
            else {int(key): word for key, word in names.items()}
        )
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} is no YAML; mend it") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} must have `names` of its classes, and `train`, `val` and `test`") from error
    pictures = _yolo_pictures(path, tree, part)
    said = {_yolo_labels(picture) for picture in pictures}
    for folder in sorted({each.parent for each in said} - {each.parent for each in pictures}):
        for file in sorted(folder.glob("*.txt")):
            if file not in said and not any(_yolo_picture_of(file)):
                astray.add(f"{file} has no picture")
    for picture in pictures:
        yield _yolo_boxes(picture, {number: str(word) for number, word in words.items()})


def _yolo_pictures(path: Path, tree: Any, part: str) -> list[Path]:
    """The pictures of a part: a folder or a list of them, from the yaml or from where it lies."""
    root = path.parent
    places = [tree[name] for names in _wanted(part) for name in names if isinstance(tree.get(name), str)]
    places += [f"{base}/{name}" for names in _wanted(part) for name in names for base in ("images", ".")]
    for place in [*places, "images", "."]:
        for folder in (root / str(tree.get("path") or "."), root):
            there = folder / str(place).removeprefix("../")
            if (there / "images").is_dir():
                there = there / "images"
            if there.is_dir() and (
                found := [each for each in sorted(there.iterdir()) if named_as_picture(each)]
            ):
                return found
            if there.is_file() and there.suffix == ".txt":
                return [
                    there.parent / decode(raw, there, n) for n, raw in enumerate(read_lines(there), 1) if raw
                ]
    raise DataError(f"{path}: there are no pictures where its {part} should be")


def _yolo_boxes(picture: Path, names: dict[int, str]) -> Annotated:
    """Lines of class, centre and size, as shares of the picture's sides; no file: nothing is in it."""
    path = _yolo_labels(picture)
    boxes: Boxes = []
    labels: list[str] = []
    for number, raw in enumerate(read_lines(path) if path.is_file() else (), 1):
        words = decode(raw, path, number).split()
        if not words:
            continue
        try:
            kind, (x, y, width, height) = int(words[0]), map(_number, words[1:])
        except ValueError:
            raise DataError(f"{path} line {number}: a box is class, x, y, width and height") from None
        if kind not in names:
            raise DataError(f"{path} line {number}: class {kind} has no name in data.yaml")
        boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        labels.append(names[kind])
    return Annotated(picture, boxes, labels, shares=True)


def _yolo_labels(picture: Path) -> Path:
    """Where the boxes of a picture are said."""
    return _swapped(picture, "images", "labels").with_suffix(".txt")


def _yolo_picture_of(labels: Path) -> Iterator[Path]:
    """The pictures that a file of boxes may be of: those of another part are nobody's loss."""
    beside = _swapped(labels, "labels", "images")
    return (each for each in beside.parent.glob(f"{glob.escape(labels.stem)}.*") if named_as_picture(each))


def _swapped(path: Path, old: str, new: str) -> Path:
    """With the last folder of that name in the place of another."""
    parts = list(path.parts)
    at = max((place for place, name in enumerate(parts) if name == old), default=None)
    if at is not None:
        parts[at] = new
    return Path(*parts)


# Pascal VOC ------------------------------------------------------------------------------------------


def _voc(root: Path, part: str) -> Iterator[Annotated]:
    for path in _voc_files(root, part):
        if not path.is_file():
            raise DataError(f"{path} does not exist, and ImageSets names it")
        try:
            tree = ElementTree.fromstring(read_bytes(path, MOST_SETTINGS).decode("utf-8"))
        except (ElementTree.ParseError, UnicodeDecodeError, ModelError) as error:
            raise DataError(f"{path} is no XML that can be read; mend it, or leave it out") from error
        boxes: Boxes = []
        labels: list[str] = []
        for place, one in enumerate(tree.iter("object")):
            try:
                found = [one.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
                left, top, right, bottom = (_number(value) for value in found)
                name = (one.findtext("name") or "").strip()
            except (TypeError, ValueError):
                raise DataError(f"{path}: object {place} has no bndbox of four numbers") from None
            if not name:
                raise DataError(f"{path}: object {place} has no name")
            boxes.append((left, top, right, bottom))
            labels.append(name)
        yield Annotated(_voc_picture(root, path, tree.findtext("filename")), boxes, labels)


def _voc_files(root: Path, part: str) -> list[Path]:
    folder = root / "Annotations"
    for names in _wanted(part):
        for name in names:
            listed = root / "ImageSets" / "Main" / f"{name}.txt"
            if listed.is_file():
                lines = (
                    decode(raw, listed, number).split() for number, raw in enumerate(read_lines(listed), 1)
                )
                return [folder / f"{words[0]}.xml" for words in lines if words]
    return sorted(folder.glob("*.xml"))


def _voc_picture(root: Path, path: Path, named: str | None) -> Path:
    """The picture of an annotation: by the annotation's own name, or by the one that stands in it."""
    folders = (root / "JPEGImages", root / "images", root)
    for folder in folders:
        for ending in (".jpg", ".jpeg", ".png"):
            if (folder / (path.stem + ending)).is_file():
                return folder / (path.stem + ending)
        if named and (folder / Path(named).name).is_file():
            return folder / Path(named).name
    return folders[0] / f"{path.stem}.jpg"
