"""The optimisers, one config word each (`train.optimizer`).

    adam   Adam with betas (0.9, 0.98) as in the paper, torch's fused CPU and GPU kernel
    muon   the layers' matrices move along their momentum's nearest orthogonal matrix
           (Jordan et al. 2024), everything else, an LSTM too, by Adam; torch's own Muon works in bfloat16,
           which is ten times slower than fp32 on a CPU without bf16 units; ours does where autocast is on

Both scale so that one `lr` suits both: Muon's steps have the size that Adam's would have.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.fused.muon import Moves, fits

# Rounds of Newton-Schulz, x -> a x + b x³ + c x⁵: each the polynomial that brings what the one before it
# left closest to 1 (Amsel et al. 2025). Singular values from 0.01 of the norm on land in 0.73 to 1.27.
_ROUNDS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))


PIECE = 2**20  # weights at most that Muon moves as one stack


def orthogonalise(matrices: Tensor) -> Tensor:
    """Roughly U Vᵀ of each matrix U S Vᵀ in (N, rows, columns); under autocast by products in bf16."""
    rows, columns = matrices.shape[1:]
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    if torch.is_autocast_enabled(x.device.type):
        x = x.bfloat16()
    elif max(rows, columns) >= 2 * min(rows, columns):
        return _by_gram(x)
    x = x.transpose(1, 2) if rows > columns else x
    for a, b, c in _ROUNDS:
        gram = x @ x.transpose(1, 2)  # (N, small, small)
        poly = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, poly, x, beta=a)
    moves: Tensor = x.transpose(1, 2) if rows > columns else x
    return moves.to(matrices.dtype)


def _by_gram(x: Tensor) -> Tensor:
    """The same rounds on the small side alone: the polynomials of x xᵀ are gathered and meet x at the end.

    Half the products for a matrix four times as wide as high. It squares the rounding: nothing for bf16.
    """
    tall = x.shape[1] > x.shape[2]
    gram = x.transpose(1, 2) @ x if tall else x @ x.transpose(1, 2)  # (N, small, small)
    gathered: Tensor | None = None
    for number, (a, b, c) in enumerate(_ROUNDS, start=1):
        poly = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        poly.diagonal(dim1=1, dim2=2).add_(a)
        gathered = poly if gathered is None else poly @ gathered
        if number < len(_ROUNDS):
            gram = gram @ poly @ poly
    assert gathered is not None
    return x @ gathered if tall else gathered @ x


def _size(longest: int) -> float:
    """Of a move, by the longer side of the matrix: it has the root mean square of an Adam step."""
    return float(0.2 * longest**0.5)


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal, for matrices; matrices of one shape are treated as stacks.

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
        fused = Moves()
        for piece in self._pieces():
            moved = [(param, group) for param, group in piece if param.grad is not None]
            if moved and all(fits(param, group["cut"]) for param, group in moved):
                for param, group in moved:
                    self._add(fused, param, group)
            elif moved:
                self._move(moved)
        if fused:
            fused.make(_ROUNDS)

    def pieces(self) -> list[list[Tensor]]:
        """The parameters that move together; which those are depends on their matrices' shapes alone."""
        return [[param for param, _ in piece] for piece in self._pieces()]

    def _pieces(self) -> list[list[tuple[Tensor, dict[str, Any]]]]:
        """Matrices of one shape and rate, up to a bound: then several processes can share a shape."""
        shapes: dict[tuple[float, ...], list[tuple[Tensor, dict[str, Any]]]] = {}
        for group in self.param_groups:
            for param in group["params"]:
                rows, columns = param.shape[0] // group["cut"], param.shape[1:].numel()
                shapes.setdefault((rows, columns, group.get("share", 1.0)), []).append((param, group))
        pieces = []
        for same in shapes.values():
            most = max(1, PIECE // max(param.numel() for param, _ in same))
            pieces += [same[start : start + most] for start in range(0, len(same), most)]
        return pieces

    def _move(self, moved: Sequence[tuple[Tensor, dict[str, Any]]]) -> None:
        stack, cuts, group = [param for param, _ in moved], [each["cut"] for _, each in moved], moved[0][1]
        grads = [param.grad for param in stack if param.grad is not None]
        pasts = [self.momentum(param) for param in stack]
        torch._foreach_lerp_(pasts, grads, 1 - group["momentum"])
        ahead = torch._foreach_lerp(grads, pasts, group["momentum"])
        rows = stack[0].shape[0] // cuts[0]
        matrices = torch.cat([each.reshape(cut, rows, -1) for each, cut in zip(ahead, cuts, strict=True)])
        moves = zip(torch.split(orthogonalise(matrices), cuts), stack, strict=True)
        if group["weight_decay"]:
            torch._foreach_mul_(stack, 1 - group["lr"] * group["weight_decay"])
        along = [move.reshape(param.shape) for move, param in moves]
        torch._foreach_add_(stack, along, alpha=-group["lr"] * _size(max(matrices.shape[1:])))

    def _add(self, moves: Moves, param: Tensor, group: dict[str, Any]) -> None:
        """What `_move` does, left to the native loops."""
        assert param.grad is not None
        longest = max(param.shape[0] // group["cut"], param.shape[1:].numel())
        moves.add(
            param,
            param.grad,
            self.momentum(param),
            group["cut"],
            fresh=1 - group["momentum"],
            keep=1 - group["lr"] * group["weight_decay"],
            rate=group["lr"] * _size(longest),
        )

    def momentum(self, param: Tensor) -> Tensor:
        """What a matrix remembers of its gradients; zeros at first."""
        state = self.state[param]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param)
        past: Tensor = state["momentum"]
        return past


def build_optimizers(
    model: nn.Module,
    config: TrainConfig,
    weights: Iterable[Tensor] | None = None,
    shares: Sequence[float] = (),
    betas: tuple[float, float] = (0.9, 0.98),
) -> list[torch.optim.Optimizer]:
    """The optimisers that together move every parameter of the model once, or each of these `weights`.

    `shares`, one for each: what of the rate it is moved at. They stand in the optimisers' groups as `share`.
    """
    moved = list((p for p in model.parameters() if p.requires_grad) if weights is None else weights)
    cuts = _cuts(model)
    inner: dict[tuple[int, float], list[Tensor]] = {}
    rest: dict[float, list[Tensor]] = {}
    for p, share in zip(moved, shares or [1.0] * len(moved), strict=True):
        cut = cuts.get(id(p), int(p.ndim == 2))
        if config.optimizer == "muon" and cut:
            inner.setdefault((cut, share), []).append(p)
        else:
            rest.setdefault(share, []).append(p)
    fused = all(p.device.type in ("cpu", "cuda") for params in rest.values() for p in params)
    adam = torch.optim.AdamW(
        [{"params": params, "share": share} for share, params in (rest or {1.0: []}).items()],
        lr=config.lr,
        betas=betas,
        eps=1e-9,
        weight_decay=config.weight_decay,
        fused=fused,
    )
    if not inner:
        return [adam]
    groups = [{"params": params, "cut": cut, "share": share} for (cut, share), params in inner.items()]
    return [Muon(groups, lr=config.lr, weight_decay=config.weight_decay), adam]


def _cuts(model: nn.Module) -> dict[int, int]:
    """By the id of a parameter, how many matrices it is, where a module says so (`attention/linear.py`)."""
    cuts: dict[int, int] = {}
    for module in model.modules():
        said: dict[str, int] = getattr(module, "matrices", {})
        for name, p in module.named_parameters() if said else ():
            cuts |= {
                id(p): n for part, n in said.items() if f"{name}.".startswith(f"{part}." if part else "")
            }
    return cuts
