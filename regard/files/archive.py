"""Archives of strangers (docx, pptx, odt, epub are zip files): read within bounds, written as they came.

Nothing is ever unpacked to a disk. Names that lead out of the archive, members that come twice, that are
encrypted or that unpack to more than they may are refused before anything is read of them.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from regard.errors import DataError

MEMBERS = 10_000
UNPACKED = 2**28  # bytes of all members together
PACKING = 200  # times that a member may be larger than it is packed, beyond its first megabyte

# What zipfile raises where bytes are not what they should be.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, KeyError, ValueError, RuntimeError),
    *(NotImplementedError, EOFError, OSError),
)


class Archive:
    """The members of a zip file, by name."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            self._members = self._zip.infolist()
        except _BROKEN as error:
            raise DataError("it is no archive, or a broken one") from error
        _check(self._members)
        self.names = [member.filename for member in self._members]

    def read(self, name: str) -> bytes:
        """What a member holds."""
        try:
            with self._zip.open(name) as member:
                size = self._zip.getinfo(name).file_size
                data = member.read(size + 1)
        except _BROKEN as error:
            raise DataError(f"its member {name!a} cannot be read") from error
        if len(data) > size:
            raise DataError(f"its member {name!a} is longer than it says")
        return data

    def written(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive again, in its order, with other content in some members."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as made:
            made.comment = self._zip.comment
            for member in self._members:
                data = changed[member.filename] if member.filename in changed else self.read(member.filename)
                made.writestr(_like(member), data)
        return out.getvalue()


def _like(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A member of the same name, time and packing."""
    found = zipfile.ZipInfo(member.filename, member.date_time)
    packed = member.compress_type != zipfile.ZIP_STORED
    found.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    found.external_attr, found.create_system = member.external_attr, member.create_system
    return found


def _check(members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MEMBERS:
        raise DataError(f"it has {len(members):,} members; more than {MEMBERS:,} are not read")
    seen: set[str] = set()
    total = 0
    for member in members:
        name = member.filename
        if (
            name.startswith(("/", "\\"))
            or ".." in PurePosixPath(name.replace("\\", "/")).parts
            or ":" in name[:2]
        ):
            raise DataError(f"its member {name[:80]!a} leads out of it")
        if name in seen:
            raise DataError(f"its member {name[:80]!a} is there twice")
        if member.flag_bits & 1:
            raise DataError("it is encrypted; save it without a password")
        seen.add(name)
        total += member.file_size
        if member.file_size > 2**20 + PACKING * member.compress_size or total > UNPACKED:
            raise DataError(f"it unpacks to more than {UNPACKED:,} bytes, or is packed too well to be real")
