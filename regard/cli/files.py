"""Files that come back as files: subtitles, office documents, books and others, by the ending of their name.

Everything but the words is kept (`regard.files`); the output is there whole or not at all.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.atomic import write_bytes
from regard.cli.streams import is_standard
from regard.errors import DataError, UsageError
from regard.files.file import FORMATS, MOST, format_of, open_data

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translation

Texts = Callable[[Iterator[str]], "Iterable[Translation]"]


def translate_file(source: Path, output: Path, form: str, texts: Texts) -> None:
    """Read a file, let `texts` translate its segments, write it again."""
    other = None if is_standard(output) else format_of(output.name)
    if other and FORMATS[other] != FORMATS[form]:
        raise UsageError(f"{output} would hold {form}, as what is read does: name it .{form}")
    name = "stdin" if is_standard(source) else str(source)
    opened = open_data(_bytes(source), form, name)
    found = [each.text for each in texts(iter(opened.segments))]
    data = opened.written(found)
    if not is_standard(output):
        write_bytes(output, data)
    elif sys.stdout is None or (sys.stdout.isatty() and data.startswith(b"PK")):
        raise UsageError(f"a {form} is no text for a terminal; name a file with -o")
    else:
        sys.stdout.buffer.write(data)


def _bytes(source: Path) -> bytes:
    """All of it, if that is not too much."""
    if is_standard(source):
        if sys.stdin is None:
            raise UsageError("stdin is closed; name a file with -i")
        data = sys.stdin.buffer.read(MOST + 1)
    else:
        if not source.is_file():
            raise UsageError(f"{source} is no file" if source.exists() else f"there is no {source}")
        with source.open("rb") as file:
            data = file.read(MOST + 1)
    if len(data) > MOST:
        raise DataError(f"{source} has more than {MOST:,} bytes; translate parts of it")
    return data
