"""The window computed in blocks against the band as a mask, for any length, window and padding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import Largest
from twins import assert_twins, long_way, padding, random_qkv

from regard.attention import MultiHead, attend
from regard.attention.kernel import SHORT
from regard.attention.local import BLOCK, Local
from regard.attention.score import build_score
from regard.attention.sparse import SparseWeights
from regard.errors import UsageError


@settings(max_examples=30, deadline=None)
@given(
    length=st.integers(1, 3 * BLOCK + 7),
    window=st.integers(1, 2 * BLOCK + 9),
    missing=st.integers(0, 3 * BLOCK),
    seed=st.integers(0, 2**31),
)
def test_equals_the_band(length: int, window: int, missing: int, seed: int) -> None:
    torch.manual_seed(seed)
    mask = padding([length, max(0, length - missing)], length)
    assert_twins(Local(window), *random_qkv(2, 3, length, length), mask=mask)


@settings(max_examples=30, deadline=None)
@given(
    past=st.integers(0, 2 * BLOCK),
    length=st.integers(2, 2 * BLOCK + 3),
    window=st.integers(1, 2 * BLOCK),
    seed=st.integers(0, 2**31),
)
def test_looking_back_equals_the_band(past: int, length: int, window: int, seed: int) -> None:
    torch.manual_seed(seed)
    qkv = random_qkv(2, 3, length, past + length)
    assert_twins(Local(window, back=True), *qkv, causal=True)


@pytest.mark.parametrize("longer", [0, 1, 100])
def test_a_window_as_long_as_the_sequence_is_full_attention(longer: int) -> None:
    q, k, v = random_qkv(2, 3, 131, 131)
    mask = padding([131, 97], 131)
    with long_way():
        out = Local(130 + longer)(q, k, v, mask=mask)
    torch.testing.assert_close(out, attend(q, k, v, mask=mask), atol=1e-5, rtol=1e-5)


def test_causal_with_a_window_as_long_is_causal_attention() -> None:
    q, k, v = random_qkv(2, 3, 131, 131)
    with long_way():
        out = Local(131, back=True)(q, k, v, causal=True)
    torch.testing.assert_close(out, attend(q, k, v, causal=True), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("score", ["dot", "cosine", "general"])
def test_any_score_that_is_a_product(score: str) -> None:
    q, k, v = random_qkv(2, 3, 150, 150)
    assert_twins(Local(20), q * 0.3, k, v, score=build_score(score, 3, 11))


def test_other_scores_where_the_sequence_is_short_and_a_refusal_where_it_is_long() -> None:
    score = build_score("additive", 3, 11)
    q, k, v = random_qkv(2, 3, 50, 50)
    assert Local(9)(q, k, v, score=score).shape == (2, 3, 50, 11)
    q, k, v = random_qkv(1, 3, SHORT + 1, SHORT + 1)
    with pytest.raises(UsageError, match=f"{SHORT + 1} keys"):
        Local(9)(q, k, v, score=score)
    with pytest.raises(UsageError, match="positions that add to the scores"):
        Local(9)(q, k, v, bias=torch.zeros(1))


def test_dropout_is_the_same_forward_and_backward_and_keeps_the_mean() -> None:
    torch.manual_seed(2)
    q, k, v = random_qkv(1, 2, 100, 100)
    kernel = Local(10)
    with long_way():
        expected = kernel(q, k, v)
        many = torch.stack([kernel(q, k, v, dropout=0.3).detach() for _ in range(500)]).mean(0)
        out = kernel(q, k, v, dropout=0.3)
    torch.testing.assert_close(many, expected.detach(), atol=0.15, rtol=0.1)
    # The output is linear in v: its gradient along v gives the output back, if the mask is the same.
    towards = torch.randn_like(out)
    (gradient,) = torch.autograd.grad(out, v, towards)
    torch.testing.assert_close((gradient * v).sum(), (towards * out).sum(), atol=1e-3, rtol=1e-4)


def test_dropout_has_true_gradients() -> None:
    """Numerical gradients in double precision, with the mask of one seed."""
    q, k, v = (x.detach().double().requires_grad_() for x in random_qkv(1, 1, 70, 70, width=2))

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(4)
        with long_way():
            out: torch.Tensor = Local(3)(q, k, v, dropout=0.2)
        return out

    assert torch.autograd.gradcheck(run, (q, k, v), fast_mode=True)


def test_bf16_is_close() -> None:
    q, k, v = random_qkv(2, 3, 200, 200)
    with long_way():
        exact = Local(30)(q, k, v)
        out = Local(30)(*(x.bfloat16() for x in (q, k, v)))
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), exact, atol=0.05, rtol=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16), long_way():
        out = Local(30)(*(x.bfloat16() for x in (q, k, v)))
    out.float().sum().backward()
    assert v.grad is not None
    assert v.grad.isfinite().all()


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    largest = []
    for length in (2048, 8192):
        q, k, v = random_qkv(1, 1, length, length, width=4)
        with Largest() as seen:
            Local(16)(q, k, v).sum().backward()
        largest.append(seen.numbers)
    assert largest[1] <= 4 * largest[0]
    assert largest[1] < 2**19


def test_what_is_shown_of_a_long_sequence() -> None:
    q, k, v = random_qkv(1, 2, 700, 700)
    _, weights = Local(5).show(q, k, v)
    assert isinstance(weights, SparseWeights)
    places, values = weights.row(0, 1, 300)
    seen = places[values > 0]
    assert seen.tolist() == list(range(295, 306))
    torch.testing.assert_close(values.sum(), torch.tensor(1.0))


@pytest.mark.parametrize("window", [1, 3, 20])
def test_a_cache_as_long_as_the_window_is_enough(window: int) -> None:
    torch.manual_seed(6)
    heads = MultiHead(12, 3, kernel=Local(window, back=True))
    x = torch.randn(2, 17, 12)
    whole = heads(x, heads.keys_values(x), causal=True)
    past, steps = None, []
    for at, width in ((0, 4), (4, 1), (5, 1), (6, 5), (11, 1), (12, 5)):
        new = x[:, at : at + width]
        own = heads.keys_values(new, at)
        past = own if past is None else past.append(own, heads.kernel.keep)
        steps.append(heads(new, past, causal=True))
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-6, rtol=1e-5)
    assert past is not None
    assert past.length <= window + 5
