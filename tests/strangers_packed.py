"""Pickles and archives that mean harm: the other half of `strangers.py`, which says what a case is."""

import gzip
import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from strangers import Case

# Pickles, in the place of a Marian folder's weights ------------------------------------------------


class Call:
    """Unpickled, it calls what it was given; weights alone never do that."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def _pickled(value: Callable[[Path], Any], what: str, **options: Any) -> Case:
    return Case(what, lambda place: torch.save(value(place), place / "pytorch_model.bin", **options))


def pickles() -> list[Case]:
    """Fifty and more files of pickled weights. Those that could run code would leave a file `ran` behind."""
    one, name = torch.zeros(1), "model.shared.weight"
    stretched = {
        f"stretched {dtype}": torch.zeros(1, dtype=dtype).expand(2**15, 2**15)
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool)
    }
    odd = {
        "sparse": torch.sparse_coo_tensor([[0], [0]], [1.0], (2**20, 2**20), check_invariants=True),
        "meta": torch.zeros(2**20, 2**20, device="meta"),
        "complex": torch.zeros(3, dtype=torch.complex64),
        "empty": torch.zeros(0, 2**40),
        "scalar": torch.tensor(3.0),
        "deep": torch.zeros([1] * 60),
        "rows of a row": torch.as_strided(torch.zeros(4096), (4096, 4096), (0, 1)),
        "windows": torch.as_strided(torch.zeros(2**14), (2**13, 2**13), (1, 1)),
    }
    cases = [
        _pickled(
            lambda _, value=value: {name: value},
            f"{what}, {how}",
            _use_new_zipfile_serialization=how == "new",
        )
        for what, value in (stretched | odd).items()
        for how in ("new", "old")
    ]
    values: dict[str, Any] = {
        "a number": 3,
        "a list": [one],
        "no names": {3: one},
        "lists": {name: [one] * 9},
        "text": {name: "x" * 999},
        "nothing": {},
        "none": None,
        "bytes": {name: bytearray(10**6)},
        "an int": {name: 10**400},
        "many": {f"t{number}": one for number in range(9_000)},
        "escapes": {"\x1b[2J" * 999: one},
        "surrogates": {"\udcff": one},
    }
    cases += [_pickled(lambda _, value=value: value, what) for what, value in values.items()]
    runs: dict[str, Callable[[Path], Any]] = {
        "runs os.mkdir": lambda place: Call(os.mkdir, str(place / "ran")),
        "runs eval": lambda place: Call(eval, f"__import__('os').mkdir({str(place / 'ran')!r})"),
        "runs in a key": lambda place: {Call(os.mkdir, str(place / "ran")): one},
        "asks for memory": lambda place: Call(bytearray, 2**36),
        "asks for numbers": lambda place: Call(torch.zeros, 2**20, 2**20),
    }
    cases += [_pickled(make, what) for what, make in runs.items()]
    for protocol in range(6):
        cases.append(
            Case(
                f"plain pickle {protocol}",
                lambda place, protocol=protocol: (place / "pytorch_model.bin").write_bytes(
                    pickle.dumps(Call(os.mkdir, str(place / "ran")), protocol)
                ),
            )
        )
    for data in (
        b"",
        b"\x80",
        b"\x80\x05" + b"(" * 10**5,
        b"I" + b"9" * 5000 + b"\n.",
        b"PK\x03\x04",
        bytes(999),
    ):
        cases.append(
            Case(
                f"bytes {data[:9]!r}",
                lambda place, data=data: (place / "pytorch_model.bin").write_bytes(data),
            )
        )
    return cases


# Archives ----------------------------------------------------------------------------------------


def _zipped(place: Path, change: Callable[[zipfile.ZipFile, zipfile.ZipFile], object]) -> None:
    """The weights' archive, written anew by `change(old, new)`."""
    path = place / "pytorch_model.bin"
    data = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(data, "w") as new:
        change(old, new)
    path.write_bytes(data.getvalue())


def _copied(old: zipfile.ZipFile, new: zipfile.ZipFile, how: int = zipfile.ZIP_STORED, fill: int = 0) -> None:
    for entry in old.infolist():
        new.writestr(entry.filename, old.read(entry) + bytes(fill if "/data/" in entry.filename else 0), how)


