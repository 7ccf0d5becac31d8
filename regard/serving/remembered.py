"""Sentences that come again and again are answered from memory: `regard serve --remember MB`.

The least recently asked for goes first where there is no more room. What is remembered is what the engine
would say again, letter for letter; it is in memory alone, and gone when the server ends. Without the flag
nothing is. Before this file: `translating.py`, whose batches ask it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

EACH = 700  # bytes that an entry takes beside its characters, about
CHARACTER = 8  # bytes of a character of the sentence, with its translation's


class Remembered:
    """Answers by what was wished and the sentence; from any thread."""

    def __init__(self, size: int = 0) -> None:
        """Of so many bytes, about; 0: nothing is remembered."""
        self.size, self.held = size, 0
        self._found: OrderedDict[tuple[Hashable, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def answers(
        self, wish: Hashable, texts: Sequence[str], work: Callable[[list[str]], list[Any]]
    ) -> list[Any]:
        """What `work` makes of each text; it is given those that are not remembered, each once."""
        if not self.size:
            return work(list(texts))
        known = {text: found for text in texts if (found := self._recall(wish, text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= dict(zip(missing, work(missing), strict=True))
            for text in missing:
                self._keep(wish, text, known[text])
        return [known[text] for text in texts]

    def _recall(self, wish: Hashable, text: str) -> Any:
        with self._lock:
            found = self._found.get((wish, text))
            if found is not None:
                self._found.move_to_end((wish, text))
            return found

    def _keep(self, wish: Hashable, text: str, found: Any) -> None:
        with self._lock:
            if self._found.setdefault((wish, text), found) is found:
                self.held += _bytes(text)
            while self.held > self.size and self._found:
                (_, oldest), _ = self._found.popitem(last=False)
                self.held -= _bytes(oldest)


def _bytes(text: str) -> int:
    return EACH + CHARACTER * len(text)
