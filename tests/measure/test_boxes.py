"""AP as COCO counts it: pycocotools against faster-coco-eval, and cases that can be counted by hand."""

import numpy as np
import pytest

from regard.measure.boxes import Objects, as_coco, as_results, box_scores


def scene(random: np.random.Generator, count: int) -> Objects:
    corner = random.uniform(0, 80, (count, 2))
    return Objects(
        np.hstack([corner, corner + random.uniform(8, 60, (count, 2))]), random.integers(0, 3, count)
    )


def guessed(true: Objects, random: np.random.Generator) -> Objects:
    """Boxes near the true ones, some of another class, some of nothing."""
    count = len(true.boxes)
    boxes = true.boxes + random.normal(0, 4, (count, 4))
    labels = np.where(random.random(count) < 0.2, (true.labels + 1) % 3, true.labels)
    more = scene(random, 2)
    return Objects(
        np.vstack([boxes, more.boxes]), np.concatenate([labels, more.labels]), random.uniform(0, 1, count + 2)
    )


def test_two_counters_agree() -> None:
    from faster_coco_eval import COCO, COCOeval_faster

    random = np.random.default_rng(1)
    true = [scene(random, count) for count in (3, 5, 0, 7, 2)]
    found = [guessed(each, random) for each in true]
    ours = box_scores(true, found, 3)
    held = COCO(as_coco(true, 3))
    judge = COCOeval_faster(
        held, held.loadRes(as_results(found)), iouType="bbox", print_function=lambda *_: None
    )
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    theirs = dict(zip(("ap", "ap50", "ap75"), judge.stats[:3], strict=True))
    for name, value in theirs.items():
        assert ours[name].value == pytest.approx(float(value), abs=1e-6)
    assert 0.05 < ours["ap"].value < ours["ap50"].value < 1


def test_perfect_and_nothing() -> None:
    random = np.random.default_rng(2)
    true = [scene(random, 3), scene(random, 4)]
    perfect = [Objects(each.boxes, each.labels, np.ones(len(each.boxes))) for each in true]
    assert box_scores(true, perfect, 3)["ap"].value == pytest.approx(1.0)
    empty = [Objects(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0)) for _ in true]
    assert box_scores(true, empty, 3)["ap50"].value == 0.0


def test_a_box_found_twice_counts_once() -> None:
    true = [Objects(np.array([[10.0, 10, 50, 50]]), np.array([0]))]
    once = [Objects(true[0].boxes, true[0].labels, np.array([0.9]))]
    twice = [Objects(np.repeat(true[0].boxes, 2, 0), np.array([0, 0]), np.array([0.9, 0.8]))]
    both = [Objects(np.array([[10.0, 10, 50, 50], [60, 60, 90, 90]]), np.array([0, 0]))]
    assert box_scores(true, once, 1)["ap"].value == pytest.approx(1.0)
    assert box_scores(both, twice, 1)["ap50"].value == pytest.approx(0.5, abs=0.02)
