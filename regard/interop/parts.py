"""What every format asks of a model: a plain Transformer, its tensors under names, a folder that is whole.

A format holds what its program can compute. What it cannot is refused with the reason, before anything is
written. A folder is filled beside its place and renamed into it.
"""

import importlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.positions import sinusoids
from regard.config import Config
from regard.errors import ModelError, StorageError, UsageError
from regard.models.transformer import Transformer

MOST_POSITIONS = 2**26  # numbers in an exported table; 64,000 places of a model 1,024 wide


def need(package: str) -> ModuleType:
    """An optional package, or how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise UsageError(f"{package} is not installed; pip install 'regard[interop]'") from error


def plain(
    model: nn.Module, config: Config, format_name: str, allowed: Mapping[str, tuple[str, ...]]
) -> Transformer:
    """The model, if the format can compute it.

    `allowed` names config keys and the values that the format knows beside those of the paper's Transformer.
    """
    rules = {
        "model.kind": ("transformer",),
        "attention.kind": ("full",),
        "attention.score": ("scaled-dot",),
        "positions.kind": ("sinusoidal",),
        "model.norm": ("pre", "post"),
        "model.activation": ("relu", "swish", "gelu"),
    } | dict(allowed)
    for key, words in rules.items():
        table, _, leaf = key.partition(".")
        value = getattr(getattr(config, table), leaf)
        if value not in words:
            raise ModelError(f"{format_name} cannot hold {key}={value}; it takes {', '.join(words)}")
    if not config.model.bias:
        raise ModelError(f"{format_name} cannot hold model.bias=false; it takes products with biases")
    if config.model.kv_heads not in (0, config.model.n_heads):
        raise ModelError(
            f"{format_name} cannot hold model.kv_heads={config.model.kv_heads} with "
            f"{config.model.n_heads} heads; it takes as many key heads as heads"
        )
    assert isinstance(model, Transformer)
    return model


def longest(config: Config) -> int:
    """Places that any sentence the folder translates, or its translation, can take."""
    decode = config.decode
    return max(
        config.positions.max_length,
        decode.max_source,
        decode.max_extra + int(decode.max_ratio * decode.max_source),
    )


def position_table(model: Transformer, config: Config) -> Tensor:
    """What is added to the embeddings, place by place (L, D)."""
    if config.positions.kind == "learned":
        table: Tensor = model.embedding.positions.table  # type: ignore[assignment]
        return table.detach()
    if longest(config) * config.model.d_model > MOST_POSITIONS:
        raise ModelError(
            f"a table of positions for {longest(config):,} places would be too large; lower "
            "decode.max_source, max_extra or max_ratio in generation.json"
        )
    table = sinusoids(longest(config), config.model.d_model, base=config.positions.base)
    return table if config.positions.kind == "sinusoidal" else table * 0


def query_scale(heads: MultiHead) -> float:
    """What a dot-product score multiplies q·k with."""
    scale = heads.score.scale
    assert isinstance(scale, float)
    return scale


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `out` when the block ends well and is gone when it does not."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists and is not an empty folder; name another one")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        place = out.parent / f".{out.name}.{secrets.token_hex(4)}"
        place.mkdir()
    except OSError as error:
        raise StorageError(f"cannot write to {out.parent}: {error.strerror}") from error
    try:
        yield place
        _settle(place)
        if out.exists():
            out.rmdir()
        place.rename(out)
    except Exception as error:
        # safetensors reports the system's errors as its own class; the cause is in the words only.
        if not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _settle(place: Path) -> None:
    """Every file flushed, and readable by whoever may read the folder: libraries write some for us alone."""
    readable = place.stat().st_mode & 0o666
    for path in place.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fchmod(file.fileno(), readable)
                os.fsync(file.fileno())
