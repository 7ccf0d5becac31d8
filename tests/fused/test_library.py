"""The library is there, refuses what it does not know, and gives the same with every number of threads."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from regard.fused import library
from regard.fused.attend import attend
from regard.fused.dropout import dropout
from regard.fused.library import OFF, available, choose, knows
from regard.fused.norm import fork


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_is_built_here_and_takes_fp32_and_bf16_of_the_cpu() -> None:
    assert available()
    assert knows(torch.zeros(2), torch.zeros(2, dtype=torch.bfloat16))
    assert not knows(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not knows(torch.zeros(2, device="meta"))


def test_torch_trains_alone_where_the_library_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF, "1")
    library._library.cache_clear()
    assert not available()
    assert not knows(torch.zeros(2))
    library._library.cache_clear()


def test_what_limits_torch_limits_the_loops() -> None:
    code = "from regard.fused.library import choose; print(choose())"
    env = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "portable\n"
    assert choose() in ("portable", "avx2", "avx512")


def everything() -> list[torch.Tensor]:
    """Enough numbers for several pieces of each loop, and their gradients."""
    torch.manual_seed(0)
    x = torch.randn(211, 13, 67, requires_grad=True)
    normed, same = fork(x, nn.LayerNorm(67))
    out = dropout(normed, 0.3, residual=same)
    split = out.view(211, 13, 1, 67).transpose(1, 2)
    gathered = attend(split, split, split, causal=True)
    gathered.square().sum().backward()
    assert x.grad is not None
    return [gathered.detach(), x.grad]


@pytest.mark.usefixtures("threads")
def test_the_number_of_threads_changes_no_bit() -> None:
    found = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        found.append(everything())
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert torch.equal(a, b)
