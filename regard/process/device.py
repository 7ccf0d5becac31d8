"""Which device computes, and in which precision.

bf16 is used where it was seen to be faster than fp32 (`machine.py`), or where a GPU has it. fp16 never: it
would need loss scaling and gains nothing that bf16 does not.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.errors import UsageError
from regard.process import machine


def pick_device(name: str | None = None) -> torch.device:
    """The device called `name`, or the best there is.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if not name:
        kinds = (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available()))
        return torch.device(next((kind for kind, there in kinds if there), "cpu"))
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"device {name} cannot be used here: {str(error).splitlines()[0]}") from error
    return device


def gains_by_bf16(device: torch.device) -> bool:
    """Whether bf16 products are faster than fp32 ones on this device."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return machine.facts().bf16_gain > 1
    return False


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context in which the forward pass runs; `precision` is that of the config."""
    if precision == "bf16" or (precision == "auto" and gains_by_bf16(device)):
        if device.type == "cpu" and not machine.facts().bf16:
            raise UsageError("train.precision=bf16: bf16 products are not right on this machine; take fp32")
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
