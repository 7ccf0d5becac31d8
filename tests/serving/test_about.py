"""What is told of a model, whatever its files hold."""

import json

from regard.serving import about
from regard.serving.about import description
from regard.serving.answers import in_json
from regard.serving.family import Place


def told(folder, metrics, card="# Card"):
    (folder / "config.json").write_text('{"model": {"kind": "transformer"}, "checksums": {}}')
    (folder / "README.md").write_text(card, encoding="utf-8")
    (folder / "metrics.jsonl").write_text(metrics, encoding="utf-8", errors="surrogatepass")
    return json.loads(in_json(description(Place(folder, "en-de"))))


def test_a_loss_that_was_no_number_is_null(tmp_path):
    lines = '{"step": 1, "loss": NaN}\n{"step": 2, "loss": -Infinity, "valid_loss": 1e999}\n{"step": 3}\n'
    assert told(tmp_path, lines)["metrics"] == [
        {"step": 1, "loss": None},
        {"step": 2, "loss": None, "valid_loss": None},
        {"step": 3},
    ]


def test_lines_that_are_no_points_are_left_out(tmp_path):
    broken = ["[" * 100_000, '{"a":' * 5000, "", "7", '{"step": ' + "9" * 5000 + "}", '{"step": 1}']
    assert told(tmp_path, "\n".join(broken))["metrics"] == [{"step": 1}]


def test_a_long_training_is_told_in_a_few_points(tmp_path, monkeypatch):
    lines = "".join(f'{{"step": {n}, "valid_loss": 1.0}}\n' for n in range(30_000))
    found = told(tmp_path, lines)
    assert len(found["metrics"]) <= 3 * about.CURVE_POINTS
    monkeypatch.setattr(about, "CURVE_CHARACTERS", 1000)
    assert len(told(tmp_path, lines)["metrics"]) < 50


def test_a_card_that_is_no_text_is_told_as_far_as_it_is(tmp_path):
    (tmp_path / "README.md").write_bytes(b"\xff\xfe card")
    found = told(tmp_path, "", "x" * (about.CARD_CHARACTERS + 7))
    assert len(found["card"]) == about.CARD_CHARACTERS
    assert "checksums" not in found["config"]
