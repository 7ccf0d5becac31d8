"""What was found out once, kept in the user's cache folder ($XDG_CACHE_HOME/regard, or ~/.cache/regard).

A file a question, named by its digest, with the question inside: a home folder may be shared by machines of
many kinds. What cannot be read, is not whole or answers another question counts as not known; what cannot be
written is found out anew next time. Neither is an error.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.atomic import write_text
from regard.errors import StorageError


def cache_folder() -> Path | None:
    """Where this user's caches are; None where there is no such place."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if chosen.startswith("/"):  # the specification asks for absolute paths
        return Path(chosen) / "regard"
    try:
        return Path.home() / ".cache" / "regard"
    except RuntimeError:
        return None


def recall(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer that was kept for exactly this question."""
    path = _place(question)
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError, RecursionError):
        return None
    if (
        not isinstance(kept, dict)
        or kept.get("question") != question
        or not isinstance(kept.get("answer"), dict)
    ):
        return None
    answer: dict[str, Any] = kept["answer"]
    return answer


def keep(question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Keep an answer for the next process."""
    path = _place(question)
    if path is None:
        return
    with contextlib.suppress(OSError, StorageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"question": question, "answer": answer}, indent=1) + "\n")


def _place(question: Mapping[str, Any]) -> Path | None:
    """One file for all boots of one machine, so that old answers do not pile up."""
    folder = cache_folder()
    lasting = {key: value for key, value in question.items() if key != "boot"}
    digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
    return folder / f"machine-{digest[:16]}.json" if folder else None
