import pytest
import torch
from machines import Bench

from regard.errors import UsageError
from regard.process.device import autocast, gains_by_bf16, pick_device


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="device abacus cannot be used"):
        pick_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="device cuda cannot be used"):
            pick_device("cuda")


def test_one_is_found_by_itself() -> None:
    assert torch.zeros(1, device=pick_device()).item() == 0


@pytest.mark.parametrize(("simulated", "gains"), [("nothing:run", True), ("bf16:die", False)])
def test_bf16_is_for_processors_that_were_seen_to_gain(bench: Bench, simulated: str, gains: bool) -> None:
    bench.simulate(simulated)  # the probe of the bench says that it is twice as fast
    cpu = torch.device("cpu")
    assert gains_by_bf16(cpu) is gains
    with autocast(cpu, "auto"):
        product = torch.ones(2, 3) @ torch.ones(3, 2)
    assert product.dtype == (torch.bfloat16 if gains else torch.float32)


@pytest.mark.parametrize(("precision", "kind"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_a_precision_that_is_asked_for_is_used(bench: Bench, precision: str, kind: torch.dtype) -> None:
    with autocast(torch.device("cpu"), precision):
        assert (torch.ones(2, 3) @ torch.ones(3, 2)).dtype == kind


def test_bf16_that_dies_is_refused(bench: Bench) -> None:
    bench.simulate("bf16:die")
    with pytest.raises(UsageError, match="bf16 products are not right on this machine"):
        autocast(torch.device("cpu"), "bf16")
