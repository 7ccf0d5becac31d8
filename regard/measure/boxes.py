"""Average precision of boxes, as COCO counts it: AP over IoU 0.50 to 0.95, AP50 and AP75.

pycocotools counts; here is what it is handed. Boxes are corners in pixels. Lin et al. 2014, section 5.
"""

import contextlib
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.measure.score import Score

Numbers = npt.NDArray[Any]


class Objects(NamedTuple):
    """Boxes (N, 4) of one picture, their labels (N,), and how sure each is (N,); true ones are not asked."""

    boxes: Numbers
    labels: Numbers
    scores: Numbers | None = None


def as_coco(true: Sequence[Objects], classes: int) -> dict[str, Any]:
    """True boxes as a COCO json."""
    annotations = [
        {"image_id": row, "category_id": int(label), "bbox": _sides(box), "area": _area(box), "iscrowd": 0}
        for row, each in enumerate(true)
        for box, label in zip(each.boxes, each.labels, strict=True)
    ]
    return {
        "info": {},
        "images": [{"id": row} for row in range(len(true))],
        "categories": [{"id": number, "name": str(number)} for number in range(classes)],
        "annotations": [{"id": place, **each} for place, each in enumerate(annotations, 1)],
    }


def as_results(found: Sequence[Objects]) -> list[dict[str, Any]]:
    """Found boxes as COCO's results."""
    return [
        {"image_id": row, "category_id": int(label), "bbox": _sides(box), "score": float(score)}
        for row, each in enumerate(found)
        for box, label, score in zip(each.boxes, each.labels, np.asarray(each.scores), strict=True)
    ]


def _sides(box: Numbers) -> list[float]:
    left, top, right, bottom = (float(value) for value in box)
    return [left, top, right - left, bottom - top]


def _area(box: Numbers) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def box_scores(true: Sequence[Objects], found: Sequence[Objects], classes: int) -> dict[str, Score]:
    """AP, AP50 and AP75 of found boxes, a picture each; 0 to 1."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    results = as_results(found)
    count = sum(len(each.boxes) for each in true)
    values = [0.0, 0.0, 0.0]
    if results and count:
        with contextlib.redirect_stdout(io.StringIO()):  # it tells how long it takes
            held = COCO()
            held.dataset = as_coco(true, classes)
            held.createIndex()
            judge = COCOeval(held, held.loadRes(results), "bbox")
            judge.evaluate()
            judge.accumulate()
            judge.summarize()
        values = [max(0.0, float(value)) for value in judge.stats[:3]]
    names = {"ap": "AP", "ap50": "AP50", "ap75": "AP75"}
    return {
        name: Score(value, label=label, digits=4, count=len(true))
        for (name, label), value in zip(names.items(), values, strict=True)
    }
