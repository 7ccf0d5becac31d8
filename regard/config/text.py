"""How text becomes ids, and which languages it is in."""

import re
from dataclasses import dataclass

from regard.config.rules import between, one_of, rule
from regard.errors import shown

_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")  # BCP 47, roughly
# Two of them: en-de, en-pt-BR, pt_BR-en. The hyphen that parts them is the first.
PAIR = re.compile(r"([A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*)-([A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*)")
MOST_PAIRS = 1000

UNITS = ("subwords", "characters", "bytes")


@dataclass(frozen=True)
class TextConfig:
    """How text becomes ids."""

    vocab_size: int = 0  # 0: chosen by the size of the data
    units: str = "subwords"  # running text: what a token is
    source: str = ""  # language codes, for the server to find the model by
    target: str = ""
    pairs: str = ""  # of a model for several: en-de en-fr

    def __post_init__(self) -> None:
        between("text.vocab_size", self.vocab_size, 0, 400_000)
        one_of("text.units", self.units, UNITS)
        for name in ("source", "target"):
            code = getattr(self, name)
            rule(
                not code or (len(code) <= 35 and _CODE.fullmatch(code) is not None),
                f"text.{name} ({shown(code)}) must be a language code such as en or pt-BR",
            )
        names = self.pairs.split()
        rule(len(names) <= MOST_PAIRS, f"text.pairs has {len(names)} pairs; the most are {MOST_PAIRS}")
        for name in names:
            rule(
                len(name) <= 71 and PAIR.fullmatch(name) is not None,
                f"text.pairs ({shown(name)}) must be a list of pairs such as en-de en-fr",
            )
