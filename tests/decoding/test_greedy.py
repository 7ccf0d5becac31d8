"""Greedy search against a loop that looks at one sentence at a time."""

import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.models.table import TableModel

BEGIN, END = 1, 2
FORBIDDEN = [0, 1, 3]
V = 11


def by_hand(
    chain: torch.Tensor, echo: torch.Tensor, source: list[int], most: int
) -> tuple[list[int], float, bool]:
    """The formula as it is written: the best token, again and again."""
    last, ids, total = BEGIN, [], 0.0
    for step in range(most):
        logp = (chain[last] + echo[source[step] if step < len(source) else 0]).log_softmax(-1)
        last = max((t for t in range(V) if t not in FORBIDDEN), key=lambda t: float(logp[t]))
        total += float(logp[last])
        if last == END:
            return ids, total / (step + 1), False
        ids.append(last)
    return ids, total / most, True


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_a_naive_loop(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    chain, echo = torch.randn(V, V, generator=generator), torch.randn(V, V, generator=generator)
    sources = [[4, 5, END], [6, END], [7, 8, 9, 10, 4, END]]
    src = torch.zeros(3, 6).long()
    for row, source in enumerate(sources):
        src[row, : len(source)] = torch.tensor(source)
    most = [7, 13, 5]
    found = greedy(
        TableModel(chain, echo), Tokens(src, src > 0), Rules(torch.zeros(3).long(), torch.tensor(most))
    )
    for each, source, limit in zip(found, sources, most, strict=True):
        ids, score, truncated = by_hand(chain, echo, source, limit)
        assert (each.ids, each.truncated) == (ids, truncated)
        assert each.score == pytest.approx(score, rel=1e-5)


def test_the_first_of_equals_wins() -> None:
    src = torch.tensor([[4, END]])
    rules = Rules(torch.tensor([3]), torch.tensor([4]))
    (found,) = greedy(TableModel(torch.zeros(V, V)), Tokens(src, src > 0), rules)
    assert found.ids == [4, 4, 4]  # then the end, id 2, comes before 4
    assert not found.truncated
