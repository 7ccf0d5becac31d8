"""What a client may ask for, and how it is told no.

Every number that comes from outside has its bound here. A refusal is a status and one line; `app.py` sends it
as `{"error": "..."}`, as LibreTranslate does.
"""

from dataclasses import dataclass

TEXTS = 1000  # in one request
ALTERNATIVES = 10
TERMS = 200  # of a glossary
TERM_CHARACTERS = 200
CODE_CHARACTERS = 35  # the longest language tag that BCP 47 asks one to store
HEADS_OFF = 4096
DEPTH = 8  # of JSON


@dataclass(frozen=True)
class Limits:
    """Bounds that `regard serve` can be told; the others are above."""

    characters: int = 100_000  # of text in one request
    requests: int = 32  # that wait for the engine or are in it
    rows: int = 32  # sentences in one batch
    tokens: int = 4096  # padded source tokens in one batch
    body_seconds: float = 10.0  # for a client to send its request
    send_seconds: float = 30.0  # for a client to take what is sent
    drain_seconds: float = 30.0  # for requests under way when the server is told to end

    @property
    def body(self) -> int:
        """Bytes of a request: any text that is short enough fits, however it is escaped."""
        return 65_536 + 12 * self.characters

    @property
    def bodies(self) -> int:
        """Bytes of all requests that are being received; past them newcomers are sent away."""
        return 8 * self.body


class Refusal(Exception):  # noqa: N818  it is an answer, not a fault
    """A request that is not served: a status, one line for the client, seconds until it may try again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
