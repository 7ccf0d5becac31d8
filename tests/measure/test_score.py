"""A score knows what is better, says itself, and survives JSON."""

import json
import math

from regard.measure.score import Score, as_tree, of_tree


def test_what_is_better() -> None:
    assert Score(2.0).beats(1.0)
    assert not Score(2.0, higher=False).beats(1.0)
    assert Score(1.0).beats(None)
    assert not Score(1.0).beats(1.0)
    assert not Score(math.nan).beats(1.0)
    assert not Score(math.inf).finite


def test_it_comes_back_from_json() -> None:
    scores = {"bleu": Score(31.25, label="BLEU", digits=1, signature="s", count=7), "loss": Score(1.5, False)}
    assert of_tree(json.loads(json.dumps(as_tree(scores)))) == scores
    assert scores["loss"].words("loss") == "loss 1.500"
