"""A sum whose order is a matter of its length alone: the same bits, however many processes add it up.

Floating-point sums depend on their order. So leaves 0, 1, 2, ... are joined in pairs, pairs in fours and so
on; what is left over at the end is joined from the right. A process that has some neighbouring leaves joins
those that belong together (`push`), and the nodes of all are joined (`fold`) as if one process had done it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Values = list[Tensor | None]  # None: zeros, that were never written down


@dataclass(frozen=True)
class Node:
    """The sum of the leaves from `start` on, `size` of them: a power of two that divides the start."""

    start: int
    size: int
    values: Values


def push(nodes: list[Node], node: Node) -> None:
    """Put a node after its neighbours, joined with those that it belongs to."""
    while nodes and nodes[-1].size == node.size and nodes[-1].start % (2 * node.size) == 0:
        node = _joined(nodes.pop(), node)
    nodes.append(node)


def fold(nodes: Sequence[Node]) -> Values:
    """The sum of all the leaves, of the nodes that hold them in order."""
    whole: list[Node] = []
    for node in nodes:
        push(whole, node)
    while len(whole) > 1:
        right = whole.pop()
        whole[-1] = _joined(whole[-1], right)
    return whole[0].values


def spans(start: int, stop: int) -> list[tuple[int, int]]:
    """Start and size of the nodes that `push` makes of leaves `start` to `stop`.

    >>> spans(3, 9)
    [(3, 1), (4, 4), (8, 1)]
    """
    found = []
    while start < stop:
        size = start & -start or stop
        size = 1 << (min(size, stop - start).bit_length() - 1)
        found.append((start, size))
        start += size
    return found


@torch.no_grad()
def _joined(left: Node, right: Node) -> Node:
    """Both, in the memory of one of them. A zero is added too: -0.0 becomes 0.0, as it would elsewhere."""
    pairs = list(zip(left.values, right.values, strict=True))
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if both:
        torch._foreach_add_([a for a, _ in both], [b for _, b in both])
    for a, b in pairs:
        if (a is None) != (b is None):
            (a if b is None else b).add_(0.0)  # type: ignore[union-attr]
    values = [b if a is None else a for a, b in pairs]
    return Node(left.start, left.size + right.size, values)
