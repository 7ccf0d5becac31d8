"""`regard demo --task detection`: glyphs found in noisy scenes, from the fonts that matplotlib ships.

Nothing is downloaded: scenes are drawn and kept with a COCO json, and then it is what `regard train`, `regard
evaluate` and `regard detect` do with anybody's pictures.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.atomic import write_bytes, write_text
from regard.images.glyphs import SCENE_LETTERS, scenes
from regard.tasks.detection import TASK
from regard.tasks.detection.drawing import drawn
from regard.tasks.image.figure import sheet
from regard.tasks.task import command
from regard.training.run import Asked
from regard.training.run import train as run
from regard.training.workspace import refuse_foreign

PICTURES, TESTED, SHOWN, SIDE = 1500, 200, 8, 64
SETTINGS: dict[str, Any] = {"detection.flip": "never"}  # a mirrored letter is none


@dataclass(frozen=True)
class Options:
    """What the demo of detection takes."""

    output: Path = Path("runs/demo-detection")
    minutes: float = 2.2
    fresh: bool = False
    device: str | None = None


def write_scenes(folder: Path, count: int, seed: int, side: int = SIDE) -> Path:
    """Pictures of scenes and a COCO json beside them, made once."""
    from PIL import Image

    path = folder / "annotations.json"
    if path.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, scene in enumerate(scenes(count, side, seed), 1):
        name = f"{number:05d}.png"
        Image.fromarray(scene.pixels[0]).save(folder / name)
        images.append({"id": number, "file_name": name, "height": side, "width": side})
        for (left, top, right, bottom), label in zip(
            scene.boxes.tolist(), scene.labels.tolist(), strict=True
        ):
            box = [left, top, right - left, bottom - top]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": label, "bbox": box}
            )
    categories = [{"id": place, "name": letter} for place, letter in enumerate(SCENE_LETTERS)]
    write_text(path, json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return folder


def demo(
    options: Options, *, pictures: int = PICTURES, tested: int = TESTED, more: dict[str, Any] | None = None
) -> None:
    """Draw scenes, learn to find what is in them, and show what it finds in others."""
    refuse_foreign(options.output)
    data = options.output / "data"
    train, test = write_scenes(data / "train", pictures, 1), write_scenes(data / "test", tested, 2)
    asked = Asked(
        options.output,
        overrides=SETTINGS | {"train.minutes": options.minutes} | (more or {}),
        fresh=options.fresh,
        device=options.device,
        origin=f"scenes of {len(SCENE_LETTERS)} letters and digits in the fonts of matplotlib, drawn here",
    )
    run(TASK, TASK.read([train]), asked)
    found = TASK.evaluate(options.output, [test])
    told = ", ".join(found.text().splitlines())
    print(f"\n{told} on {found.more['pictures']:,} scenes that training never saw")
    detector = TASK.load(options.output)
    some = sorted(test.glob("*.png"))[:SHOWN]
    pictures_drawn = [
        drawn(path, seen.objects, detector.names)
        for path, seen in zip(some, detector.detect(some), strict=True)
    ]
    picture = options.output / "scenes.png"
    write_bytes(
        picture, sheet([_pixels(each) for each in pictures_drawn], [path.stem for path in some], 4, size=2.6)
    )
    print(farewell(options.output, picture), flush=True)


def _pixels(png: bytes) -> Any:
    import numpy as np

    from regard.images.picture import open_picture

    return np.asarray(open_picture(png).convert("RGB")).transpose(2, 0, 1)


def farewell(folder: Path, picture: Path) -> str:
    """The commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    return "\n".join(
        (
            f"What it found in {SHOWN} of them: {picture}",
            "-" * 60,
            "Go on with:",
            f"  {regard} show {place}",
            f"  {regard} detect -m {place} {place}/data/test/00001.png --threshold 0.5 -o drawn",
            f"  {regard} train --task detection my_pictures/ -o runs/mine        # COCO, YOLO or Pascal VOC",
        )
    )
