"""Boxes against naive loops: corners and centres, shared area, and what lies between."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.layers.boxes import area, centred, corners, logit, overlap

NUMBER = st.floats(0, 1, width=32)
BOX = st.tuples(NUMBER, NUMBER, NUMBER, NUMBER).map(
    lambda box: (min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3]))
)


def naive(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, float]:
    def size(box: tuple[float, ...]) -> float:
        return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])

    shared = size((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    union = size(a) + size(b) - shared
    around = size((min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])))
    iou = shared / max(union, 1e-9)
    return iou, iou - (around - union) / max(around, 1e-9)


@given(BOX, BOX)
def test_overlap_is_that_of_a_naive_loop(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    wanted = naive(a, b)
    found = overlap(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
    torch.testing.assert_close(
        torch.stack(found), torch.tensor(wanted, dtype=torch.float64), atol=1e-6, rtol=1e-6
    )


@given(BOX)
def test_corners_and_centres_are_two_ways_to_say_it(box: tuple[float, ...]) -> None:
    held = torch.tensor(box, dtype=torch.float64)
    torch.testing.assert_close(corners(centred(held)), held)
    assert abs(float(area(held)) - (box[2] - box[0]) * (box[3] - box[1])) < 1e-9


def test_pairs_broadcast_and_logits_are_finite() -> None:
    one, other = torch.rand(5, 1, 4).sort(-1)[0], torch.rand(1, 3, 4).sort(-1)[0]
    assert [part.shape for part in overlap(one, other)] == [(5, 3), (5, 3)]
    assert logit(torch.tensor([0.0, 0.5, 1.0])).isfinite().all()
    torch.testing.assert_close(logit(torch.tensor([0.3])).sigmoid(), torch.tensor([0.3]))
