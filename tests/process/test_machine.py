import os
from pathlib import Path

import pytest
from machines import VARIABLES, Bench

from regard.errors import UsageError
from regard.process import cores, cpu, machine, memo, survival
from regard.process.probe import expected

TILELESS = {machine.ISA: "AVX512_CORE_BF16", machine.MKL: "AVX512_E3"}


def variables() -> dict[str, str]:
    """What this process is held to."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def no_tiles(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """A processor that advertises none, whichever this one is."""
    plain = cpu.Processor("plain", frozenset({"avx2"}), "plain")
    monkeypatch.setattr(machine, "processor", lambda: plain)
    monkeypatch.setattr(machine, "advertises_tiles", lambda: False)
    bench.forget()


# A machine as it should be, and those that are not --------------------------------------------------


def test_a_whole_machine_is_held_to_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    no_tiles(monkeypatch, bench)
    machine.prepare()
    assert variables() == {}
    found = machine.facts()
    assert (found.tiles, found.bf16, found.bf16_gain, found.ceiling) == (False, True, 2.0, {})
    assert found.cores == machine.cores()


def test_tiles_that_run_are_used(bench: Bench) -> None:
    bench.simulate("tiles:run")  # no fault
    machine.prepare()
    assert variables() == {}
    assert machine.facts().tiles


@pytest.mark.parametrize("how", ["die", "lie"])
def test_tiles_that_fail_are_kept_from_torch(bench: Bench, how: str) -> None:
    bench.simulate(f"tiles:{how}")
    machine.prepare()
    assert variables() == TILELESS
    found = machine.facts()
    assert (found.tiles, found.bf16, found.ceiling) == (False, True, TILELESS)


def test_tiles_that_hang_are_kept_from_torch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survival, "LIMIT", 5.0)
    bench.simulate("tiles:hang")
    machine.prepare()
    assert machine.ISA in variables()  # which one depends on how busy this machine is
    assert not machine.facts().tiles


@pytest.mark.parametrize("how", ["die", "lie"])
def test_bf16_that_fails_everywhere_is_not_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    no_tiles(monkeypatch, bench)
    bench.simulate(f"bf16:{how}")
    assert (machine.facts().bf16, machine.facts().bf16_gain) == (False, 0.0)
    assert machine.facts().ceiling == {}  # fp32 is right under the highest one


@pytest.mark.parametrize(
    "probe",
    [
        "raise SystemExit(1)",
        "print('fp32 0.5 1 2 3'); print('bf16 quickly', *range(128))",
        "print('ok')",
        "(",
    ],
)
def test_a_probe_without_a_right_answer_proves_nothing(bench: Bench, probe: str) -> None:
    bench.simulate("tiles:run")
    bench.probe(probe)
    machine.prepare()
    assert variables() == TILELESS
    assert not machine.facts().bf16


def test_tiles_are_left_alone_where_no_bf16_is_right(bench: Bench) -> None:
    bench.simulate("tiles:run")
    bench.probe(f"import sys; print('fp32', 0.5, *{expected()!r})")
    machine.prepare()
    assert variables() == TILELESS
    assert not machine.facts().tiles


def test_seconds_that_are_none_are_not_believed(bench: Bench) -> None:
    bench.probe(f"print('fp32', 'soon', *{expected()!r})")
    assert not machine.facts().bf16


def test_where_no_process_starts_the_careful_choice_is_made_and_not_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.simulate("tiles:run")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    machine.prepare()
    assert variables() == TILELESS
    assert not bench.cache.exists()
    assert machine.paths_that_run(bench.folder / "probe.py", ["avx2"]) == []


# What is remembered ---------------------------------------------------------------------------------


def test_the_probe_is_asked_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    no_tiles(monkeypatch, bench)
    first = machine.facts()
    bench.forget()
    assert machine.facts() == first
    assert bench.asked() == ["torch fp32 bf16"]
    machine.find_out_again()
    assert len(bench.asked()) == 2


def test_two_ceilings_are_tried_where_tiles_are_advertised(bench: Bench) -> None:
    bench.simulate("tiles:die")
    machine.prepare()
    assert bench.asked() == ["torch fp32 bf16", "torch fp32 bf16"]
    assert len(list((bench.cache / "regard").iterdir())) == 1


@pytest.mark.parametrize(
    "answer", [{}, {"ceiling": 9, "bf16": True, "gain": 1.0}, {"ceiling": 0, "bf16": 1, "gain": "much"}]
)
def test_what_was_remembered_wrongly_is_found_out_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object]
) -> None:
    no_tiles(monkeypatch, bench)
    memo.keep(machine._torch_question(machine._allowed()), answer)
    assert machine.facts().bf16
    assert len(bench.asked()) == 1


@pytest.mark.parametrize("change", ["kernel", "processor", "torch", "boot"])
def test_another_machine_is_asked_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    no_tiles(monkeypatch, bench)
    question = machine._torch_question(machine._allowed()) | {change: "another"}
    memo.keep(question, {"ceiling": 0, "bf16": False, "gain": 0.0})
    assert machine.facts().bf16
    assert len(bench.asked()) == 1


def test_a_cache_that_cannot_be_written_is_no_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    no_tiles(monkeypatch, bench)
    bench.cache.write_text("a file where a folder should be")
    assert machine.facts().bf16


def test_who_may_not_ask_is_careful_until_something_is_known(bench: Bench) -> None:
    bench.simulate("tiles:run")
    machine.prepare(patient=False)
    assert variables() == TILELESS
    assert bench.asked() == []
    machine.prepare()
    assert variables() == {}  # what was ours is taken back
    machine.prepare(patient=False)
    assert variables() == {}


# What the user says ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "held", "bf16", "tiles"),
    [
        ("no-tiles", TILELESS, True, False),
        ("tiles", {}, False, True),
        ("tiles, bf16", {}, True, True),
        ("no-bf16", TILELESS, False, False),
        ("no-tiles,no-bf16", TILELESS, False, False),
    ],
)
def test_words_override_what_was_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, words: str, held: dict[str, str], bf16: bool, tiles: bool
) -> None:
    bench.simulate("tiles:die")
    monkeypatch.setenv(machine.OVERRIDE, words)
    machine.prepare()
    assert variables() == held
    assert (machine.facts().bf16, machine.facts().tiles) == (bf16, tiles)


def test_a_word_that_is_none_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(machine.OVERRIDE, "no-tile")
    with pytest.raises(UsageError, match="REGARD_MACHINE: no-tile is none of tiles, no-tiles, bf16, no-bf16"):
        machine.prepare()


def test_variables_of_the_user_are_left_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.simulate("tiles:die")
    monkeypatch.setenv(machine.ISA, "AVX2")
    machine.prepare()
    assert os.environ[machine.ISA] == "AVX2"
    assert machine.set_by_user(machine.ISA)
    assert not machine.facts().tiles
    monkeypatch.delenv(machine.ISA)
    monkeypatch.setenv(machine.OLD_ISA, "AVX2")
    machine.prepare()
    assert machine.ISA not in os.environ


def test_our_own_are_known_by_their_value(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.simulate("tiles:die")
    machine.prepare()
    assert not machine.set_by_user(machine.ISA)
    monkeypatch.setenv(machine.ISA, "AVX2")
    assert machine.set_by_user(machine.ISA)


# Threads and the engine -----------------------------------------------------------------------------


def test_a_quota_bounds_the_threads(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_tiles(monkeypatch, bench)
    monkeypatch.setattr(machine, "count_cores", lambda: cores.Cores(present=8, allowed=8, quota=1.5))
    machine.prepare()
    assert variables() == {machine.THREADS: "2"}
    assert machine.cores() == 2
    monkeypatch.setattr(machine, "count_cores", lambda: cores.Cores(present=8, allowed=1, quota=1.5))
    machine.prepare()
    assert variables() == {}  # torch sees the affinity by itself
    monkeypatch.setenv(machine.THREADS, "5")
    monkeypatch.setattr(machine, "count_cores", lambda: cores.Cores(present=8, allowed=8, quota=1.5))
    machine.prepare()
    assert variables() == {machine.THREADS: "5"}


def test_paths_of_the_engine_that_die_are_left_out(bench: Bench) -> None:
    library = bench.folder / "library"
    library.write_text("first")
    names = ["amx", "avx512", "avx2"]
    assert machine.paths_that_run(library, names) == names
    bench.simulate("avx512:die")
    assert machine.paths_that_run(library, names) == ["amx", "avx2"]
    count = len(bench.asked())
    assert machine.paths_that_run(library, names) == ["amx", "avx2"]
    assert len(bench.asked()) == count
    library.write_text("built anew")
    assert machine.paths_that_run(library, names) == ["amx", "avx2"]
    assert len(bench.asked()) > count
    bench.simulate("amx:lie")
    assert machine.paths_that_run(library, names) == ["avx512", "avx2"]
