"""The set loss against naive loops: the cheapest matching of all, and DETR's sums."""

from itertools import permutations

import pytest
import torch
import torch.nn.functional as F

from regard.layers.boxes import corners, overlap
from regard.models.detector import Found
from regard.tasks.detection.augment import varied
from regard.tasks.detection.denoise import hint_loss, spoil
from regard.tasks.detection.matching import costs, match, set_loss


def random_set(seed: int, queries: int = 5, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(queries, classes + 1), torch.rand(queries, 4) * 0.4 + 0.2


@pytest.mark.parametrize("seed", range(5))
def test_no_other_matching_is_cheaper(seed: int) -> None:
    classes, boxes = random_set(seed)
    wanted, around = torch.tensor([0, 2, 1]), torch.rand(3, 4) * 0.4 + 0.2
    table = costs(classes, boxes, wanted, around)
    queries, objects = match(classes, boxes, wanted, around)
    found = sum(float(table[q, o]) for q, o in zip(queries, objects, strict=True))
    best = min(sum(float(table[q, o]) for o, q in enumerate(some)) for some in permutations(range(5), 3))
    assert found == pytest.approx(best, abs=1e-5)
    assert len(set(queries.tolist())) == 3


def test_the_loss_is_the_sum_of_a_naive_loop() -> None:
    layers = [random_set(seed) for seed in (1, 2)]
    wanted, around = [torch.tensor([1, 1])], [torch.rand(2, 4) * 0.4 + 0.2]
    found = Found([classes[None] for classes, _ in layers], [boxes[None] for _, boxes in layers])
    total = 0.0
    for classes, boxes in layers:
        queries, objects = match(classes, boxes, wanted[0], around[0])
        target = [3] * 5
        for query, one in zip(queries.tolist(), objects.tolist(), strict=True):
            target[query] = int(wanted[0][one])
            near = (boxes[query] - around[0][one]).abs().sum()
            _, shared = overlap(corners(boxes[query]), corners(around[0][one]))
            total += float(5 * near + 2 * (1 - shared))
        weights = [0.1 if name == 3 else 1.0 for name in target]
        parts = [-float(F.log_softmax(row, -1)[name]) for row, name in zip(classes, target, strict=True)]
        total += 2 * sum(w * p for w, p in zip(weights, parts, strict=True)) / sum(weights)
    assert float(set_loss(found, wanted, around)) == pytest.approx(total / 2, rel=1e-5)


def test_a_picture_with_nothing_in_it_costs_only_its_false_finds() -> None:
    classes, boxes = random_set(3)
    empty = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, 4)]
    calm = classes.clone()
    calm[:, -1] += 20
    loud, quiet = (float(set_loss(Found([c[None]], [boxes[None]]), *empty)) for c in (classes, calm))
    assert quiet < 1e-3 < loud
    assert spoil(*empty, groups=3, classes=3, queries=5) is None


def test_hints_that_are_put_right_cost_nothing() -> None:
    torch.manual_seed(4)
    names, boxes = (
        [torch.tensor([0, 2]), torch.tensor([1])],
        [torch.rand(2, 4) * 0.3 + 0.3, torch.rand(1, 4) * 0.3 + 0.3],
    )
    task = spoil(names, boxes, groups=2, classes=3, queries=5)
    assert task is not None
    assert task.hints.mask.shape == (1, 1, 9, 9)
    sure = F.one_hot(task.classes.clamp(min=0), 4).float() * 30
    right = Found(
        [torch.cat([sure, torch.zeros(2, 5, 4)], 1)], [torch.cat([task.boxes, torch.rand(2, 5, 4)], 1)]
    )
    assert float(hint_loss(right, task)) < 1e-4
    spoiled = Found(right.classes, [torch.cat([task.hints.boxes, torch.rand(2, 5, 4)], 1)])
    assert float(hint_loss(spoiled, task)) > 0.1


def test_boxes_go_where_their_pixels_go() -> None:
    torch.manual_seed(6)
    pixels, boxes = torch.zeros(40, 1, 64, 64), []
    for row in range(40):
        left, top = 8 + row % 20, 14 + row // 2
        pixels[row, :, top : top + 12, left : left + 20] = 1
        boxes.append(torch.tensor([[left + 10, top + 6, 20, 12]]) / 64)
    moved, found, left_ = varied(pixels, boxes, 1.0, (True, True))
    for picture, box, kept in zip(moved, found, left_, strict=True):
        if not bool(kept.any()):
            continue
        rows, columns = (picture[0] > 0.3).nonzero(as_tuple=True)
        seen = torch.tensor([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) / 64
        torch.testing.assert_close(seen, corners(box)[0], atol=0.04, rtol=0)
    same, kept_boxes, _ = varied(pixels, boxes, 0.0, (False, False))
    torch.testing.assert_close(same, pixels, atol=1e-4, rtol=0)
    torch.testing.assert_close(torch.cat(kept_boxes), torch.cat(boxes), atol=1e-5, rtol=0)
