"""The weights inside an ONNX export, by the names they had in torch.

The exporter keeps the names of what it did not change. A matrix that it turned for a product has a number for
a name, and the node that uses it says whose it was: /encoder/layer.0/output/dense/MatMul multiplies with
encoder.layer.0.output.dense.weight, turned. Nothing of the graph is run. Used by `bert.py`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ModelError
from regard.interop.parts import need

NAMES = ("model.onnx", "onnx/model.onnx")
MOST_BYTES = 2**31 - 1  # what a file of this kind can hold
_PRODUCT = "MatMul"


def find(folder: Path) -> Path | None:
    """The export in a folder, if there is one."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def read_initialisers(path: Path) -> dict[str, Tensor]:
    """Its tensors in fp32, each as torch had it."""
    onnx = need("onnx")
    if path.stat().st_size > MOST_BYTES:
        raise ModelError(f"{path} has more than {MOST_BYTES:,} bytes; it is no ONNX file with weights inside")
    try:
        graph = onnx.load(str(path), load_external_data=False).graph
        held = {each.name: each for each in graph.initializer}
        outside = [each.name for each in held.values() if each.data_location == onnx.TensorProto.EXTERNAL]
        if outside:
            raise ModelError(f"{path} keeps {outside[0]} in another file; give an export with weights inside")
        numbers = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}
        kept = {name: _tensor(onnx, each) for name, each in held.items() if each.data_type in numbers}
    except ModelError:
        raise
    except Exception as error:  # a stranger's bytes may fail anywhere in protobuf
        raise ModelError(f"{path} cannot be read ({type(error).__name__}); copy it again") from error
    return _renamed(graph, kept)


def _tensor(onnx: Any, held: Any) -> Tensor:
    return torch.from_numpy(np.array(onnx.numpy_helper.to_array(held), dtype=np.float32))


def _renamed(graph: Any, kept: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every tensor under the name of the module that it belonged to; constants of the graph are left out."""
    found = {name: tensor for name, tensor in kept.items() if name.endswith((".weight", ".bias"))}
    for node in graph.node:
        held = [name for name in node.input if name in kept and name not in found]
        if node.op_type != _PRODUCT or len(held) != 1 or kept[held[0]].dim() != 2:
            continue
        module = node.name.strip("/").removesuffix(f"/{_PRODUCT}").replace("/", ".")
        found[f"{module}.weight"] = kept[held[0]].t().contiguous()
    return found
