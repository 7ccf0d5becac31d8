"""What a person may want to know of a model that is served: its card, its settings, how it learned.

Answers `GET /model`; the page draws the curve. What it reads is bounded.
"""

import json
from pathlib import Path
from typing import Any

from regard.serving.served import Place

CURVE_POINTS = 500
CARD_CHARACTERS = 100_000


def description(place: Place) -> dict[str, Any]:
    """What `/model` tells: languages, config, card, and the training curve."""
    config = json.loads((place.folder / "config.json").read_text(encoding="utf-8"))
    config.pop("checksums", None)
    return {
        "name": place.folder.resolve().name,
        "source": place.source,
        "target": place.target,
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
    """At most CURVE_POINTS points of the training curve, and every one that was validated."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            points = [point for line in file if (point := _point(line))]
    except OSError:
        return []
    stride = max(1, len(points) // CURVE_POINTS)
    return [p for number, p in enumerate(points) if number % stride == 0 or "valid_loss" in p]


def _point(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
