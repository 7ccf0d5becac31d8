"""`regard detect`: pictures in, boxes around what is in them out. The work is regard/tasks/detection's."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.tasks.detection.detector import Detector, Seen


@dataclass(frozen=True)
class Options:
    """What `regard detect` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    pictures: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PICTURE...",
            help="Picture files.",
            show_default="one each line of the input",
            readable=False,
        ),
    ] = None
    source: Annotated[
        Path,
        typer.Option("-i", "--input", metavar="F", readable=False, help="Paths, a line each; - is stdin."),
    ] = Path("-")
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="A folder for the pictures with their boxes drawn."
        ),
    ] = None
    threshold: Annotated[float, typer.Option(help="How sure a box must be, 0 to 1.")] = 0.5
    as_json: Annotated[bool, typer.Option("--json", help="One COCO json instead of lines.")] = False
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"--threshold ({self.threshold:g}) must be between 0 and 1")


@takes(Options)
def detect(options: Options) -> None:
    """Find what is in pictures, and where."""
    from regard.cli.streams import reading
    from regard.process.device import pick_device
    from regard.tasks.task import expect, load

    expect(options.model, "detection")
    detector: Detector = load(options.model, device=pick_device(options.device))
    if options.pictures:
        _work(options, detector, map(str, options.pictures))
        return
    with reading(options.source) as lines:
        _work(options, detector, lines)


def _work(options: Options, detector: "Detector", paths: Iterable[str]) -> None:
    """Lines as they are found, or all of it as one json; drawings beside."""
    given: list[str] = []
    coco, drawings = _Coco(detector.names), _Drawings(options.output, detector.names)
    lost, first = 0, None
    alone = len(options.pictures or ()) == 1  # then what is wrong with it is all there is to say

    def passed() -> Iterator[str]:
        for path in paths:
            given.append(path)
            yield path

    for number, found in enumerate(detector.try_all(passed(), options.threshold)):
        path = given[number]
        if isinstance(found, DataError):
            lost += 1
            first = first or found
            if not alone:
                note(str(found))
            continue
        coco.add(path, found)
        for one in () if options.as_json else found.objects:
            box = "\t".join(f"{value:.1f}" for value in one.box)
            print(f"{path}\t{one.name}\t{one.score:.3f}\t{box}", flush=True)
        drawings.add(Path(path), found)
    if options.as_json:
        print(json.dumps(coco.tree, ensure_ascii=False), flush=True)
    if first is not None and alone:
        raise first
    if lost:
        raise DataError(f"{lost:,} of {len(given):,} pictures could not be read; the lines above say why")


class _Drawings:
    """Pictures with their boxes, if there is a folder for them; the second of a name gets a number."""

    def __init__(self, folder: Path | None, names: list[str]) -> None:
        self.folder, self.names = folder, names
        self.used: set[str] = set()

    def add(self, path: Path, found: "Seen") -> None:
        """One picture."""
        from regard.atomic import write_bytes
        from regard.tasks.detection.drawing import drawn

        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make {self.folder}: {error.strerror}") from error
        called = (f"{path.stem}-{number}" if number > 1 else path.stem for number in count(1))
        name = next(each for each in called if each not in self.used)
        self.used.add(name)
        write_bytes(self.folder / f"{name}.png", drawn(path, found.objects, self.names))


class _Coco:
    """What was found, as COCO writes it: a box is left, top, width and height; ids begin at 1."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.tree: dict[str, list[Any]] = {
            "images": [],
            "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
            "annotations": [],
        }

    def add(self, path: str, found: "Seen") -> None:
        """One picture."""
        image = len(self.tree["images"]) + 1
        self.tree["images"].append(
            {"id": image, "file_name": path, "height": found.height, "width": found.width}
        )
        for one in found.objects:
            left, top, right, bottom = one.box
            self.tree["annotations"].append(
                {
                    "id": len(self.tree["annotations"]) + 1,
                    "image_id": image,
                    "category_id": self.names.index(one.name) + 1,
                    "bbox": [left, top, right - left, bottom - top],
                    "area": (right - left) * (bottom - top),
                    "iscrowd": 0,
                    "score": one.score,
                }
            )
