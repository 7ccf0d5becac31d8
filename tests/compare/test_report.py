"""Tables: every figure in its place, theory beside it, and a word where they differ."""

import json

from regard.compare.cost import Measured, Sizes
from regard.compare.layers import contenders
from regard.compare.report import chain_in_words, cost_facts, cost_report, family_report, table
from regard.compare.trial import Outcome
from regard.measure.score import Score, as_tree

SIZES = Sizes((64, 128, 256), (4, 8, 16))


def measured(number: int, seconds) -> Measured:
    """A layer with made-up times."""
    each = Measured(contenders()[number])
    each.layer = {point: seconds(*point) for point in SIZES.points(each.contender)}
    each.chains, each.paths = {16: 8, 32: 8}, {8: 7, 32: 31}
    return each


def cells(report: str, name: str) -> list[str]:
    (row,) = [line for line in report.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_theory_and_measurement_stand_side_by_side():
    report = cost_report([measured(0, lambda length, width: 1e-9 * length * width**2)], SIZES)
    assert cells(report, "convolution, k = 3") == [
        *("convolution, k = 3", "O(k L d²)", "1 / 1.00", "2 / 2.00", "0.0164"),
        *("O(1) / 8", "O(L / k) / 31 at L = 32"),
    ]
    assert "is not" not in report


def test_what_differs_is_explained():
    report = cost_report([measured(0, lambda length, width: 1e-9 * length**1.5 * width**0.5)], SIZES)
    assert "convolution, k = 3: L^1.50 is not L^1: at these sizes k L d² does not rule" in report
    assert "d^0.50 is not d^2" in report


def test_attention_is_judged_without_its_projections():
    each = measured(3, lambda length, width: 1e-9 * (4 * length * width**2 + length**2 * width))
    each.core = {point: 1e-9 * point[0] ** 2 * point[1] for point in each.layer}
    report = cost_report([each], SIZES)
    assert cells(report, "self-attention")[2:4] == ["2 / 2.00", "1 / 1.00"]
    assert "67% at L = 64 and 89% at L = 256 of the layer's time" in report
    facts = cost_facts(each, SIZES)
    assert facts["exponent_length_with_projections"] < facts["exponent_length"]
    assert json.loads(json.dumps(facts))["layer"] == "self-attention"


def test_what_is_missing_is_said():
    broken, cut = measured(0, lambda *_: 1.0), measured(2, lambda *_: 1.0)
    broken.failed, cut.layer = "RuntimeError: no", {}
    report = cost_report([broken, cut], SIZES)
    assert "convolution, k = 3: could not be measured: RuntimeError: no" in report
    assert "recurrence: the time was up before 5 sizes, from L = 64 and d = 8 on" in report
    assert cells(report, "recurrence")[2] == "1 / -"


def test_chains_in_words():
    assert chain_in_words({}) == ""
    assert chain_in_words({16: 9, 32: 7}) == "7 to 9"
    assert chain_in_words({10: 20, 20: 40}) == "2 L"


def test_families_with_a_failure():
    scores = {"bleu": {"value": 61.23, "label": "BLEU"}, "exact": {"value": 45.6, "label": "exact match, %"}}
    good = Outcome("rotary", {}, None, scores, 12345.6, 78.9, 400.4, 1_234_567, 321)
    report = family_report([good, Outcome("rnn", {}, error="no such word")])
    assert cells(report, "rotary")[1:] == ["61.2", "45.6", "12,346", "79", "400", "1,234,567", "321"]
    assert cells(report, "rnn")[1] == "failed"
    assert report.endswith("- rnn failed: no such word")


def test_speed_is_told_in_what_was_learned_from():
    scores = as_tree({"accuracy": Score(0.9)})
    failed = Outcome("rnn", {}, error="no such word")
    assert "| training tokens/s |" in family_report([failed])
    good = Outcome("rotary", {}, None, scores, 120.0, counted="pictures")
    good.peak_megabytes, good.parameters, good.steps = 1.0, 2, 3
    assert "| training pictures/s |" in family_report([failed, good])


def test_the_best_is_the_lowest_where_less_is_better():
    found = [
        Outcome(name, {}, None, as_tree({"loss": Score(value, higher=False)}), None, None, 1.0, 2, 3)
        for name, value in (("a", 1.5), ("b", 1.25), ("c", 2.0))
    ]
    report = family_report(found)
    assert report.endswith("- the lowest loss: b, 1.250")
    assert cells(report, "b")[1:] == ["1.250", "", "1", "2", "3"]


def test_a_table_is_markdown():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"
