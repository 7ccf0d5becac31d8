"""What benchmarks read of the lines of a training run is what the run says."""

import runpy

from command import ROOT

from regard.training.forecast import Forecast

COMMANDS = runpy.run_path(str(ROOT / "benchmarks" / "commands.py"))


def test_what_is_foreseen_is_read_from_the_line_that_says_it():
    ahead = Forecast(each=0.3, batches=12_346, per_epoch=1000, accumulate=1, bound="minutes")
    line = f"model: 2.4 million weights on cpu; {ahead.line()}"
    assert COMMANDS["foreseen"](line) == (12_346, 12.3)
    assert COMMANDS["foreseen"]("step 70: validation loss 4.589, BLEU 5.3 (61)") is None
    assert COMMANDS["foreseen"]("12,346 steps (12.3 epochs) in 24 s, validation loss 5.191") is None


def test_the_line_of_a_run_that_changed_nothing_is_known():
    assert COMMANDS["UNMOVED"] in (ROOT / "regard" / "training" / "run.py").read_text(encoding="utf-8")
