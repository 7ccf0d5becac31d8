"""Who may ask, and how often: keys with limits of their own, and a bound for each client.

A bucket a client holds as many requests as may be made in a minute, and fills again steadily; who finds it
empty is told when to come back. A client is a key, or an address: of the newer kind its network, since one
person has billions of those. Buckets that are full again are forgotten. Before this file: `door.py`, which
asks; after it: `service.py`.

    [phone]                  # a file of keys, TOML: a name that nobody sees
    key = "s3cret"
    requests = 60            # a minute; left out: the server's own --req-limit
    characters = 5000        # in one request
"""

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import UsageError, shown
from regard.foreign import read_toml_file
from regard.serving.limits import Refusal

CLIENTS = 20_000  # that are remembered; past them the oldest is forgotten
NETWORK = 64  # bits of a new address that are one client's
MINUTE = 60.0
_FIELDS = ("key", "requests", "characters")
_SAID = ("q", "text", "prompt", "input")  # the fields that texts come in


@dataclass(frozen=True)
class Key:
    """One key; 0: no limit of its own."""

    digest: bytes
    requests: int = 0  # a minute
    characters: int = 0  # in one request

    @classmethod
    def of(cls, key: str, **limits: int) -> "Key":
        """The key itself is not kept."""
        return cls(hashlib.sha256(key.encode("utf-8", "replace")).digest(), **limits)


def read_keys(path: Path) -> list[Key]:
    """The keys of a file; UsageError names what is wrong in it."""
    found = []
    for name, table in read_toml_file(path).items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {shown(name)} must be a table such as [{shown(name)}] with a key")
        if strange := sorted(table.keys() - set(_FIELDS)):
            raise UsageError(
                f"{path}: [{shown(name)}] has {shown(strange[0])}; it takes {', '.join(_FIELDS)}"
            )
        key = table.get("key")
        if not isinstance(key, str) or not key:
            raise UsageError(f'{path}: [{shown(name)}] needs a line such as key = "s3cret"')
        limits = {field: table.get(field, 0) for field in _FIELDS[1:]}
        for field, value in limits.items():
            if type(value) is not int or not 0 <= value <= 10_000_000:
                raise UsageError(
                    f"{path}: [{shown(name)}] {field} must be a whole number, not {shown(value)}"
                )
        found.append(Key.of(key, **limits))
    if not found:
        raise UsageError(f"{path} holds no key")
    if len({key.digest for key in found}) < len(found):
        raise UsageError(f"{path} has a key twice")
    return found


class Keys:
    """All keys of a server, and what their holders and everybody else may still ask."""

    def __init__(
        self, keys: Iterable[Key] = (), requests: int = 0, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`requests` a minute of each client; 0: as many as it likes."""
        self._keys, self._requests, self._now = tuple(keys), requests, now
        self._buckets: OrderedDict[Any, tuple[float, float]] = OrderedDict()  # what was left, and when
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether a key is asked for."""
        return bool(self._keys)

    @property
    def counting(self) -> bool:
        """Whether anybody's requests are counted."""
        return bool(self._requests) or any(key.requests for key in self._keys)

    def check(self, given: Iterable[str]) -> Key | None:
        """The key that was given, None where none is asked for; the comparison tells nothing by its time."""
        if not self._keys:
            return None
        digests = [hashlib.sha256(key.encode("utf-8", "replace")).digest() for key in given]
        same = [key for one in digests for key in self._keys if hmac.compare_digest(one, key.digest)]
        if not same:
            raise Refusal(403, "Invalid API key")
        return same[0]

    def admit(self, key: Key | None, client: str, fields: dict[str, Any]) -> None:
        """Count a request of a client; a refusal where it is one too many, or its text is too long."""
        if key is not None and key.characters and (length := characters(fields)) > key.characters:
            raise Refusal(
                400, f"Invalid request: text has {length} characters, your key allows {key.characters}"
            )
        most = (key.requests if key is not None else 0) or self._requests
        if most:
            own = key is not None and key.requests
            self._take(key.digest if key is not None and own else client_of(client), most)

    def _take(self, who: Any, most: int) -> None:
        with self._lock:
            now = self._now()
            left, since = self._buckets.pop(who, (float(most), now))
            left = min(most, left + (now - since) * most / MINUTE)
            self._buckets[who] = (left - 1 if left >= 1 else left, now)
            while len(self._buckets) > CLIENTS:
                self._buckets.popitem(last=False)
        if left < 1:
            seconds = 1 + int((1 - left) * MINUTE / most)
            said = f"more than {most} requests a minute; try again in {seconds} s"
            raise Refusal(429, f"Slowdown: {said}", retry_after=seconds)


def client_of(address: str) -> str:
    """Whom an address stands for.

    >>> client_of("192.0.2.7"), client_of("2001:db8::1:2:3:4"), client_of("here")
    ('192.0.2.7', '2001:db8::/64', 'here')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, NETWORK), strict=False))


def characters(fields: dict[str, Any]) -> int:
    """Of all texts in a request.

    >>> characters({"q": ["ab", "c"], "source": "en"})
    3
    """
    total, level = 0, [fields.get(name) for name in _SAID]
    while level:
        value = level.pop()
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, list):
            level.extend(value)
    return total
