"""Files over HTTP, as LibreTranslate has them: one is sent, translated, and fetched again for a while.

What is made is kept in memory, under names that nobody can guess, so much of it and no longer than LASTS; the
oldest goes first. Before this file: `translating.py`; after it: `libretranslate.py`.
"""

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.files.file import FORMATS, format_of, open_data
from regard.serving.body import Sent
from regard.serving.limits import KEPT_FILES, KEPT_SECONDS, Refusal
from regard.serving.schema import Translate, TranslateFile

if TYPE_CHECKING:
    from regard.files.file import Opened

_PLAIN = re.compile(r"[^\w.-]+")


class Kept:
    """Files that wait to be fetched, by name; the oldest first."""

    def __init__(self, most: int = KEPT_FILES, seconds: float = KEPT_SECONDS) -> None:
        self._files: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self.most, self.seconds, self.held = most, seconds, 0

    def put(self, name: str, data: bytes) -> str:
        """Keep a file; the name to fetch it by."""
        if len(data) > self.most:
            raise Refusal(413, f"the translated file has {len(data)} bytes, at most {self.most} are kept")
        found = f"{secrets.token_urlsafe(16)}.{name}"
        self._files[found] = time.monotonic(), data
        self.held += len(data)
        self._forget()
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def get(self, name: str) -> bytes:
        """A file that was put here."""
        self._forget()
        if name not in self._files:
            raise Refusal(404, "there is no such file, or no more; translate it again")
        return self._files[name][1]

    def _forget(self) -> None:
        late = time.monotonic() - self.seconds
        while self._files:
            name, (since, data) = next(iter(self._files.items()))
            if self.held <= self.most and since >= late:
                return
            del self._files[name]
            self.held -= len(data)


@dataclass(frozen=True)
class Errand:
    """A file that was read, and the request for its texts."""

    opened: "Opened"
    ask: Translate
    name: str  # of what comes back

    def written(self, texts: Sequence[str]) -> bytes:
        """The file with these texts."""
        try:
            return self.opened.written(texts)
        except RegardError as error:
            raise Refusal(400, f"Invalid request: {error}") from error


def ordered(ask: TranslateFile) -> Errand:
    """What is asked of a file that was sent; a refusal where it cannot be read."""
    sent = ask.file
    if not isinstance(sent, Sent) or not sent.data:
        raise Refusal(400, "Invalid request: missing file parameter")
    form = format_of(sent.name)
    if form is None:
        raise Refusal(400, f"Invalid request: file format not supported; there are {', '.join(FORMATS)}")
    stem, ending = PurePath(sent.name).stem, PurePath(sent.name).suffix
    shown = _PLAIN.sub("_", stem)[:80] or "file"
    try:
        opened = open_data(sent.data, form, "the file")
    except RegardError as error:
        raise Refusal(400, f"Invalid request: {error}") from error
    wanted = Translate.model_construct(
        q=list(opened.segments), source=ask.source, target=ask.target, format="html", model=ask.model
    )
    return Errand(opened, wanted, f"{shown}_{_PLAIN.sub('_', ask.target)}{ending.lower()}")
