"""Beam search against the list of all outputs, against its twin place by place, and at its edges.

tests/interop/test_ctranslate2.py compares it with CTranslate2 itself.
"""

import itertools
import math

import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy
from regard.decoding.search import Hypothesis, Rules
from regard.errors import UsageError
from regard.models.table import TableModel

BEGIN, END = 1, 2
WORDS = [4, 5, 6]
V = 7
SOURCES = torch.tensor([[4, 5, END], [6, END, 0]])


def table(seed: int) -> TableModel:
    generator = torch.Generator().manual_seed(seed)
    return TableModel(2 * torch.randn(V, V, generator=generator), torch.randn(V, V, generator=generator))


def rules_of(least: list[int], most: list[int], penalty: float = 1.0) -> Rules:
    return Rules(torch.tensor(least), torch.tensor(most), penalty)


def log_p(model: TableModel, source: torch.Tensor, ids: list[int]) -> float:
    """What the model gives one output, token by token."""
    state = model.start(Tokens(source[None], source[None] > 0))
    total = 0.0
    for last, token in itertools.pairwise([BEGIN, *ids]):
        logits, state = model.step(torch.tensor([last]), state)
        total += float(logits.log_softmax(-1)[0, token])
    return total


def everything(
    model: TableModel, source: torch.Tensor, least: int, most: int, penalty: float
) -> list[Hypothesis]:
    """All outputs that the rules allow, best first."""
    found = []
    for length in range(most + 1):
        for words in itertools.product(WORDS, repeat=length):
            whole = least <= length < most
            if not whole and length != most:
                continue
            ids = [*words, END] if whole else [*words]
            score = log_p(model, source, ids) / len(ids) ** penalty
            found.append(Hypothesis(list(words), score, not whole))
    return sorted(found, key=lambda each: -each.score)


def place_by_place(
    model: TableModel, source: torch.Tensor, rules: Rules, beam: int, n_best: int
) -> list[Hypothesis]:
    """The search for one sentence as it is told: a list of beginnings, and a loop over its candidates."""
    least, most = int(rules.least[0]), int(rules.most[0])
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    outputs: list[Hypothesis] = []
    likeliest_ended = False
    for step in range(1, most + 1):
        candidates = []
        for total, ids in live:
            state = model.start(Tokens(source[None], source[None] > 0))
            for token in [BEGIN, *ids]:
                logits, state = model.step(torch.tensor([token]), state)
            logp = logits.log_softmax(-1)[0].tolist()
            allowed = WORDS if step - 1 < least else [END, *WORDS]
            candidates += [(total + logp[token], [*ids, token]) for token in allowed]
        candidates = sorted(candidates, key=lambda each: -each[0])[: 2 * beam]
        for place, (total, ids) in enumerate(candidates[:beam]):
            if ids[-1] == END or step == most:
                outputs.append(rules.hypothesis(ids, total))
                likeliest_ended = likeliest_ended or place == 0
        live = [each for each in candidates if each[1][-1] != END][:beam]
        if (likeliest_ended and len(outputs) >= n_best) if rules.penalty == 0 else len(outputs) >= beam:
            break
    return sorted(outputs, key=lambda each: -each.score)[:n_best]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_wide_enough_finds_the_best_of_all_outputs(seed: int, penalty: float) -> None:
    model, least, most = table(seed), [0, 1], [3, 4]
    found = beam_search(
        model, Tokens(SOURCES, SOURCES > 0), rules_of(least, most, penalty), beam=150, n_best=150
    )
    for row, hypotheses in enumerate(found):
        wanted = everything(model, SOURCES[row][SOURCES[row] > 0], least[row], most[row], penalty)[:150]
        assert [each.ids for each in hypotheses] == [each.ids for each in wanted]
        assert [each.truncated for each in hypotheses] == [each.truncated for each in wanted]
        for each, want in zip(hypotheses, wanted, strict=True):
            assert each.score == pytest.approx(want.score, rel=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.4])
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_it_is_the_search_place_by_place(beam: int, penalty: float) -> None:
    for seed in range(20):
        least, most = [0, 2], [6, 9]
        n_best = 1 + seed % beam
        found = beam_search(
            table(seed),
            Tokens(SOURCES, SOURCES > 0),
            rules_of(least, most, penalty),
            beam=beam,
            n_best=n_best,
        )
        for row, hypotheses in enumerate(found):
            source = SOURCES[row][SOURCES[row] > 0]
            rules = rules_of(least[row : row + 1], most[row : row + 1], penalty)
            wanted = place_by_place(table(seed), source, rules, beam, n_best)
            # In a chain two orders of the same transitions are equal, so that ids need not be.
            assert [(len(each.ids), each.truncated) for each in hypotheses] == [
                (len(each.ids), each.truncated) for each in wanted
            ]
            assert [each.score for each in hypotheses] == pytest.approx([each.score for each in wanted], 1e-4)


