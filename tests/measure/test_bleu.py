"""BLEU and chrF are sacreBLEU's."""

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import UsageError
from regard.measure.bleu import TranslationScores, tokenizer_for, translation_scores


def test_as_sacrebleu_counts() -> None:
    texts, references = ["a b c d e", "f g h i"], ["a b c d x", "f g h i"]
    found = translation_scores(texts, references)
    assert found["bleu"].value == sacrebleu.corpus_bleu(texts, [references]).score
    assert found["chrf"].value == sacrebleu.corpus_chrf(texts, [references]).score
    assert found["bleu"].count == found["chrf"].count == 2
    assert f"version:{sacrebleu.__version__}" in found["bleu"].signature


@given(
    st.lists(st.tuples(*[st.text("ab .cD", max_size=30)] * 2), min_size=1, max_size=9),
    st.integers(1, 9),
)
def test_counts_of_parts_make_the_score_of_all(pairs: list[tuple[str, str]], size: int) -> None:
    texts, references = [text for text, _ in pairs], [reference for _, reference in pairs]
    counts = TranslationScores()
    for at in range(0, len(pairs), size):
        counts.add(texts[at : at + size], references[at : at + size])
    found = counts.scores()
    assert found["bleu"].value == sacrebleu.corpus_bleu(texts, [references]).score
    assert found["chrf"].value == sacrebleu.corpus_chrf(texts, [references]).score
    assert found["bleu"].count == len(pairs)
    assert found["bleu"].signature == translation_scores(["a"], ["b"])["bleu"].signature


def test_words_are_cut_as_the_language_needs_it() -> None:
    texts, references = ["昨天我去了市场。"], ["昨天我去了一个市场。"]
    plain = translation_scores(texts, references)["bleu"].value
    counts = TranslationScores(tokenizer_for("zh"))
    counts.add(texts, references)
    found = counts.scores()["bleu"]
    assert found.value == sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score > 40 > plain
    assert "tok:zh" in found.signature
    assert tokenizer_for("ja_JP") in ("ja-mecab", "char")
    assert [tokenizer_for(code) for code in ("", "de", "th")] == ["13a", "13a", "char"]
    with pytest.raises(UsageError, match=r"tokenize \(klingon\) must be one of auto, 13a"):
        TranslationScores("klingon")


def test_edits_are_sacrebleus_and_better_few() -> None:
    texts, references = ["a b c d", "x y"], ["a c b d", "x y"]
    counts = TranslationScores(ter=True)
    for text, reference in zip(texts, references, strict=True):
        counts.add([text], [reference])
    found = counts.scores()["ter"]
    assert found.value == sacrebleu.corpus_ter(texts, [references]).score
    assert found.beats(found.value + 1)
