"""The tape hears what runs inside its block, and nothing else."""

import torch

from regard.attention import MultiHead, record
from regard.attention.site import Site


def test_every_call_is_kept_in_order_under_its_name() -> None:
    heads = MultiHead(6, 2, site=Site("decoder.0.self"))
    x, y = torch.randn(1, 3, 6), torch.randn(1, 4, 6)
    with record() as tape:
        heads(x, heads.keys_values(x))
        heads(x, heads.keys_values(y))
    heads(x, heads.keys_values(x))
    assert [tuple(weights.shape) for weights in tape["decoder.0.self"]] == [(1, 2, 3, 3), (1, 2, 3, 4)]


def test_an_inner_tape_hears_instead_of_the_outer() -> None:
    heads = MultiHead(6, 2, site=Site("a"))
    x = torch.randn(1, 3, 6)
    with record() as outer:
        with record() as inner:
            heads(x, heads.keys_values(x))
        assert inner.names() == ["a"]
    assert outer.names() == []


def test_recording_changes_no_output() -> None:
    heads = MultiHead(6, 2).eval()
    x = torch.randn(1, 3, 6)
    with record():
        taped = heads(x, heads.keys_values(x), causal=True)
    torch.testing.assert_close(taped, heads(x, heads.keys_values(x), causal=True))


def test_the_vectors_of_a_call_give_its_weights_and_its_output_again() -> None:
    heads = MultiHead(6, 2, site=Site("a")).eval()
    x, y = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    with record(vectors=True) as tape:
        out = heads(x, heads.keys_values(y))
        heads(x, heads.keys_values(x))
    vectors = tape.vectors("a")[0]
    assert vectors is not None
    assert vectors.bias is None
    torch.testing.assert_close(vectors.scores, vectors.q @ vectors.k.mT / 3**0.5)
    torch.testing.assert_close(vectors.scores.softmax(-1), tape["a"][0])
    joined = (tape["a"][0] @ vectors.v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(heads.out(joined), out)
    torch.testing.assert_close(vectors.out, out)
    assert vectors.row(1).q.shape == (1, 2, 3, 3)


def test_vectors_are_held_only_where_they_are_asked_for() -> None:
    heads = MultiHead(6, 2, site=Site("a"))
    x = torch.randn(1, 3, 6)
    with record() as tape:
        heads(x, heads.keys_values(x))
    assert tape.vectors("a") == [None]
