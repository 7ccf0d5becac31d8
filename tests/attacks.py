"""Requests that once froze the server, filled its memory or ended in a 500, and others like them.

Each is small enough for any client to send. Used by `tests/serving/test_silence.py` and
`benchmarks/soak.py`: whatever is asked, everybody else is answered meanwhile.
"""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Attack:
    """One request: where to, and its fields or its raw body."""

    name: str
    path: str
    fields: dict[str, Any]
    raw: bytes | None = None
    kind: str = "application/json"

    @property
    def body(self) -> bytes:
        return (
            json.dumps({"source": "en", "target": "de"} | self.fields).encode()
            if self.raw is None
            else self.raw
        )


def _html(name: str, q: str, **fields: Any) -> Attack:
    return Attack(name, "/translate", {"q": q, "format": "html"} | fields)


def _text(name: str, q: Any, **fields: Any) -> Attack:
    return Attack(name, "/translate", {"q": q} | fields)