def packed_weights() -> list[Case]:
    """Archives in the place of a Marian folder's weights."""
    methods = {"deflated": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
    cases = [
        Case(
            f"{what} with {fill} zeros",
            lambda place, how=how, fill=fill: _zipped(place, lambda old, new: _copied(old, new, how, fill)),
        )
        for what, how in methods.items()
        for fill in (0, 2**18)
    ]

    def spoiled(what: str, change: Callable[[bytearray], object]) -> Case:
        def spoil(place: Path) -> None:
            data = bytearray((place / "pytorch_model.bin").read_bytes())
            change(data)
            (place / "pytorch_model.bin").write_bytes(data)

        return Case(what, spoil)

    def poke(data: bytearray, magic: bytes, offset: int, value: bytes) -> None:
        """Overwrite a field of every record of a kind."""
        at = data.find(magic)
        while at >= 0:
            data[at + offset : at + offset + len(value)] = value
            at = data.find(magic, at + 4)

    central, local = b"PK\x01\x02", b"PK\x03\x04"
    for what, magic, offset, value in (
        ("sizes of gigabytes", central, 24, struct.pack("<I", 2**32 - 2)),
        ("packed sizes of gigabytes", central, 20, struct.pack("<I", 2**32 - 2)),
        ("all at one place", central, 42, struct.pack("<I", 0)),
        ("places outside", central, 42, struct.pack("<I", 2**31)),
        ("encrypted", central, 8, struct.pack("<H", 1)),
        ("unknown method", central, 10, struct.pack("<H", 99)),
        ("names of 60,000 letters", central, 28, struct.pack("<H", 60_000)),
        ("local method", local, 8, struct.pack("<H", 8)),
        ("local names", local, 26, struct.pack("<H", 60_000)),
        ("no central directory", central, 0, b"XX"),
    ):
        cases.append(
            spoiled(
                what, lambda data, magic=magic, offset=offset, value=value: poke(data, magic, offset, value)
            )
        )
    cases += [
        spoiled(
            f"cut at {share}", lambda data, share=share: data.__delitem__(slice(int(len(data) * share), None))
        )
        for share in (0.1, 0.5, 0.9, 0.99)
    ]
    cases.append(
        Case(
            "strange names",
            lambda place: _zipped(
                place, lambda old, new: [new.writestr(f"../{n}\x1b", b"x") for n in range(99)]
            ),
        )
    )
    cases.append(Case("no entries", lambda place: _zipped(place, lambda old, new: None)))
    return cases


def zipped_lines() -> dict[str, bytes]:
    """Gzip files in the place of a text: name -> bytes."""
    whole = gzip.compress(b"a b\tc d\n" * 99, mtime=0)
    line = gzip.compress(b"a" * 2**27, mtime=0)  # 128 MB in 130 kB; eight of them are the gigabyte
    header = b"\x1f\x8b\x08"
    return {
        "one line of a gigabyte": line * 8,
        "two columns of a gigabyte": gzip.compress(b"a\t") + line * 8,
        "zeros": gzip.compress(bytes(2**23)),
        "carriage returns": gzip.compress(b"\r" * 2**23),
        "bytes that are no text": gzip.compress(b"\xff\xfe" * 999),
        "zipped twice": gzip.compress(whole),
        "empty": gzip.compress(b""),
        "header alone": header,
        "a name without an end": header + b"\x08" + bytes(6) + b"n" * 10**5,
        "an extra field": header + b"\x04" + bytes(6) + b"\xff\xff" + b"x" * 99,
        "reserved flags": header + b"\xe0" + bytes(6) + whole[10:],
        "another method": b"\x1f\x8b\x07" + whole[3:],
        "a wrong checksum": whole[:-8] + b"\0" * 4 + whole[-4:],
        "a wrong length": whole[:-4] + b"\xff" * 4,
        "garbage after it": whole + b"garbage",
        **{
            f"cut at {cut}": whole[:cut]
            for cut in (2, 9, 11, len(whole) // 2, len(whole) - 9, len(whole) - 1)
        },
    }
