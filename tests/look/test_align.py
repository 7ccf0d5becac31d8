"""Alignments: the word that was looked at most, from the layer that is sharpest."""

import dataclasses

import pytest
import torch

from regard.attention.site import crossing
from regard.errors import UsageError
from regard.look.align import align, sharpest
from regard.look.look import Look
from regard.look.maps import Map


def pointing(seen: Look, layer: int, share: float) -> Map:
    """A layer in which every piece written looks at the source's pieces from back to front."""
    rows, keys = len(seen.target.tokens), len(seen.source.tokens)
    weights = torch.full((3, rows, keys), (1 - share) / keys)
    for t in range(rows):
        weights[:, t, max(0, keys - 2 - t)] += share
    return Map(crossing(layer), weights)


def test_the_sharpest_layer_is_taken_and_pairs_follow_it(seen):
    told = dataclasses.replace(seen, maps=(pointing(seen, 0, 0.1), pointing(seen, 1, 0.8)))
    assert sharpest(told) == 1
    found = align(told)
    assert found.layer == 1
    assert len(found.pairs) == len(seen.target.spaced)
    keys = len(seen.source.tokens)
    for source, target in found.pairs:
        word = seen.target.spaced[target]
        looked = [max(0, keys - 2 - t) for t in range(word.first, word.end)]
        within = [sum(w.first <= place < w.end for place in looked) for w in seen.source.spaced]
        assert within[source] == max(within)


def test_pharaoh_text(seen):
    text = str(seen.alignment(0))
    pairs = [tuple(map(int, pair.split("-"))) for pair in text.split()]
    assert pairs == list(seen.alignment(0).pairs)
    assert all(0 <= i < len(seen.source.spaced) and 0 <= j < len(seen.target.spaced) for i, j in pairs)


def test_without_cross_attention_there_is_none(seen):
    only = dataclasses.replace(seen, maps=tuple(m for m in seen.maps if m.kind != "cross"))
    with pytest.raises(UsageError, match="no cross-attention"):
        only.alignment()
    assert only.to_dict()["alignment"] is None


def test_an_output_without_words_has_no_pairs(seen):
    silent = dataclasses.replace(seen.target, spaced=())
    empty = dataclasses.replace(seen, sides={**seen.sides, "target": silent})
    assert str(empty.alignment()) == ""
