import pytest
import torch

from regard.errors import UsageError
from regard.training.device import autocast, gains_by_bf16, pick_device


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="device abacus cannot be used"):
        pick_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="device cuda cannot be used"):
            pick_device("cuda")


def test_one_is_found_by_itself() -> None:
    assert torch.zeros(1, device=pick_device()).item() == 0


@pytest.mark.parametrize(
    ("known", "gains"), [({"avx2": True}, False), ({"avx512_bf16": True}, True), ({"amx_bf16": True}, True)]
)
def test_bf16_is_for_processors_that_have_it(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, bool], gains: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    cpu = torch.device("cpu")
    assert gains_by_bf16(cpu) is gains
    with autocast(cpu, "auto"):
        product = torch.ones(2, 3) @ torch.ones(3, 2)
    assert product.dtype == (torch.bfloat16 if gains else torch.float32)


@pytest.mark.parametrize(("precision", "kind"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_a_precision_that_is_asked_for_is_used(precision: str, kind: torch.dtype) -> None:
    with autocast(torch.device("cpu"), precision):
        assert (torch.ones(2, 3) @ torch.ones(3, 2)).dtype == kind
