"""The rules of an output, and the loop that writes one token a row."""

import contextlib

import pytest
import torch

from regard.config import DecodeConfig
from regard.data.inputs import Tokens
from regard.decoding.greedy import likeliest
from regard.decoding.search import Rules, log_probabilities, walk, write
from regard.errors import ModelError
from regard.models.table import TableModel

BEGIN, END, A, B, C = 1, 2, 4, 5, 6
V = 7


def test_limits_count_the_source_without_its_end() -> None:
    config = DecodeConfig(max_ratio=1.5, max_extra=3, min_ratio=0.5)
    rules = Rules.of(config, [1, 6, 8])
    assert rules.most.tolist() == [3, 3 + 7, 3 + 10]
    assert rules.least.tolist() == [0, 3, 4]


def test_limits_never_pass_the_positions_of_the_model() -> None:
    rules = Rules.of(DecodeConfig(max_ratio=2, max_extra=32, min_ratio=3), [3, 11], max_length=17)
    assert rules.most.tolist() == [17, 17]
    assert rules.least.tolist() == [6, 16]  # the end still finds a place


def test_what_is_forbidden_has_no_probability_and_the_rest_keeps_its_own() -> None:
    logits = torch.randn(3, V)
    rules = Rules(torch.tensor([0, 2, 3]), torch.tensor([9, 9, 9]), vocab_size=6)
    logp = log_probabilities(logits.clone(), rules, 2, torch.arange(3))
    free = logits.log_softmax(-1)
    for row, end_allowed in enumerate([True, True, False]):
        allowed = [A, B] + [END] * end_allowed
        for token in range(V):
            wanted = free[row, token].item() if token in allowed else float("-inf")
            assert logp[row, token].item() == pytest.approx(wanted)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_a_model_that_gives_no_probabilities_is_an_error(bad: float) -> None:
    rules = Rules(torch.tensor([0]), torch.tensor([9]))
    with pytest.raises(ModelError, match="weights are broken"):
        log_probabilities(torch.full((1, V), bad), rules, 0, torch.tensor([0]))


def test_rows_that_are_done_leave_the_batch() -> None:
    """Row i writes i tokens, then ends: the model is asked for fewer rows each step."""
    asked = []

    class Watched(TableModel):
        def step(self, ids, state):  # type: ignore[no-untyped-def]
            asked.append(len(ids))
            return super().step(ids, state)

    model = Watched(torch.zeros(V, V))
    src = torch.full((4, 3), A)
    rules = Rules(torch.zeros(4).long(), torch.full((4,), 9))

    def choose(logp: torch.Tensor, step: int, rows: torch.Tensor) -> torch.Tensor:
        return torch.where(rows <= step, END, B)

    found = write(model, model.start(Tokens(src, src > 0)), rules, choose)
    assert [each.ids for each in found] == [[B] * i for i in range(4)]
    assert asked == [4, 3, 2, 1]


def test_each_row_is_cut_at_its_own_limit_and_marked() -> None:
    model = TableModel(torch.zeros(V, V))
    src = torch.full((3, 3), A)
    rules = Rules(torch.zeros(3).long(), torch.tensor([5, 1, 3]))
    found = write(
        model, model.start(Tokens(src, src > 0)), rules, lambda logp, step, rows: torch.full_like(rows, C)
    )
    assert [each.ids for each in found] == [[C] * 5, [C], [C] * 3]
    assert all(each.truncated for each in found)
    assert [each.length for each in found] == [5, 1, 3]


def test_the_score_is_log_p_by_length_with_the_end_counted() -> None:
    chain = torch.full((V, V), float("-inf"))
    chain[BEGIN, A] = chain[A, A] = chain[A, END] = 0.0  # p(A | A) = p(END | A) = 1/2
    model = TableModel(chain)
    src = torch.tensor([[A, END]])
    rules = Rules(torch.tensor([2]), torch.tensor([9]), penalty=2.0)
    (found,) = write(
        model, model.start(Tokens(src, src > 0)), rules, lambda logp, step, rows: logp.argmax(-1)
    )
    # The first A is certain. With two tokens written, the end and A are equal and the first of them wins.
    assert found.ids == [A, A]
    assert found.score == pytest.approx(2 * torch.tensor(0.5).log().item() / 3**2)


def test_a_walk_gives_each_token_as_it_comes_and_can_be_told_to_stop() -> None:
    chain = torch.full((V, V), -9.0)
    chain[BEGIN, A] = chain[A, B] = chain[B, C] = chain[C, A] = 0.0
    model, rules = TableModel(chain), Rules(torch.tensor([0, 0]), torch.tensor([9, 4]))
    steps = walk(model, model.start(Tokens(torch.tensor([[A, END], [B, END]]))), rules, likeliest)
    found = [next(steps)]
    with contextlib.suppress(StopIteration):
        while True:
            done = found[-1].sentence == 0 if len(found) == 2 else None
            found.append(steps.send(done))
    assert [step.sentence.tolist() for step in found] == [[0, 1], [0, 1], [1], [1]]
    assert [step.ids.tolist() for step in found] == [[A, A], [B, B], [C], [A]]
