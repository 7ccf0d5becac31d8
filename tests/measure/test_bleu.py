"""BLEU and chrF are sacreBLEU's."""

import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.measure.bleu import TranslationScores, translation_scores


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
