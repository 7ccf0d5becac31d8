"""From which language to which: the pairs that a model was trained on, and what else it may be asked for.

One model serves several pairs by a token before the source that names the target language (Johnson et al.
2017). It stands before the source and not first in the decoder: so every kind of model, every search and the
engine take it as they are, and the encoder knows from its first layer what is wanted. What a model has never
seen paired (de-fr, where it learned en-de and en-fr) is zero-shot. Before this file: `config/text.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from regard.config import TextConfig
from regard.config.text import PAIR
from regard.errors import UsageError, shown

Pair = tuple[str, str]


def pair_named(name: str) -> Pair:
    """The two codes of a name.

    >>> pair_named("en-pt-BR")
    ('en', 'pt-BR')
    """
    found = PAIR.fullmatch(name)
    if not found or len(name) > 71:
        raise UsageError(f"{shown(name)} is no pair of languages; name one as en-de")
    if found[1] == found[2]:
        raise UsageError(f"{shown(name)} goes from {found[1]} to itself; name two languages")
    return found[1], found[2]


def tag_of(code: str) -> str:
    """The token that asks for a language.

    >>> tag_of("de")
    '>>de<<'
    """
    return f">>{code}<<"


@dataclass(frozen=True)
class Directions:
    """The pairs of one model."""

    pairs: tuple[Pair, ...]

    @classmethod
    def named(cls, names: Iterable[str]) -> "Directions":
        """From names such as en-de; one that is there twice is refused."""
        pairs: list[Pair] = []
        for name in names:
            if (pair := pair_named(name)) in pairs:
                raise UsageError(f"the pair {name} is there twice; several files go in one list: a.en,b.en")
            pairs.append(pair)
        return cls(tuple(pairs))

    @classmethod
    def of(cls, text: TextConfig) -> "Directions | None":
        """Those of a folder that serves several; None of any other."""
        return cls.named(text.pairs.split()) if text.pairs else None

    @property
    def sources(self) -> tuple[str, ...]:
        """The languages that it was taught to read."""
        return tuple(dict.fromkeys(source for source, _ in self.pairs))

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages that it can write."""
        return tuple(dict.fromkeys(target for _, target in self.pairs))

    @property
    def untrained(self) -> tuple[Pair, ...]:
        """What it may be asked for and never saw."""
        known = dict.fromkeys(code for pair in self.pairs for code in pair)
        every = ((source, target) for source in known for target in self.targets if source != target)
        return tuple(pair for pair in every if pair not in self.pairs)

    def chosen(self, source: str = "", target: str = "") -> Pair:
        """The pair that is meant, as it is spelled here; the source may stay unknown."""
        target = target or (self.targets[0] if len(self.targets) == 1 else "")
        if not target:
            raise UsageError(
                f"this model writes {', '.join(self.targets)}; say which: --to {self.targets[0]}, "
                f"or .to({self.targets[0]!r})"
            )
        known = {code.lower(): code for pair in self.pairs for code in pair}
        for code in filter(None, (source, target)):
            if code.lower() not in known:
                raise UsageError(
                    f"this model does not know {shown(code)}; it knows {', '.join(known.values())}"
                )
        source, target = (known[code.lower()] if code else "" for code in (source, target))
        if target not in self.targets:
            raise UsageError(
                f"this model never learned to write {target}; it writes {', '.join(self.targets)}"
            )
        if source == target:
            raise UsageError(f"the text is in {source} already")
        return source, target

    def name(self, number: int) -> str:
        """One of its pairs."""
        return "-".join(self.pairs[number])

    def zero_shot(self, pair: Pair) -> bool:
        """Whether the model never saw the pair; of an unknown source that is not said."""
        return bool(pair[0]) and pair not in self.pairs

    def __str__(self) -> str:
        return ", ".join("-".join(pair) for pair in self.pairs)
