"""Which device computes, and in which precision.

bf16 is used where the processor multiplies it faster than fp32: recent GPUs, CPUs with AVX512-BF16
or AMX, ARM with BF16. fp16 never: it would need loss scaling and gains nothing that bf16 does not.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.errors import UsageError

_CPU_BF16 = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")


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
        known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return any(bool(known.get(name)) for name in _CPU_BF16)
    return False


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context in which the forward pass runs; `precision` is that of the config."""
    if precision == "bf16" or (precision == "auto" and gains_by_bf16(device)):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
