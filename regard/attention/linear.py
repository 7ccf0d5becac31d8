"""A product with a matrix that says how it begins; torch's own leaves that to whoever looks at its type.

What a module can say of itself, so that nobody has to guess from names and types:

    draw()      gives it its first weights; called once for every module that has it, parts before the whole
    keep(...)   lets go of what the config says a model does without; called once, after that
    matrices    {"weight": n}: the parameter of that name, or all beneath a part of that name, is n matrices
                above each other that multiply what goes through (Muon moves those); 0: it is none (Adam).
                Without a word two dimensions are one matrix, and everything else is none.
    native      how the engine runs it, in its words; a class says so for itself alone, since what is derived
                from it may compute something else. Without a word the readable path does.
    shows       what there is to see in it: "pieces" that come in as vectors, hidden "units", or a "way round"
                a sub-layer, which is passed to it; a class that says so has what `regard.look.inside` asks
    stacked     it is a layer of a stack, which has its weights together where a model is cut into rows

Read by `regard.models.assembly`, `regard.training.optimizer`, `regard.engine.weights`, `regard.look.inside`
and `regard.training.shards`.
"""

import torch
from torch import nn


class Linear(nn.Linear):
    """x W' + b, Xavier uniform at first, its bias zero."""

    def draw(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def keep(self, *, norm_weights: str, norm_eps: float, bias: bool) -> None:
        """Do without a bias (`model.bias`)."""
        if not bias:
            self.register_parameter("bias", None)


def gaussian(*size: int, scale: float | None = None) -> nn.Parameter:
    """Numbers drawn with variance 1 over the last size, or as wide as `scale`.

    On the meta device there is nothing to draw, and to try would load half of torch's compiler: a second at
    every start.
    """
    made = torch.empty(size)
    if not made.is_meta:
        made = torch.randn(size) * (size[-1] ** -0.5 if scale is None else scale)
    return nn.Parameter(made)
