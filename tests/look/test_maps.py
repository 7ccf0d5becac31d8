"""Calls laid together: order, causal rows, windows that have dropped their first places."""

import torch

from regard.attention.site import Site, crossing, reading, writing
from regard.look.maps import maps
from regard.look.trace import Heard, Trace

H = 3


def heard(site: Site, *calls: torch.Tensor) -> list[Heard]:
    return [Heard(site, call[None], None) for call in calls]


def trace(encoder: dict, decoder: dict) -> Trace:
    return Trace([5, 2], [6, 7, 2], [0.0] * 3, encoder, decoder)


def test_a_growing_cache_becomes_a_triangle():
    rows = [torch.rand(H, 1, t + 1) for t in range(5)]
    (found,) = maps(trace({}, {"decoder.1.self": heard(writing(1), *rows)}))
    assert (found.kind, found.layer, found.weights.shape) == ("decoder", 1, (H, 5, 5))
    for t, row in enumerate(rows):
        torch.testing.assert_close(found.weights[:, t, : t + 1], row[:, 0])
        assert not found.weights[:, t, t + 1 :].any()


def test_a_window_keeps_its_newest_place_on_the_diagonal():
    rows = [torch.rand(H, 1, min(t + 1, 2)) for t in range(5)]
    (found,) = maps(trace({}, {"decoder.0.self": heard(writing(0), *rows)}))
    for t, row in enumerate(rows):
        torch.testing.assert_close(found.weights[:, t, max(0, t - 1) : t + 1], row[:, 0])
        assert not found.weights[:, t, : max(0, t - 1)].any()


def test_kinds_come_in_order_and_layers_ascend():
    sites = [crossing(1), crossing(0), writing(0)]
    later = {site.name: heard(site, torch.rand(H, 1, 2)) for site in sites}
    found = maps(trace({"encoder.0.self": heard(reading(0), torch.rand(H, 2, 2))}, later))
    assert [each.name for each in found] == [
        "encoder.0.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.cross",
    ]
    assert found[2].sides == ("target", "source")
