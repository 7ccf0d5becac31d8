"""How far and how deep: the longest path between two places, and the operations that wait for each other.

Both are read off the computation that ran. The path is found by the gradient: output i depends on input j
where ∂out_i/∂x_j is not zero. The operations are the longest chain in torch's graph of the computation.
"""

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.compare.layers import Contender

PROBED = 9  # outputs whose gradient is taken: both ends and what lies evenly between them
WIDTH = 4
# What only looks at a tensor in another shape waits for nothing.
_SHAPES = re.compile(
    r"(UnsafeView|View|Reshape|Transpose|T|Permute|Expand|Squeeze|Unsqueeze|Select|Slice|Unfold|Alias"
    r"|Split|Unbind|Chunk|AsStrided|Narrow|Flatten|Clone|AccumulateGrad)(WithSizes)?(Backward\w*)?"
)


def chain(layer: nn.Module, length: int, width: int) -> int:
    """The longest chain of operations from an input of (1, length, width) to the output.

    An operation on whole tensors counts one however large they are. It is counted in fp64, in which torch has
    no fused LSTM that would hide its steps.
    """
    x = torch.randn(1, length, width, dtype=torch.float64, requires_grad=True)
    out: Tensor = layer.double()(x)
    return _depth(out.grad_fn)


def _depth(end: torch.autograd.graph.Node | None) -> int:
    """The longest way from `end` back to a leaf, counted in operations; without recursion, it may be long."""
    depths: dict[torch.autograd.graph.Node | None, int] = {None: 0}
    waiting = [end]
    while waiting:
        node = waiting[-1]
        before = [] if node is None else [earlier for earlier, _ in node.next_functions]
        unknown = [earlier for earlier in before if earlier not in depths]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        if node is not None:
            own = 0 if _SHAPES.fullmatch(node.name().rpartition("::")[2]) else 1
            depths[node] = own + max((depths[earlier] for earlier in before), default=0)
    return depths[end]


def reached(function: Callable[[Tensor], Tensor], length: int, width: int, *, causal: bool) -> bool:
    """Whether every probed output depends on every input, or on every one before it."""
    probed = torch.linspace(0, length - 1, min(PROBED, length)).round().long()  # (P,)
    x = torch.randn(1, length, width, dtype=torch.float64).repeat(len(probed), 1, 1).requires_grad_()
    out = function(x)[torch.arange(len(probed)), probed]  # (P, d): row p asks of output p alone
    (gradient,) = torch.autograd.grad((out * torch.randn_like(out)).sum(), x)
    depends = (gradient != 0).any(-1)  # (P, L)
    asked = torch.arange(length) <= probed[:, None] if causal else torch.ones_like(depends)
    return bool((depends | ~asked).all())


def longest_path(contender: Contender, length: int, width: int = WIDTH) -> int | None:
    """Layers, or steps of a recurrence, until every output depends on every input; None: never."""

    def holds(hops: int) -> bool:
        torch.manual_seed(1)
        return reached(contender.hops(width, hops).double().eval(), length, width, causal=contender.causal)

    few, many = 0, 1
    while not holds(many):
        if many >= length:
            return None
        few, many = many, min(2 * many, length)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if holds(middle) else (middle, many)
    return many
