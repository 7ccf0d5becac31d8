"""What a setting must keep, said in one line where it does not: the rule and both numbers.

Used by every table of this room.
"""

from collections.abc import Iterable

from regard.errors import UsageError, shown


def rule(holds: bool, message: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise UsageError(message)


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Refuse a word that is none of these."""
    if value not in allowed:
        raise UsageError(f"{name} ({shown(value)}) must be one of {', '.join(allowed)}")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside these."""
    rule(low <= value <= high, f"{name} ({shown(value)}) must be between {low:g} and {high:g}")
