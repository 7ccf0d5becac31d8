"""A model cut into shards (FSDP2, `train.shard`): each process holds rows of every weight, and moves those.

A layer's weights are whole while it computes (Zhao et al. 2023, `fully_shard`), its gradients go to those who
hold their rows. They are not summed on the way, as FSDP does in the order of its ring, but where they arrive,
in the order of `sums.py`: so the bits are those of one process. After this: `wholes.py`, `step.py`.
"""

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard
from torch.utils import _pytree as pytree

from regard.attention.cache import KeyValue
from regard.errors import UsageError
from regard.training.averaging import holding
from regard.training.objective import Loss
from regard.training.optimizer import Muon
from regard.training.several import reaching
from regard.training.sums import Node, Values, fold, push
from regard.training.wholes import Holders, Wholes
from regard.training.world import World


def _put_together(parts: Iterable[Any], start: Any) -> KeyValue:
    k, v = parts
    return KeyValue(k, v, start)


# FSDP looks for tensors in what a layer gives: when their gradients come, it has the weights back in time.


def _key_value(parts: Iterable[Any], start: Any) -> KeyValue:
    k, v = parts
    return KeyValue(k, v, start)


pytree.register_pytree_node(
    KeyValue,
    lambda held: ([held.k, held.v], held.start),
    _key_value,
    serialized_type_name="regard.KeyValue",
)


class _Asked(nn.Module):
    """The root: whatever an objective asks of a model is asked in here, where the outer weights are whole."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, stream: Iterator[Loss]) -> tuple[Tensor, str] | None:
        loss = next(stream, None)
        return None if loss is None else (loss.total, loss.group)


class _Round:
    """Which batches of a step are under way: one in each process, from number `first` on, of `count`."""

    def __init__(self) -> None:
        self.first, self.count, self.last = 0, 1, True


class _Sum:
    """What FSDP has in the place of a sum over processes, for the weights of one module.

    A module that computes twice for one loss has two sums in a round, one after the other.
    """

    def __init__(self, now: _Round) -> None:
        self.now, self.number = now, 0
        self.nodes: dict[int, list[Node]] = {}

    def begin(self) -> None:
        """A round; the first of a step forgets the step before."""
        self.number = 0
        if self.now.first == 0:
            self.nodes = {}

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """As FSDP asks for its memory."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        rows = torch.empty_like(input_tensor)
        dist.all_to_all_single(rows, input_tensor, group=group)
        nodes = self.nodes.setdefault(self.number, [])
        self.number += 1
        for leaf, row in enumerate(rows.view(group.size(), -1), self.now.first):
            if leaf < self.now.count:
                push(nodes, Node(leaf, 1, [row.clone()]))  # not all of `rows` is to be held
        if self.now.last:
            (total,) = fold(nodes)
            assert total is not None
            output_tensor.copy_(total)


