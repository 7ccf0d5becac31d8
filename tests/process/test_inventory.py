import json

import pytest
from machines import Bench

from regard.process import groups, inventory, machine, speed
from regard.process.cores import Cores

ENGINE = {"path": "avx2", "runs": ["avx2", "portable"], "operations_per_second": {"int8": 123e9}}


@pytest.fixture(autouse=True)
def quick(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(speed, "SECONDS", 0.0)
    monkeypatch.setattr(speed, "SIZES", (5, 7, 11))
    monkeypatch.setattr(speed, "COPIED", 13)
    return bench


def test_it_is_measured_anew_and_can_be_written_as_json(quick: Bench) -> None:
    machine.facts()
    asked = len(quick.asked())
    tree = inventory.take_inventory(ENGINE)
    assert len(quick.asked()) > asked
    assert json.loads(json.dumps(tree)) == tree
    assert set(tree["operations_per_second"]) == {"fp32", "bf16"}
    assert tree["cores"]["usable"] == machine.cores()
    assert tree["memory"]["bytes"] == inventory.total_memory() > 0


def test_products_that_are_not_right_are_not_measured(quick: Bench) -> None:
    quick.simulate("bf16:die")
    tree = inventory.take_inventory(ENGINE)
    assert set(tree["operations_per_second"]) == {"fp32"}
    assert "bf16      not right" in "\n".join(inventory.lines(tree))


def test_lines_say_what_is_there(quick: Bench) -> None:
    quick.simulate("tiles:die")
    machine.prepare()
    text = "\n".join(inventory.lines(inventory.take_inventory(ENGINE)))
    assert "tiles die" in text
    assert "tiles     do not run" in text
    assert "engine    avx2 (int8 123 GFLOP/s); portable run too" in text
    assert "set       ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16" in text
    without = inventory.take_inventory({"missing": "it was not built"})
    assert "engine    not there: it was not built" in "\n".join(inventory.lines(without))


def test_the_bounds_of_the_cores_are_named() -> None:
    assert inventory._why(Cores(8, 8, None)) == "the machine has 8"
    assert inventory._why(Cores(8, 4, 1.5)) == "the machine has 8, affinity allows 4, quota is 1.5"


def test_memory_is_the_control_groups_where_that_is_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "read_memory_limit", lambda: None)
    whole = inventory.total_memory()
    for limit, total in ((2**20, 2**20), (2**59, whole)):
        monkeypatch.setattr(inventory, "read_memory_limit", lambda limit=limit: limit)
        assert inventory.total_memory() == total
    assert groups.read_memory_limit() is None or groups.read_memory_limit() > 0
