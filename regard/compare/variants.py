"""What is compared: names and the settings each one changes; the default list, or a TOML of a person's own.

    [rotary.positions]
    kind = "rotary"

A name is a table of settings, as in any config file; an empty one is the reference. `family.py` trains them.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import flatten, known_keys
from regard.config.rules import nearest
from regard.errors import UsageError
from regard.tasks.task import Task

# What must be the same for all of them, or the comparison is none.
_SAME = ("train.minutes", "train.max_steps", "train.max_epochs", "text.", "data.")


@dataclass(frozen=True)
class Variant:
    """A name, and the dotted settings that it changes."""

    name: str
    overrides: dict[str, Any]

    @property
    def slug(self) -> str:
        """The name as a file has it.

        >>> Variant("8 heads", {}).slug
        '8-heads'
        """
        return re.sub(r"[^\w.+-]+", "-", self.name).strip(".-")


def family(task: Task) -> list[Variant]:
    """The default list of a task."""
    return [Variant(name, dict(overrides)) for name, overrides in task.family().variants.items()]


def read_variants(path: Path) -> list[Variant]:
    """The variants in a TOML file, in its order; every key is known and none breaks the comparison."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read variants {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"variants {path} is not TOML: {' '.join(str(error).split())}") from error
    if not tree:
        raise UsageError(
            f"variants {path} is empty; give a table for each: [rotary.positions] kind = 'rotary'"
        )
    variants = []
    for name, settings in tree.items():
        if not isinstance(settings, dict):
            raise UsageError(f"variants {path}: {name} is no table; settings stand under the variant's name")
        variants.append(Variant(name, flatten(settings)))
        _check(path, variants[-1])
    slugs = [variant.slug for variant in variants]
    for number, slug in enumerate(slugs):
        if not slug or slug in slugs[:number]:
            twice = "is used twice" if slug else "has no letter or digit"
            raise UsageError(f"variants {path}: the name {variants[number].name!r} {twice}, as a file has it")
    return variants


def _check(path: Path, variant: Variant) -> None:
    known = known_keys()
    for key in variant.overrides:
        if key not in known:
            near = nearest(key, known)
            raise UsageError(f"variants {path}: {variant.name} sets {key}, unknown; did you mean {near}?")
        if key.startswith(_SAME):
            raise UsageError(
                f"variants {path}: {variant.name} sets {key}, which is one for all; use --minutes or --set"
            )