class Shards:
    """A model that is cut: the rows that this process holds, the weights it owns, the whole for a moment."""

    def __init__(
        self,
        model: nn.Module,
        weights: Sequence[nn.Parameter],
        movers: Sequence[torch.optim.Optimizer],
        world: World,
    ) -> None:
        """Cut the model in place; `weights` are those that learn, `movers` have not moved them yet."""
        known = {id(weight): name for name, weight in model.named_parameters()}
        self.names = [known[id(weight)] for weight in weights]
        self.world, self._now, self._sums = world, _Round(), list[_Sum]()
        self.wholes = _dealt_out(weights, movers, world)
        masters = [
            nn.Parameter(weight.detach().clone() if place in self.wholes.mine else _shape_of(weight))
            for place, weight in enumerate(weights)
        ]
        self.weights = [masters[place] for place in self.wholes.mine]
        _replace(movers, dict(zip(map(id, weights), masters, strict=True)))
        self.twin = copy.deepcopy(model)
        self._held = self._of(self.twin)
        for each in self._held:
            each.data = each.data.new_empty(0)
        self._asked: Any = _Asked(model)
        self._mesh = init_device_mesh(weights[0].device.type, (world.size,))
        self._cut(model)
        self._cuts: list[Any] = self._of(model)
        self.rows = [each.detach().to_local() for each in self._cuts]

    def _of(self, model: nn.Module) -> list[Any]:
        """The weights that learn, by now as FSDP has them."""
        held = dict(model.named_parameters())
        return [held[name] for name in self.names]

    def _cut(self, model: nn.Module) -> None:
        """Layers by themselves, cross-attention apart from them, and all the rest with the root."""
        frozen = {weight for weight in model.parameters() if not weight.requires_grad}
        layers: list[Any] = [each for each in model.modules() if getattr(each, "stacked", False)]
        crosses = [each.cross for each in layers if getattr(each, "cross", None)]
        apart = [each for each in (*crosses, *layers) if not _shares(each, model)]
        for module in (*apart, self._asked):
            cut: Any = fully_shard(module, mesh=self._mesh, ignored_params=frozen)
            self._sums.append(_Sum(self._now))
            cut.set_custom_reduce_scatter(self._sums[-1])
            if module not in crosses:  # one that was not needed for a batch may have been for another's
                cut.set_reduce_scatter_unused_params(True, recurse=False)
        for cross in crosses:  # asked for its keys and values outside the layer that it is in
            register_fsdp_forward_method(cross, "keys_values")

    def holders(self) -> Holders:
        """What brings gradients to the owners of weights, and rows of weights to all."""
        return Holders(self.weights, self.rows, self.wholes)

    @torch.no_grad()
    def taken_in(self) -> None:
        """The weights that are owned become those whose rows all hold."""
        whole = self.wholes.gathered(dict(enumerate(self.rows)))
        for place, weight in zip(self.wholes.mine, self.weights, strict=True):
            weight.copy_(whole[place])

    def expect(self, leaf: int, count: int) -> None:
        """The next loss is that of batch `leaf` of `count`; the others compute its neighbours meanwhile."""
        first = leaf - self.world.rank
        self._now.first, self._now.count = first, count
        self._now.last = first + self.world.size >= count
        for each in self._sums:
            each.begin()

    def next(self, stream: Iterator[Loss]) -> Loss | None:
        """The next loss of a batch."""
        with _computing(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "FSDP2-wrapped module")  # what is a view is only read
            found = self._asked(stream)
            if found is None:
                self._asked.reshard()
                return None
        return Loss(*found)

    def backward(self, loss: Tensor) -> None:
        """Gradients of it, brought to where their rows are."""
        with _computing():
            loss.backward()  # type: ignore[no-untyped-call]

    def gradients(self) -> Values:
        """Those of the rows, when the last round of a step is over."""
        return [None if each.grad is None else each.grad.to_local() for each in self._cuts]

    def tensors(self, model: nn.Module) -> dict[str, Tensor]:
        """Each tensor of the model once, by its first name; of weights that learn, the rows."""
        kept = model.state_dict(keep_vars=True).keys()  # some buffers are not part of it
        whole = (*model.named_parameters(), *model.named_buffers())
        held = {name: each.detach() for name, each in whole if name in kept}
        return held | dict(zip(self.names, self.rows, strict=True))

    def as_one(self, name: str, rows: Tensor) -> Tensor:
        """Rows as torch.distributed knows them: part of a tensor that all processes hold together."""
        shape = self.wholes.shapes[self.names.index(name)]
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(rows, self._mesh, [Shard(0)], run_check=False, shape=shape, stride=stride)

    @contextmanager
    def whole(self, model: nn.Module, values: Sequence[Tensor]) -> Iterator[nn.Module]:
        """The model, whole in every process, with values that each has of what it owns."""
        found = self.wholes.everywhere(values)
        for mine, other in zip(self.twin.buffers(), model.buffers(), strict=True):
            mine.copy_(other)
        with holding(self._held, found):
            yield self.twin


def _dealt_out(
    weights: Sequence[nn.Parameter], movers: Sequence[torch.optim.Optimizer], world: World
) -> Wholes:
    """Who owns which weight; what moves as one stack stays together."""
    place = {id(weight): number for number, weight in enumerate(weights)}
    muons = [mover for mover in movers if isinstance(mover, Muon)]
    together = [[place[id(weight)] for weight in piece] for muon in muons for piece in muon.pieces()]
    found = Wholes([weight.shape for weight in weights], together, world, weights[0].detach())
    if not all(found.owned) or any(weight.ndim == 0 for weight in weights):
        raise UsageError(
            f"train.shard=true cannot cut {len(weights)} weights for {world.size} processes: "
            "each needs one, and none may be a single number"
        )
    return found


def _shape_of(weight: Tensor) -> Tensor:
    return torch.empty(weight.shape, device="meta")


def _replace(movers: Sequence[torch.optim.Optimizer], by: Mapping[int, nn.Parameter]) -> None:
    """Let optimisers that have not moved yet move other weights, told by the ids of those they had."""
    for mover in movers:
        for group in mover.param_groups:
            group["params"] = [by[id(weight)] for weight in group["params"]]


@contextmanager
def _computing() -> Iterator[None]:
    """Where FSDP asks for weights meanwhile, another process may be found to be gone."""
    try:
        yield
    except RuntimeError as error:
        if "gloo" not in str(error) and "NCCL" not in str(error):
            raise
        with reaching():
            raise


def _shares(module: nn.Module, model: nn.Module) -> bool:
    """Whether weights of a module are another's, too: they stay with the root."""
    inside = {id(weight) for weight in module.parameters()}
    within = {id(each) for each in module.modules()}
    others = (each for each in model.modules() if id(each) not in within)
    return any(id(weight) in inside for each in others for weight in each.parameters(recurse=False))
