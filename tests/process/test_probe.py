import os

import pytest

from regard.process import probe
from regard.process.survival import ask


def test_the_numbers_to_expect_are_those_of_a_plain_loop() -> None:
    along = range(probe.SIDE)
    product = [[sum(probe.left(i, k) * probe.right(k, j) for k in along) for j in along] for i in along]
    weighed = [sum(value * (j + 1) for j, value in enumerate(row)) for row in product]
    sums = [sum(probe.right(i, j) for i in along) for j in along]
    assert probe.expected() == weighed + sums
    assert max(abs(value) for row in product for value in row) <= 256  # what bf16 counts up to


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_torch_gives_these_numbers(name: str) -> None:
    seconds, *numbers = probe.torch_answer(name)
    assert numbers == probe.expected()
    assert isinstance(seconds, float)
    assert seconds > 0


def test_a_simulated_machine_dies_where_it_was_told_to() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    found = ask("torch", ["fp32", "bf16"], environment | {"REGARD_SIMULATE": "tiles:die"})
    assert list(found) == ["fp32"]
    assert found["fp32"][1:] == [str(number) for number in probe.expected()]
