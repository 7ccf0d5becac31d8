from pathlib import Path

import pytest
from machines import Bench

from regard.process import cpu

INTEL = """processor\t: 0
model name\t: A Xeon
cpu MHz\t\t: 2000.1
flags\t\t: fpu avx2 amx_tile amx_bf16

processor\t: 1
model name\t: Another
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd asimddp bf16\nCPU part\t: 0xd40\n\n"


def of(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench) -> cpu.Processor:
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(cpu, "CPUINFO", tmp_path / "cpuinfo")
    bench.forget()
    return cpu.processor()


def test_the_first_core_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    found = of(INTEL, tmp_path, monkeypatch, bench)
    assert found.name == "A Xeon"
    assert found.flags == {"fpu", "avx2", "amx_tile", "amx_bf16"}
    assert cpu.advertises_tiles()


def test_what_changes_by_the_minute_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    one = of(INTEL, tmp_path, monkeypatch, bench).block
    assert of(INTEL.replace("2000.1", "2700.9"), tmp_path, monkeypatch, bench).block == one
    assert of(INTEL.replace("avx2", "avx"), tmp_path, monkeypatch, bench).block != one


def test_other_systems_say_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    assert of(ARM, tmp_path, monkeypatch, bench).flags == {"fp", "asimd", "asimddp", "bf16"}
    assert not cpu.advertises_tiles()
    monkeypatch.setattr(cpu, "CPUINFO", tmp_path / "missing")
    bench.forget()
    assert cpu.processor().flags == frozenset()
    assert cpu.processor().name


def test_tiles_are_advertised_where_they_are_simulated(bench: Bench) -> None:
    bench.simulate("tiles:die")
    assert cpu.advertises_tiles()
