"""A model that has its shapes and no memory yet, compared with what a file holds, then filled with it.

What a file asks for is not allocated before the file has proved to hold it. `folder.py` fills models of ours
this way, `regard.interop.marian` those of others.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import loads
from regard.kinds import KERNELS, MODELS, POSITIONS, SCORES, TASKS
from regard.models import build

_TYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "I64": "int64"}
_TYPES["I8"] = "int8"
SCALE = ".scale"  # beside a matrix of int8: what each of its rows is multiplied with
Shapes = Mapping[str, tuple[tuple[int, ...], str]]


def skeleton(config: Config, tensors: int, where: Path) -> nn.Module:
    """The model of the config on the meta device, if `tensors` are enough for its layers.

    Even without weights a layer takes memory and time; none of ours has fewer than five tensors. A part that
    is not ours may do what it likes when it is built, so such a model is built as it is.
    """
    if foreign(config):
        with torch.random.fork_rng(devices=[]):
            return build(config)
    shape = config.model
    layers = (shape.kind != "decoder") * shape.encoder_layers + (
        shape.kind != "encoder"
    ) * shape.decoder_layers
    if 5 * layers > tensors:
        raise ModelError(f"{where} has {tensors} tensors, too few for the {layers} layers of its config")
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        return build(config)


def foreign(config: Config) -> bool:
    """Whether the model, or a part of it, is somebody else's code."""
    words = (
        (TASKS, config.task),
        (MODELS, config.model.kind),
        (SCORES, config.attention.score),
        (KERNELS, config.attention.kind),
        (POSITIONS, config.positions.kind),
    )
    return any(kinds.foreign(word) for kinds, word in words)


def stored(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model by name; of those that are one and the same, the first name."""
    tensors: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor
    return tensors


def compare(wanted: Mapping[str, Tensor], have: Shapes, path: Path) -> None:
    """Refuse a file whose tensors, given by shape and type, are not exactly those that are wanted.

    16-bit floats may stand for 32-bit ones: a folder that is shared has them.
    """
    for name in sorted(wanted.keys() | have.keys()):
        if name not in have:
            raise ModelError(
                f"{path} lacks the tensor {name} that its config asks for; copy the folder again"
            )
        if name not in wanted:
            raise ModelError(
                f"{path} holds a tensor {shown(name)} unknown to its config; copy the folder again"
            )
        shape, kind = have[name]
        want = tuple(wanted[name].shape), str(wanted[name].dtype).removeprefix("torch.")
        if (shape, kind) != want and (shape, kind, want[1]) != (want[0], "float16", "float32"):
            raise ModelError(
                f"{path}: tensor {name} is {_short(shape)} {kind}, its config asks for {want[0]} {want[1]}; "
                "the two are not of the same model, copy the folder again"
            )


def header(data: bytes) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of each tensor that a safetensors file says it holds; ValueError if it is broken."""
    size = int.from_bytes(data[:8], "little")
    tree = loads(data[8 : 8 + size]) if 8 + size <= len(data) else None
    if not isinstance(tree, dict):
        raise ValueError("its header is broken")
    tree.pop("__metadata__", None)
    return {
        name: (tuple(each["shape"]), _TYPES.get(each["dtype"], each["dtype"])) for name, each in tree.items()
    }


def scaled(have: Shapes) -> Shapes:
    """Shapes and types as they are once int8 matrices have been multiplied with the scales of their rows."""
    pairs = {
        name
        for name, (shape, kind) in have.items()
        if kind == "int8" and len(shape) > 1 and have.get(name + SCALE) == (shape[:1], "float32")
    }
    scales = {name + SCALE for name in pairs}
    return {
        name: (shape, "float32" if name in pairs else kind)
        for name, (shape, kind) in have.items()
        if name not in scales
    }


def unscaled(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, int8 matrices as what they stand for."""
    shapes = {
        name: (tuple(each.shape), str(each.dtype).removeprefix("torch.")) for name, each in tensors.items()
    }
    return {
        name: _widened(tensors, name) if shapes[name] != told else tensors[name]
        for name, told in scaled(shapes).items()
    }


def _widened(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    matrix, scale = tensors[name], tensors[name + SCALE]
    return matrix.float() * scale.view(-1, *[1] * (matrix.dim() - 1))


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give the skeleton these tensors for its own, by the names of `stored`; what has its type is not copied.

    A model that has memory already keeps it, and what may look at it.
    """
    if not any(place.is_meta for place in stored(model).values()):
        with torch.no_grad():
            for name, place in stored(model).items():
                place.copy_(tensors[name])
        return
    filled = {id(place): _like(tensors[name], place) for name, place in stored(model).items()}
    state = {name: filled[id(place)] for name, place in model.state_dict(keep_vars=True).items()}
    model.load_state_dict(state, assign=True)


def _like(tensor: Tensor, place: Tensor) -> Tensor:
    tensor = tensor.to(place.dtype)
    return nn.Parameter(tensor, place.requires_grad) if isinstance(place, nn.Parameter) else tensor


def _short(shape: tuple[int, ...]) -> str:
    return str(shape) if len(shape) < 9 else f"of {len(shape)} dimensions"
