"""Drawing: the right distribution, the right cuts, and no dependence on neighbours."""

import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.greedy import greedy
from regard.decoding.sampling import Sampling, draw, sample
from regard.decoding.search import Rules
from regard.errors import UsageError
from regard.models.table import TableModel

END = 2
V = 11
SOURCES = torch.tensor([[4, 5, 7, END], [6, END, 0, 0], [8, 9, END, 0]])
REAL = SOURCES > 0


def table(seed: int = 0) -> TableModel:
    generator = torch.Generator().manual_seed(seed)
    return TableModel(torch.randn(V, V, generator=generator), torch.randn(V, V, generator=generator))


def rules_of(*most: int) -> Rules:
    return Rules(torch.zeros(len(most)).long(), torch.tensor(most))


def shares(logp: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """How often each token is drawn when chance walks evenly through [0, 1)."""
    n = 10_000
    drawn = draw(logp.expand(n, -1), torch.arange(n) / n, sampling)
    return torch.bincount(drawn, minlength=len(logp)) / n


P = torch.tensor([0.0, 0.1, 0.4, 0.2, 0.3])


def test_draws_as_often_as_the_model_says() -> None:
    assert torch.allclose(shares(P.log(), Sampling()), P, atol=1e-3)


def test_temperature_sharpens_and_flattens() -> None:
    for temperature in (0.5, 2.0):
        wanted = P ** (1 / temperature)
        assert torch.allclose(shares(P.log(), Sampling(temperature)), wanted / wanted.sum(), atol=1e-3)


def test_top_k_keeps_the_likeliest() -> None:
    wanted = torch.tensor([0, 0, 4 / 7, 0, 3 / 7])
    assert torch.allclose(shares(P.log(), Sampling(top_k=2)), wanted, atol=1e-3)


def test_top_p_keeps_the_fewest_that_hold_the_mass() -> None:
    wanted = torch.tensor([0, 0, 4 / 9, 2 / 9, 3 / 9])
    assert torch.allclose(shares(P.log(), Sampling(top_p=0.75)), wanted, atol=1e-3)
    assert shares(P.log(), Sampling(top_p=1e-6))[2] == 1


def test_top_p_looks_at_what_top_k_left() -> None:
    # Of 0.4, 0.3, 0.2 the first two hold 7/9.
    wanted = torch.tensor([0, 0, 4 / 7, 0, 3 / 7])
    assert torch.allclose(shares(P.log(), Sampling(top_k=3, top_p=0.75)), wanted, atol=1e-3)


@pytest.mark.parametrize("sampling", [Sampling(top_k=1), Sampling(temperature=1e-4), Sampling(top_p=1e-9)])
def test_only_the_likeliest_left_is_greedy_search(sampling: Sampling) -> None:
    for seed in range(5):
        rules = rules_of(7, 11, 5)
        drawn = sample(table(seed), Tokens(SOURCES, REAL), rules, sampling=sampling)
        assert [each for (each,) in drawn] == greedy(table(seed), Tokens(SOURCES, REAL), rules)


def test_neighbours_and_batches_change_nothing() -> None:
    model, sampling, most = table(), Sampling(seed=7), (23, 5, 17)
    together = sample(model, Tokens(SOURCES, REAL), rules_of(*most), sampling=sampling, draws=3)
    for row, limit in enumerate(most):
        width = int(REAL[row].sum())
        alone = sample(
            model,
            Tokens(SOURCES[row : row + 1, :width], REAL[row : row + 1, :width]),
            rules_of(limit),
            sampling=sampling,
            draws=3,
        )
        assert [each.ids for each in alone[0]] == [each.ids for each in together[row]]


def test_the_seed_decides_and_draws_differ() -> None:
    model, rules = table(), rules_of(29, 29, 29)
    first = sample(model, Tokens(SOURCES, REAL), rules, sampling=Sampling(seed=1), draws=5)
    again = sample(model, Tokens(SOURCES, REAL), rules, sampling=Sampling(seed=1), draws=5)
    other = sample(model, Tokens(SOURCES, REAL), rules, sampling=Sampling(seed=2), draws=5)
    assert first == again
    assert first != other
    assert len({tuple(each.ids) for each in first[0]}) > 1


def test_the_score_is_that_of_the_model_without_temperature() -> None:
    model = table()
    (drawn,) = sample(model, Tokens(SOURCES[:1], REAL[:1]), rules_of(19), sampling=Sampling(temperature=3.0))
    state, last, total = model.start(Tokens(SOURCES[:1], REAL[:1])), 1, 0.0
    written = [*drawn[0].ids, END] if not drawn[0].truncated else drawn[0].ids
    for token in written:
        logits, state = model.step(torch.tensor([last]), state)
        total, last = total + float(logits.log_softmax(-1)[0, token]), token
    assert drawn[0].score == pytest.approx(total / len(written), rel=1e-5)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"temperature": 0.0}, r"temperature \(0\)"),
        ({"temperature": float("nan")}, r"temperature \(nan\)"),
        ({"top_k": -1}, r"top_k \(-1\)"),
        ({"top_p": 0.0}, r"top_p \(0\)"),
        ({"top_p": 1.5}, r"top_p \(1.5\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        Sampling(**wrong)  # type: ignore[arg-type]


def test_min_p_keeps_what_comes_near_the_likeliest() -> None:
    wanted = torch.tensor([0, 0, 4 / 7, 0, 3 / 7])
    assert torch.allclose(shares(P.log(), Sampling(min_p=0.6)), wanted, atol=1e-3)
    assert shares(P.log(), Sampling(min_p=1.0))[2] == 1
    with pytest.raises(UsageError, match=r"min_p \(1.1\)"):
        Sampling(min_p=1.1)
