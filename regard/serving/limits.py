"""What a client may ask for, and how it is told no.

Every number that comes from outside has its bound here, and so has what it makes the server do and hold: it
is known before the work begins. A refusal is a status and one line; `answers.py` words it as LibreTranslate
or OpenAI does. docs/serving.md lists them all.
"""

from dataclasses import dataclass
from typing import Any

TEXTS = 1000  # in one request
SENTENCES = 10_000  # in one request
MARKS = 10_000  # tags and terms in one request
ALTERNATIVES = 10
TERMS = 200  # of a glossary
TERM_CHARACTERS = 200
CODE_CHARACTERS = 35  # the longest language tag that BCP 47 asks one to store
HEADS_OFF = 4096
DEPTH = 8  # of JSON
VALUES = 20_000  # in JSON
LOOKS = 8  # requests for `/attention` under way at a time
LOOK_NUMBERS = 400_000  # weights in an answer of `/attention`, and as many of the walk: some 5 MB
LOOK_BYTES = 80  # that a number of it takes while it becomes text
CACHES = 96_000_000  # bytes that all sentences under way in the native engine write into
SCRATCH = 48_000_000  # bytes for attention that is told, and looks that become text, in all threads
KEPT_FILES = 32_000_000  # bytes of translated files that wait to be fetched
KEPT_SECONDS = 1200.0  # that they wait
HEADERS = 100  # of a request
HEAD = 131_072  # bytes before the body; a text may come in the address
CONNECTIONS = 2000  # open at a time, where there are descriptors for them
ROWS = 64  # texts of one completion: prompts times n
CONTEXT = 4096  # tokens of a text with its prompt, where the model itself has no bound
STOPS, STOP_CHARACTERS = 16, 200  # strings that end a completion
LOGPROBS = 5  # runners-up of a token
BIASES = 300  # tokens that a completion favours
PICTURES = 32  # in one request
PICTURE_PIXELS = 2**24  # of one of them
SAID = 3000  # bytes of what is told of a second of sound
GUESSES = 100  # for a gap
GAPS = 64  # of a text
DRAWINGS = 64  # for one request
WORDS = 10_000  # of a text, with a label each
GUESS, LABEL = 300, 100  # bytes of a guess, or of a word; of a label with its probability
NUMBER, PACKED = 44, 12  # bytes of a vector's number, twice: as it is said, and with all others
WRITTEN, TOLD, RUNNER = 24, 300, 150  # bytes of a written token; with its probability; each runner-up
# What is done where: the event loop must be free again within milliseconds.
SENT = 500_000  # bytes a second that a file is sent with, at least
PARSED = 4096  # bytes; a longer body is taken apart in another thread
SMALL = 600  # characters; a longer text, or one with tags, terms or words to tell, is cut in another thread
QUICK = 2000  # characters times readings; what is more waits in a queue of its own
# Bytes that are held for a request until its answer is sent, rounded up.
SENTENCE, READING, TRACED = 600, 300, 900
TOKEN, TRACED_TOKEN = 12, 40  # of a reading: plain, with its alignment
TOLD_WORD = 1000  # of the best reading: its text, its place, and where it came from


@dataclass(frozen=True)
class Limits:
    """Bounds that `regard serve` can be told; the others are above."""

    characters: int = 100_000  # of text in one request
    requests: int = 32  # that wait for the engine or are in it
    rows: int = 32  # sentences in one batch
    tokens: int = 4096  # padded source tokens in one batch
    seconds: float = 120.0  # from the whole request to the last sentence of its answer
    held: int = 64_000_000  # bytes for all requests under way; one may have half of them
    file: int = 5_000_000  # bytes of a file to be translated
    recording: int = 25_000_000  # bytes of a recording, as OpenAI has it
    sound: float = 1800.0  # seconds of a recording
    cache: int = 256_000_000  # bytes for keys and values of all texts that are being written
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
        return 8 * self.body + 2 * self.file

    @property
    def long_requests(self) -> int:
        """Long requests at a time: they must leave room for short ones."""
        return max(1, self.requests // 2)


class Answered(Exception):  # noqa: N818  it is none either
    """A request that was answered elsewhere, before it was read here: its answer."""

    def __init__(self, response: Any) -> None:
        super().__init__("answered elsewhere")
        self.response = response


class Refusal(Exception):  # noqa: N818  it is an answer, not a fault
    """A request that is not served: a status, one line for the client, seconds until it may try again.

    `param` and `code` are for OpenAI's clients: the field that is wrong, and a word for what is.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after: int | None = None,
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.param, self.code = param, code
