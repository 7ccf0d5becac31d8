"""Calls laid together: order, causal rows, windows that have dropped their first places."""

import torch

from regard.look.maps import maps
from regard.look.trace import Heard, Trace

H = 3


def heard(*calls: torch.Tensor) -> list[Heard]:
    return [Heard(call[None], None) for call in calls]


def trace(encoder: dict, decoder: dict) -> Trace:
    return Trace([5, 2], [6, 7, 2], [0.0] * 3, encoder, decoder)


def test_a_growing_cache_becomes_a_triangle():
    rows = [torch.rand(H, 1, t + 1) for t in range(5)]
    (found,) = maps(trace({}, {"decoder.1.self": heard(*rows)}))
    assert (found.kind, found.layer, found.weights.shape) == ("decoder", 1, (H, 5, 5))
    for t, row in enumerate(rows):
        torch.testing.assert_close(found.weights[:, t, : t + 1], row[:, 0])
        assert not found.weights[:, t, t + 1 :].any()


def test_a_window_keeps_its_newest_place_on_the_diagonal():
    rows = [torch.rand(H, 1, min(t + 1, 2)) for t in range(5)]
    (found,) = maps(trace({}, {"decoder.0.self": heard(*rows)}))
    for t, row in enumerate(rows):
        torch.testing.assert_close(found.weights[:, t, max(0, t - 1) : t + 1], row[:, 0])
        assert not found.weights[:, t, : max(0, t - 1)].any()


def test_kinds_come_in_order_and_layers_ascend():
    one = heard(torch.rand(H, 1, 2))
    names = ["decoder.1.cross", "decoder.0.cross", "decoder.0.self"]
    found = maps(trace({"encoder.0.self": heard(torch.rand(H, 2, 2))}, dict.fromkeys(names, one)))
    assert [each.name for each in found] == [
        "encoder.0.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.cross",
    ]
    assert found[2].sides == ("target", "source")
