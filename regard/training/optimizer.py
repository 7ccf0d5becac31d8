"""The optimisers, one config word each (`train.optimizer`).

    adam   Adam with betas (0.9, 0.98) as in the paper, torch's fused CPU and GPU kernel
    muon   the layers' matrices move along their momentum's nearest orthogonal matrix
           (Jordan et al. 2024), everything else, an LSTM too, by Adam; torch's own Muon works in bfloat16,
           which is ten times slower than fp32 on a CPU without bf16 units

Both scale so that one `lr` suits both: Muon's steps have the size that Adam's would have.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import TrainConfig

# Newton-Schulz coefficients: x -> a x + b x³ + c x⁵ pulls all singular values towards 1.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ROUNDS = 5
# Matrices by name whose rows stand for tokens, places or distances, each by itself: Adam's.
_ROWS = ("embedding", "own_target", "own_output")


def orthogonalise(matrices: Tensor, rounds: int = _ROUNDS) -> Tensor:
    """Roughly U Vᵀ of each matrix U S Vᵀ in (N, rows, columns); singular values land in 0.7 to 1.2."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = x @ x.transpose(1, 2)  # (N, small, small)
        poly = torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)
        x = torch.baddbmm(x, poly, x, beta=_A)
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal, for matrices; matrices of one shape are treated as one stack.

    A group's `cut` is how many matrices stand above each other in each of its parameters.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ):
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "cut": 1}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            stacks: dict[torch.Size, list[Tensor]] = {}
            for param in group["params"]:
                if param.grad is not None:
                    stacks.setdefault(param.shape, []).append(param)
            for stack in stacks.values():
                self._move(stack, group)

    def _move(self, stack: list[Tensor], group: dict[str, Any]) -> None:
        grads = [param.grad for param in stack if param.grad is not None]
        pasts = [self._momentum(param) for param in stack]
        torch._foreach_lerp_(pasts, grads, 1 - group["momentum"])
        ahead = torch.stack([g.lerp(m, group["momentum"]) for g, m in zip(grads, pasts, strict=True)])
        rows = stack[0].shape[0] // group["cut"]
        matrices = ahead.view(len(stack) * group["cut"], rows, -1)
        size = 0.2 * max(matrices.shape[1:]) ** 0.5  # the root mean square of an Adam step
        moves = (orthogonalise(matrices) * size).reshape(ahead.shape)
        if group["weight_decay"]:
            torch._foreach_mul_(stack, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(stack, list(moves.unbind(0)), alpha=-group["lr"])

    def _momentum(self, param: Tensor) -> Tensor:
        state = self.state[param]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param)
        past: Tensor = state["momentum"]
        return past


def build_optimizers(model: nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The optimisers that together move every parameter of the model once."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    cuts = _cuts(model)
    inner: dict[int, list[Tensor]] = {}
    rest: list[Tensor] = []
    for name, p in named:
        cut = cuts.get(id(p), int(p.ndim == 2 and not any(rows in name for rows in _ROWS)))
        if config.optimizer == "muon" and cut:
            inner.setdefault(cut, []).append(p)
        else:
            rest.append(p)
    fused = all(p.device.type in ("cpu", "cuda") for p in rest)
    adam = torch.optim.AdamW(
        rest, lr=config.lr, betas=(0.9, 0.98), eps=1e-9, weight_decay=config.weight_decay, fused=fused
    )
    if not inner:
        return [adam]
    groups = [{"params": params, "cut": cut} for cut, params in inner.items()]
    return [Muon(groups, lr=config.lr, weight_decay=config.weight_decay), adam]


def _cuts(model: nn.Module) -> dict[int, int]:
    """By the id of a weight, how many matrices Muon takes it for where it is not one; 0: it is Adam's.

    A GLU's halves are two. The gates of an LSTM learn as fast by Adam, at less cost (docs/log.md).
    """
    cuts: dict[int, int] = {}
    for module in model.modules():
        if isinstance(module, nn.LSTM | nn.LSTMCell):
            cuts |= {id(p): 0 for p in module.parameters()}
        elif isinstance(module, nn.Conv1d):
            cuts[id(module.weight)] = 2
    return cuts
