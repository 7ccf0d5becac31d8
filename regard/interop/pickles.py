"""Pickled weights of others: no more is unpacked, and no more allocated, than their file holds.

torch opens them with weights only, so nothing in them can run. What is left is memory: zipped entries that
unpack to gigabytes, and tensors stretched over a single number. Used by `marian.py` before and after loading.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import ModelError

MOST_TENSORS = 100_000


def refuse_packed(path: Path) -> None:
    """Refuse an archive whose entries are packed, or say that they are larger than the file."""
    if not zipfile.is_zipfile(path):
        return  # the older form: storages stand in it as they are
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeError) as error:
        raise ModelError(f"{path} is a damaged archive; copy it again") from error
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > path.stat().st_size or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ModelError(
            f"{path} unpacks to {unpacked:,} bytes from {path.stat().st_size:,}; torch.save packs nothing, "
            "so it is not its work and was not opened"
        )


def refuse_stretched(tensors: Iterable[Tensor], path: Path) -> None:
    """Refuse tensors that say they are larger than the numbers in the file; tied ones count once."""
    distinct = {}
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise ModelError(f"{path} holds a tensor that is not a plain one; it cannot be imported")
        distinct[tensor.data_ptr(), tuple(tensor.shape), tensor.stride()] = (
            tensor.numel() * tensor.element_size()
        )
    if len(distinct) > MOST_TENSORS or sum(distinct.values()) > path.stat().st_size:
        raise ModelError(
            f"{path} has {path.stat().st_size:,} bytes and {len(distinct):,} tensors that say they have "
            f"{sum(distinct.values()):,}; it is not the work of torch.save and was not opened"
        )
