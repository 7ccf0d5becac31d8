"""Pictures in every layout that people keep them in come out as the same pixels and labels."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.pictures import Pictures, lost_in
from regard.errors import DataError
from regard.images.picture import Fit

GREY = np.random.default_rng(3).integers(0, 256, (6, 5, 7), dtype=np.uint8)  # 6 pictures of 5 rows
NAMES = ["10", "9", "9", "10", "2", "2"]  # by number: 2, 9, 10


def as_folders(place: Path) -> Path:
    for number, (image, name) in enumerate(zip(GREY, NAMES, strict=True)):
        (place / name).mkdir(exist_ok=True)
        Image.fromarray(image).save(place / name / f"{number}.png")
    (place / ".hidden").write_text("not looked at")
    return place


def as_list(place: Path) -> Path:
    (place / "below").mkdir()
    lines = ["path,label"]
    for number, (image, name) in enumerate(zip(GREY, NAMES, strict=True)):
        Image.fromarray(image).save(place / "below" / f"a, {number}.png")
        lines.append(f'"below/a, {number}.png",{name}')
    (place / "list.csv").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return place / "list.csv"


def as_archive(place: Path) -> Path:
    np.savez_compressed(place / "held.npz", images=GREY, labels=np.array(NAMES, int))
    return place / "held.npz"


def as_idx(place: Path, *, part: str = "train", zipped: bool = False) -> Path:
    images = struct.pack(">4i", 0x803, *GREY.shape) + GREY.tobytes()
    labels = struct.pack(">2i", 0x801, len(NAMES)) + bytes(map(int, NAMES))
    for name, data in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
        path = place / (name + ".gz" * zipped)
        path.write_bytes(gzip.compress(data) if zipped else data)
    return place


def as_wide_list(place: Path) -> Path:
    as_list(place)
    lines = ["id,Label,file"]
    lines += [f'{number},{name},"below/a, {number}.png"' for number, name in enumerate(NAMES)]
    (place / "list.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place / "list.csv"


LAYOUTS = {
    "folders": as_folders,
    "list": as_list,
    "a list with a heading that names more": as_wide_list,
    "npz": as_archive,
    "idx": as_idx,
    "zipped idx": lambda place: as_idx(place, zipped=True),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pictures = Pictures((layout(tmp_path / "data"),))
    assert pictures.labels == {"2": 2, "9": 2, "10": 2}
    assert list(pictures.labels) == ["2", "9", "10"]
    assert pictures.survey.sizes == {(5, 7): 6}
    assert not pictures.survey.colour
    store = pictures.store(tmp_path / "store", Fit(5, 7, 1), list(pictures.labels))
    found = {
        (int(label), image.tobytes())
        for label, image in zip(store["label"].values, store["pixels"].values, strict=True)
    }
    place = {name: at for at, name in enumerate(pictures.labels)}
    assert found == {(place[name], image.tobytes()) for name, image in zip(NAMES, GREY[:, None], strict=True)}
    assert lost_in(store) == ""
    assert store["pixels"].row(3).shape == (1, 1, 5, 7)


def test_parts_of_a_folder_are_found(tmp_path: Path) -> None:
    for part in ("train", "val"):
        (tmp_path / part).mkdir()
        as_folders(tmp_path / part)
    (tmp_path / "val" / "2" / "4.png").unlink()
    assert Pictures((tmp_path,)).survey.count == 6
    assert Pictures((tmp_path,), "valid").survey.count == 5
    assert Pictures((tmp_path,), "test").survey.count == 5  # there is no other that was not trained on
    as_idx(tmp_path / "val")
    as_idx(tmp_path / "val", part="t10k")
    name = Pictures((tmp_path / "val",), "test").sources[0].files().__next__()[0].name
    assert name == "t10k-images-idx3-ubyte"


def test_pictures_without_labels_are_pictures(tmp_path: Path) -> None:
    for number, image in enumerate(GREY):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    (tmp_path / "notes.txt").write_text("passed over")
    pictures = Pictures((tmp_path,))
    assert pictures.labels == {}
    assert pictures.store(tmp_path / "store", Fit(5, 7, 1))["label"].values.tolist() == [-1] * 6
    assert Pictures((tmp_path / "1.png",)).survey.count == 1


@pytest.mark.parametrize(
    ("images", "colour"),
    [
        ((np.ones((3, 5, 7)) * 0.5).astype(np.float32), False),
        (np.full((3, 5, 7), 127.6), False),
        (np.full((3, 5, 7), 128 * 257, np.uint16), False),
        (np.full((3, 5, 7), 128, np.int64), False),
        (np.full((3, 5, 7, 1), 128, np.uint8), False),
        (np.full((3, 1, 5, 7), 128, np.uint8), False),
        (np.full((3, 5, 7, 3), 128, np.uint8), True),
        (np.full((3, 3, 5, 7), 128, np.uint8), True),
        (np.full((3, 3, 5, 7), 0.502), True),
    ],
    ids=lambda value: "" if isinstance(value, bool) else f"{value.dtype}{value.shape}",
)
def test_arrays_of_any_kind(images: np.ndarray, colour: bool, tmp_path: Path) -> None:
    np.savez(tmp_path / "held.npz", images=images, labels=np.array(["a", "b", "a"]))
    pictures = Pictures((tmp_path / "held.npz",))
    assert pictures.labels == {"a": 2, "b": 1}
    assert pictures.survey.colour == colour
    store = pictures.store(tmp_path / "store", Fit(5, 7, 1), ["b", "a"])
    assert store["label"].values.tolist() == [1, 0, 1]
    assert (store["pixels"].values == 128).all()


def test_what_cannot_be_read_is_left_out_counted_and_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    as_folders(data)
    whole = (data / "9" / "1.png").read_bytes()
    (data / "9" / "1.png").write_bytes(whole[:60])
    (data / "9" / "notes.txt").write_text("no picture")
    pictures = Pictures((data,))
    assert pictures.survey.count == 6  # the head of the cut one is whole
    assert pictures.survey.lost.count == 1
    store = pictures.store(tmp_path / "store", Fit(5, 7, 1), list(pictures.labels))
    assert len(store) == 5
    assert lost_in(store).startswith("2 left out that cannot be read, the first: ")
    assert str(data / "9" / "1.png") in lost_in(store)


def test_another_content_is_another_store(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    first = Pictures((as_folders(data),)).fingerprint()
    assert Pictures((data,)).fingerprint() == first
    (data / "2" / "5.png").rename(data / "9" / "5.png")
    assert Pictures((data,)).fingerprint() != first


def broken_npz(**arrays: np.ndarray) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        np.savez(place / "held.npz", **arrays)
        return place / "held.npz"

    return make


def cut(place: Path) -> Path:
    path = as_archive(place)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def short_idx(place: Path) -> Path:
    path = as_idx(place) / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-40])
    return place


def written(name: str, text: str) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        (place / name).write_text(text, encoding="utf-8")
        return place / name

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda place: place / "gone", "gone does not exist"),
        (lambda place: place, "there is no picture to learn from"),
        (written("notes.md", "x"), "a folder a class, a .csv of path,label, or an .npz"),
        (written("list.csv", "a.png,b,c\n"), "list.csv line 1: 3 columns where there are 2"),
        (written("list.csv", "path,label\na.png,\n"), "list.csv line 2: the label is missing"),
        (written("list.csv", "label,path\na,\n"), "list.csv line 2: the path is missing"),
        (written("list.csv", f"path,label\nx,{'a' * 200_000}\n"), "list.csv line 2 is no line of a table"),
        (written("list.csv", "a.png,b\n"), "no picture to learn from; 1 left out .*a.png does not exist"),
        (written("held.npz", "text"), "held.npz is no .npz that can be read"),
        (cut, "held.npz is no .npz that can be read"),
        (short_idx, "train-images-idx3-ubyte ends 2 rows early"),
        (written("x-images-idx3-ubyte", "text"), "is no idx file of 3 dimensions"),
        (broken_npz(pictures=GREY), "has no array `images`"),
        (broken_npz(images=GREY[0], labels=np.zeros(5)), r"images have shape \(5, 7\)"),
        (broken_npz(images=GREY, labels=np.zeros(5)), r"6 images and labels of shape \(5,\)"),
        (broken_npz(images=np.asfortranarray(GREY)), "lies in Fortran's order"),
        (broken_npz(images=np.zeros((2, 5, 7, 6), np.uint8)), "which is no picture"),
        (broken_npz(images=np.zeros((2, 5, 7), np.complex64)), "holds no plain numbers"),
    ],
)
def test_bad_data_is_one_line(make: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        _ = Pictures((make(tmp_path),)).survey


def test_pictures_beside_folders_of_pictures_have_no_label(tmp_path: Path) -> None:
    as_folders(tmp_path)
    Image.fromarray(GREY[0]).save(tmp_path / "stray.png")
    with pytest.raises(DataError, match="beside folders of pictures"):
        _ = Pictures((tmp_path,)).survey
