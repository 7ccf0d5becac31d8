"""BLEU and chrF are sacreBLEU's."""

import sacrebleu

from regard.measure.bleu import translation_scores


def test_as_sacrebleu_counts() -> None:
    texts, references = ["a b c d e", "f g h i"], ["a b c d x", "f g h i"]
    found = translation_scores(texts, references)
    assert found["bleu"].value == sacrebleu.corpus_bleu(texts, [references]).score
    assert found["chrf"].value == sacrebleu.corpus_chrf(texts, [references]).score
    assert found["bleu"].count == found["chrf"].count == 2
    assert f"version:{sacrebleu.__version__}" in found["bleu"].signature
