import pytest
import torch
from torch import Tensor

from regard.training.averaging import SNAPSHOTS, Average, Best, build_average, holding

STEPS = 23


def walk(seed: int = 3) -> list[list[Tensor]]:
    """The weights after each step of a made-up run."""
    generator = torch.Generator().manual_seed(seed)
    return [[torch.randn(s, generator=generator) for s in ((3, 5), (7,))] for _ in range(STEPS)]


def follow(average: Average, path: list[list[Tensor]], start: int = 0) -> None:
    for step, values in enumerate(path[start:], start + 1):
        for weight, value in zip(average.weights, values, strict=True):
            weight.copy_(value)
        average.update(step, step / STEPS)


def weights() -> list[Tensor]:
    return [torch.zeros(3, 5), torch.zeros(7)]


@pytest.mark.parametrize("span", [0.0, 0.05, 0.3, 1.0])
def test_exponential_average_against_a_naive_loop(span: float) -> None:
    average, path = build_average("ema", weights(), span), walk()
    naive = [tensor.double() for tensor in weights()]
    for step, values in enumerate(path, 1):
        share = 1 / (1 + span * step)
        naive = [(1 - share) * mean + share * value for mean, value in zip(naive, values, strict=True)]
    follow(average, path)
    for mean, expected in zip(average.mean(), naive, strict=True):
        torch.testing.assert_close(mean.double(), expected, rtol=1e-5, atol=1e-6)


def test_a_span_of_one_is_the_plain_mean_and_of_none_the_last_weights() -> None:
    path = walk()
    whole, last = build_average("ema", weights(), 1.0), build_average("ema", weights(), 0.0)
    follow(whole, path)
    follow(last, path)
    # The start counts as one of the values: t steps have seen t + 1 weights.
    expected = torch.stack([weights()[0], *(values[0] for values in path)]).mean(0)
    torch.testing.assert_close(whole.mean()[0], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(last.mean()[0], path[-1][0])


def test_last_is_the_mean_of_snapshots_spread_over_the_end() -> None:
    average, path = build_average("last", weights(), 5 * SNAPSHOTS / STEPS), walk()
    follow(average, path)
    taken = [5, 10, 15, 20]  # one every five steps
    expected = torch.stack([path[step - 1][1] for step in taken]).mean(0)
    torch.testing.assert_close(average.mean()[1], expected)


def test_last_keeps_only_a_few() -> None:
    average, path = build_average("last", weights(), SNAPSHOTS / STEPS), walk()
    follow(average, path)
    expected = torch.stack([values[0] for values in path[-SNAPSHOTS:]]).mean(0)
    torch.testing.assert_close(average.mean()[0], expected)


def test_none_is_the_weights_themselves() -> None:
    held = weights()
    average = build_average("none", held, 0.05)
    follow(average, walk())
    assert average.mean()[0] is held[0]


@pytest.mark.parametrize("kind", ["ema", "last", "none"])
@pytest.mark.parametrize("stop", [1, 7, 22])
def test_goes_on_bit_for_bit(kind: str, stop: int) -> None:
    path = walk()
    whole = build_average(kind, weights(), 0.4)
    follow(whole, path)
    first = build_average(kind, weights(), 0.4)
    follow(first, path[:stop])
    second = build_average(kind, weights(), 0.4)
    second.load({name: tensor.clone() for name, tensor in first.tensors().items()})
    follow(second, path, stop)
    assert all(map(torch.equal, whole.mean(), second.mean()))


def test_holding_swaps_the_weights_and_puts_them_back() -> None:
    held = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))]
    with holding(held, [torch.full((3,), 5.0), torch.zeros(2)]):
        assert held[0].tolist() == [5, 5, 5]
    assert held[0].tolist() == [1, 1, 1]
    with pytest.raises(KeyError), holding(held, [torch.full((3,), 5.0), torch.zeros(2)]):
        raise KeyError
    assert held[1].tolist() == [1, 1]


def test_best_is_a_copy() -> None:
    best, current = Best(), torch.ones(3)
    best.keep([current])
    current.zero_()
    again = Best()
    again.load(best.tensors(), torch.device("cpu"))
    assert again.weights[0].tolist() == [1, 1, 1]
