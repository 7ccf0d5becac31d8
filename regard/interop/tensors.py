"""The tensors of somebody else's folder: read without running anything, taken by name, compared with ours.

A format (`marian.py`, `gpt2.py`, `llama.py`) says which of theirs is which of ours. What is missing, of
another shape or left over in the end is said by name.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from regard.config import Config, merge
from regard.errors import ModelError, UsageError, shown
from regard.interop.pickles import refuse_packed, refuse_stretched
from regard.models.skeleton import fill, skeleton, stored

WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder by their names, in fp32."""
    path = folder / WEIGHTS if (folder / WEIGHTS).exists() else folder / PICKLE
    if not path.is_file():
        raise ModelError(f"{folder} has neither {WEIGHTS} nor {PICKLE}")
    try:
        found: Any
        if path.name == WEIGHTS:
            found = safetensors.torch.load_file(path)
        else:
            refuse_packed(path)
            found = torch.load(path, map_location="cpu", weights_only=True)
    except ModelError:
        raise
    except pickle.UnpicklingError as error:
        raise ModelError(f"{path} holds more than weights and was not opened: it could run code") from error
    except Exception as error:  # a stranger's bytes may fail anywhere in torch
        raise ModelError(f"{path} cannot be read ({type(error).__name__}); copy it again") from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ModelError(f"{path} does not hold tensors by name")
    refuse_stretched(found.values(), path)
    return {str(name): tensor for name, tensor in found.items()}


def settle(settings: Mapping[str, Any], where: Path, what: str) -> Config:
    """Our config of their settings by dotted key; None is what theirs does not say."""
    missing = [key.partition(".")[2] for key, value in settings.items() if value is None]
    if missing:
        raise ModelError(f"{where} does not say {missing[0]}; it is no whole {what}")
    try:
        return merge(Config(), dict(settings))
    except UsageError as error:
        raise ModelError(f"{where}: {error}") from error


class Taking:
    """Their tensors, each taken once."""

    def __init__(self, tensors: Mapping[str, Tensor], folder: Path) -> None:
        self.tensors, self.folder = dict(tensors), folder

    def take(self, name: str, *, turned: bool = False) -> Tensor:
        """One of them in fp32; `turned`, a matrix that multiplies from the other side."""
        if name not in self.tensors:
            raise ModelError(f"{self.folder} lacks the tensor {name} that its config.json asks for")
        tensor = self.tensors.pop(name).float()
        if turned and tensor.dim() != 2:
            raise ModelError(f"{self.folder}: {name} is {tuple(tensor.shape)}, not a matrix")
        return tensor.t().contiguous() if turned else tensor

    def join(self, names: Iterable[str]) -> Tensor:
        """Some of them above each other."""
        parts = [self.take(name) for name in names]
        if len({part.shape[1:] for part in parts}) > 1:
            raise ModelError(f"{self.folder}: the shapes of {', '.join(names)} do not go together")
        return torch.cat(parts)

    def drop(self, name: str) -> None:
        """Let one go that says nothing new, if it is there."""
        self.tensors.pop(name, None)

    def model(self, config: Config, ours: Iterator[tuple[str, Tensor]], what: str) -> nn.Module:
        """The model that our tensors by name make; all of theirs must have been taken for it."""
        model = skeleton(config, len(self.tensors), self.folder)
        state = dict(ours)
        for name, place in stored(model).items():
            have, want = tuple(state[name].shape), tuple(place.shape)
            if have != want:
                raise ModelError(f"{self.folder}: {name} would be {have}, config.json asks for {want}")
        if self.tensors:
            strange = shown(min(self.tensors))
            raise ModelError(f"{self.folder} holds the tensor {strange}, which {what} does not have")
        fill(model, state)
        return model.eval()