def test_a_search_stops_when_nothing_better_is_within_reach() -> None:
    """With no length penalty log p only falls: once the likeliest beginning ends, nothing can beat it."""
    steps = []

    class Watched(TableModel):
        def step(self, ids, state):  # type: ignore[no-untyped-def]
            steps.append(len(ids))
            return super().step(ids, state)

    chain = torch.zeros(V, V)
    chain[:, END] = 5.0
    src = SOURCES[:1]
    beam_search(Watched(chain), Tokens(src, src > 0), rules_of([0], [50], penalty=0.0), beam=3)
    assert steps == [1]


def test_one_place_is_greedy_search() -> None:
    for seed in range(20):
        rules = rules_of([0, 2], [7, 9], 0.7)
        narrow = beam_search(table(seed), Tokens(SOURCES, SOURCES > 0), rules, beam=1)
        assert [each for (each,) in narrow] == greedy(table(seed), Tokens(SOURCES, SOURCES > 0), rules)


def test_a_wider_beam_finds_what_greedy_misses() -> None:
    """4 looks better at first (0.6), but only 5 goes on to something certain."""
    p = torch.full((V, V), 1e-9)
    p[BEGIN, 4], p[BEGIN, 5] = 0.6, 0.4
    p[4, 4:7] = 1 / 3
    p[5, 6] = p[6, END] = 1.0
    src, rules = SOURCES[:1], rules_of([0], [9], 0.0)
    model = TableModel(p.log())
    assert greedy(model, Tokens(src, src > 0), rules)[0].ids[0] == 4
    ((best,),) = beam_search(model, Tokens(src, src > 0), rules, beam=2)
    assert best.ids == [5, 6]
    assert best.score == pytest.approx(math.log(0.4), abs=1e-5)


@pytest.mark.parametrize("beam", [2, 5, 13])
def test_n_best_are_sorted_and_distinct(beam: int) -> None:
    for seed in range(10):
        rules = rules_of([0, 1], [5, 8])
        found = beam_search(table(seed), Tokens(SOURCES, SOURCES > 0), rules, beam=beam, n_best=beam)
        for hypotheses in found:
            assert len(hypotheses) == beam
            assert hypotheses == sorted(hypotheses, key=lambda each: -each.score)
            assert len({tuple(each.ids) + (END,) * (not each.truncated) for each in hypotheses}) == beam


def test_fewer_outputs_than_places_are_all_found() -> None:
    """Two tokens at most leave 1 + 3 whole outputs and 9 cut ones."""
    (found,) = beam_search(
        table(0), Tokens(SOURCES[:1], SOURCES[:1] > 0), rules_of([0], [2]), beam=100, n_best=100
    )
    assert sum(not each.truncated for each in found) == 4
    assert sum(each.truncated for each in found) == 9


def test_an_output_that_cannot_end_is_cut_and_marked() -> None:
    chain = torch.zeros(V, V)
    chain[:, END] = float("-inf")
    found = beam_search(
        TableModel(chain), Tokens(SOURCES, SOURCES > 0), rules_of([0, 0], [5, 3]), beam=4, n_best=2
    )
    assert [[len(each.ids) for each in hypotheses] for hypotheses in found] == [[5, 5], [3, 3]]
    assert all(each.truncated for hypotheses in found for each in hypotheses)


def test_a_sentence_that_is_done_costs_nothing_more() -> None:
    """The first sentence may write three tokens: after that the model is asked for the other alone."""
    asked = []

    class Watched(TableModel):
        def step(self, ids, state):  # type: ignore[no-untyped-def]
            asked.append(len(ids))
            assert len(state.src) == len(ids)
            return super().step(ids, state)

    chain = torch.zeros(V, V)
    chain[:, END] = float("-inf")
    beam_search(Watched(chain), Tokens(SOURCES, SOURCES > 0), rules_of([0, 0], [3, 6]), beam=2)
    assert asked == [2, 4, 4, 2, 2, 2]


@pytest.mark.parametrize("n_best", [0, 4])
def test_more_outputs_than_places_are_refused(n_best: int) -> None:
    with pytest.raises(UsageError, match=rf"n_best \({n_best}\).*beam \(3\)"):
        beam_search(table(0), Tokens(SOURCES, SOURCES > 0), rules_of([0, 0], [5, 5]), beam=3, n_best=n_best)
