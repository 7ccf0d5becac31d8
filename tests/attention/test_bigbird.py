"""Blocks against their mask, the draw of the random ones, and what does not depend on the batch."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import Largest
from twins import assert_twins, long_way, padding, random_qkv

from regard.attention import attend
from regard.attention.bigbird import BigBird, further_blocks
from regard.attention.sparse import SparseWeights

shapes = st.fixed_dictionaries(
    {
        "block": st.integers(1, 40),
        "window": st.sampled_from([1, 3, 5]),
        "hubs": st.integers(0, 3),
        "randoms": st.integers(0, 4),
        "seed": st.integers(0, 9),
    }
)


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 150), missing=st.integers(0, 150), shape=shapes, seed=st.integers(0, 2**31))
def test_equals_the_mask(length: int, missing: int, shape: dict[str, int], seed: int) -> None:
    torch.manual_seed(seed)
    mask = padding([length, max(1, length - missing)], length)
    assert_twins(BigBird(**shape), *random_qkv(2, 3, length, length), mask=mask)


def test_all_blocks_are_full_attention() -> None:
    q, k, v = random_qkv(2, 3, 131, 131)
    mask = padding([131, 60], 131)
    for shape in ({"window": 1, "hubs": 0, "randoms": 99}, {"window": 99, "hubs": 1, "randoms": 0}):
        with long_way():
            out = BigBird(16, **shape)(q, k, v, mask=mask)
        real = slice(None) if mask is None else slice(0, 60)  # padding queries see no random block
        torch.testing.assert_close(
            out[:, :, real], attend(q, k, v, mask=mask)[:, :, real], atol=1e-5, rtol=1e-5
        )


@settings(max_examples=50, deadline=None)
@given(
    blocks=st.integers(1, 40),
    padded=st.integers(0, 9),
    around=st.integers(0, 2),
    hubs=st.integers(0, 3),
    randoms=st.integers(0, 6),
)
def test_the_draw(blocks: int, padded: int, around: int, hubs: int, randoms: int) -> None:
    """Nothing twice, nothing that is seen anyway, nothing beyond the end, as many as there can be."""
    table = further_blocks(blocks + padded, blocks, 2, (around, hubs, randoms), 7)
    assert table.shape == (2, blocks + padded, hubs + randoms)
    for head in range(2):
        for own in range(blocks):
            drawn = [one for one in table[head, own, hubs:].tolist() if one >= 0]
            free = [one for one in range(hubs, blocks) if abs(one - own) > around]
            assert len(set(drawn)) == len(drawn) == min(randoms, len(free))
            assert set(drawn) <= set(free)


def test_the_draw_follows_the_seed_the_head_and_the_layer() -> None:
    table = further_blocks(40, 40, 2, (1, 2, 3), 7)
    assert torch.equal(table, further_blocks.__wrapped__(40, 40, 2, (1, 2, 3), 7))
    assert not torch.equal(table, further_blocks(40, 40, 2, (1, 2, 3), 8))
    assert not torch.equal(table[0], table[1])
    one, other = BigBird(4, window=3, hubs=1, randoms=2), BigBird(4, window=3, hubs=1, randoms=2)
    one.fit(2, "encoder.0.self")
    other.fit(2, "encoder.1.self")
    q = torch.zeros(1, 2, 99, 3)
    assert not torch.equal(one.seen(q, None), other.seen(q, None))


def test_every_block_is_drawn_about_as_often() -> None:
    drawn = torch.cat([further_blocks(20, 20, 4, (0, 0, 2), seed)[:, 10].flatten() for seed in range(300)])
    counts = drawn.bincount(minlength=20)
    assert counts[10] == 0
    others = counts[torch.arange(20) != 10].double()
    assert others.min() > 0.6 * others.mean()
    assert others.max() < 1.4 * others.mean()


def test_padding_and_neighbours_change_nothing() -> None:
    q, k, v = random_qkv(2, 3, 140, 140)
    kernel = BigBird(8, window=3, hubs=1, randoms=2)
    with long_way():
        together = kernel(q, k, v, mask=padding([140, 83], 140))[1:, :, :83]
        alone = kernel(*(x[1:, :, :83] for x in (q, k, v)))
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=1e-5)


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    largest = []
    for length in (2048, 8192):
        q, k, v = random_qkv(1, 1, length, length, width=4)
        with Largest() as seen:
            BigBird(16, window=3, hubs=1, randoms=2)(q, k, v).sum().backward()
        largest.append(seen.numbers)
    assert largest[1] <= 4 * largest[0]
    assert largest[1] < 2**19


def test_what_is_shown_of_a_long_sequence() -> None:
    q, k, v = (x.detach() for x in random_qkv(1, 2, 700, 700))
    kernel = BigBird(16, window=3, hubs=1, randoms=2)
    _, weights = kernel.show(q, k, v)
    assert isinstance(weights, SparseWeights)
    for query in (3, 16, 333, 699):
        places, values = weights.row(0, 1, query)
        expected = kernel.dense(q, k, v)[1][0, 1, query]
        torch.testing.assert_close(values, expected[places], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(values.sum(), expected.sum())
