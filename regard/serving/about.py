"""What a person may want to know of a model that is served: its card, its settings, how it learned.

Answers `GET /model`; the page draws the curve. What it reads is bounded.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.config.file import read_tree
from regard.errors import RegardError
from regard.serving.family import Place

CURVE_POINTS = 500
CURVE_CHARACTERS = 10_000_000  # that are read
LINE_CHARACTERS = 10_000
CARD_CHARACTERS = 100_000


def description(place: Place, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `/model` tells: what the task has to say (`more`), config, card, and the training curve."""
    try:
        config, _ = read_tree(place.folder)
    except RegardError:  # the folder was changed since it was loaded
        config = {}
    return {
        "name": place.folder.resolve().name,
        "model": place.name,
        **(more or {}),
        "card": _card(place.folder / "README.md"),
        "config": config,
        "metrics": _curve(place.folder / "metrics.jsonl"),
    }


def _card(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:CARD_CHARACTERS]
    except OSError:
        return ""


def _curve(path: Path) -> list[dict[str, Any]]:
    """About CURVE_POINTS points of the training curve, and as many of those that were validated."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(CURVE_CHARACTERS).splitlines()
    except OSError:
        return []
    points = [point for line in lines if len(line) <= LINE_CHARACTERS and (point := _object(line))]
    stride = max(1, len(points) // CURVE_POINTS)
    validated = [number for number, point in enumerate(points) if "valid_loss" in point]
    shown = {*range(0, len(points), stride), *validated[:: max(1, len(validated) // CURVE_POINTS)]}
    return [points[number] for number in sorted(shown)]


def _object(text: str) -> dict[str, Any]:
    """A JSON object; what JSON has no number for (a loss that was NaN) is null."""
    try:
        value = json.loads(text, parse_constant=lambda word: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
