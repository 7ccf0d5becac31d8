"""Settings as people write them: TOML files and `a.b=c` on the command line, as dotted overrides."""

from pathlib import Path
from typing import Any

from regard.errors import UsageError, shown
from regard.foreign import MOST_DEPTH, read_toml_file, toml_value


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: {"a": {"b": 1}} becomes {"a.b": 1}."""
    if prefix.count(".") > MOST_DEPTH:
        raise UsageError("settings are nested too deeply; there are tables with keys, and no more")
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def read_toml(path: Path) -> dict[str, Any]:
    """The dotted overrides in a TOML file."""
    return flatten(read_toml_file(path))


def parse_set(assignment: str) -> tuple[str, Any]:
    """`a.b=c` from the command line as (key, value); the value is read as TOML, or as a word."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set takes KEY=VALUE, not {shown(assignment)!r}")
    return key.strip(), toml_value(text.strip())
