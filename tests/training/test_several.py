"""What real processes send each other: sums as a naive loop has them, whole or in bf16."""

import json
import subprocess
import sys
from typing import Any

import pytest
from command import environment

SCRIPT = """
import json, os, sys
import torch
import torch.distributed
from worlds import free_port, variables
from regard.training.optimizer import Muon
from regard.training.owners import Owners
from regard.training.sums import Node, fold, push
from regard.training.world import joined

SHAPES, LEAVES = [(3, 5), (4, 2), (7,), (3, 5)], 5

def leaf(number):
    drawn = torch.Generator().manual_seed(number)
    return [*(torch.randn(shape, generator=drawn) for shape in SHAPES), torch.randn(1, generator=drawn)]

def summed(world, kind):
    weights = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    owners = Owners(weights, [Muon(weights[:2] + weights[3:], lr=0.1)], world, kind)
    nodes = []
    for number in world.share(LEAVES):
        push(nodes, Node(number, 1, leaf(number)))
    return owners, owners.summed(nodes, LEAVES, torch.device("cpu"))

def main(rank, size):
    with joined() as world:
        found = {}
        for kind in (torch.float32, torch.bfloat16):
            owners, values = summed(world, kind)
            own = [None if each is None else each.flatten().tolist() for each in values]
            for weight, value in zip(owners.weights, values):
                weight.grad = value
            found[str(kind)] = [own, float(owners.norm())]
        every = world.gather(found)
    if rank == 0:
        print(json.dumps(every))

size, port, children = int(sys.argv[1]), free_port(), []
for rank in range(size):
    child = os.fork()
    if child == 0:
        os.environ.update(variables(rank, size, port))
        main(rank, size)
        sys.stdout.flush()
        os._exit(0)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
assert not any(codes), codes
"""


@pytest.fixture(scope="module", params=[3])
def sent(request: pytest.FixtureRequest) -> Any:
    """What each of some processes has of sums in fp32 and in bf16."""
    path = [*sys.path, *filter(None, [environment()["PYTHONPATH"]])]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(request.param)],
        env=environment() | {"PYTHONPATH": ":".join(path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def naive() -> tuple[list[list[float]], list[list[float]]]:
    """The sums of five leaves in double precision, and the sums of their magnitudes."""
    import torch

    shapes = [(3, 5), (4, 2), (7,), (3, 5)]
    total = [torch.zeros(shape, dtype=torch.float64) for shape in [*shapes, (1,)]]
    size = [torch.zeros_like(each) for each in total]
    for number in range(5):
        drawn = torch.Generator().manual_seed(number)
        for place, shape in enumerate([*shapes, (1,)]):
            value = torch.randn(shape, generator=drawn).double()
            total[place] += value
            size[place] += value.abs()
    return [each.flatten().tolist() for each in total], [each.flatten().tolist() for each in size]


@pytest.mark.parametrize(("kind", "error"), [("torch.float32", 1e-6), ("torch.bfloat16", 2 * 2**-8)])
def test_sums_are_those_of_a_naive_loop(sent: Any, kind: str, error: float) -> None:
    total, size = naive()
    for place in range(5):
        held = [each[kind][0][place] for each in sent if each[kind][0][place] is not None]
        assert len(held) == (1 if place in (0, 1, 3) else len(sent))  # a matrix comes to its owner alone
        assert all(each == held[0] for each in held)  # and what comes to all has the same bits
        bound = error if place < 4 else 1e-6  # the loss is never rounded
        for ours, exact, magnitude in zip(held[0], total[place], size[place], strict=True):
            assert abs(ours - exact) <= bound * magnitude


@pytest.mark.parametrize(("kind", "error"), [("torch.float32", 1e-6), ("torch.bfloat16", 0.01)])
def test_all_know_the_norm_of_all(sent: Any, kind: str, error: float) -> None:
    exact = sum(value**2 for row in naive()[0][:4] for value in row) ** 0.5
    assert len({each[kind][1] for each in sent}) == 1
    assert sent[0][kind][1] == pytest.approx(exact, rel=error)
