import platform

import pytest
from machines import Bench

from regard.process import cpu, kind, machine

VNNI = "avx2 avx512f avx512bw avx512_vnni"


def having(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cpu.Processor("some", frozenset(flags.split()), flags)
    monkeypatch.setattr(kind, "processor", lambda: found)
    for place in (kind, machine):
        monkeypatch.setattr(place, "advertises_tiles", lambda: "amx_tile" in found.flags)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("sse2 avx2 fma", "avx2"),
        ("avx2 avx_vnni", "avx-vnni"),
        ("avx2 avx512f avx512bw", "avx512"),
        (VNNI, "avx512-vnni"),
        (f"{VNNI} avx512_bf16", "avx512-vnni-bf16"),
        (f"{VNNI} avx512_bf16 amx_tile", "avx512-vnni-bf16, tiles"),
        ("fp asimd asimddp", "aarch64-dotprod"),
        ("fp asimd asimddp i8mm", "aarch64-i8mm"),
        ("", platform.machine()),
    ],
)
def test_a_kind_is_named_by_what_it_has(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, flags: str, name: str
) -> None:
    having(flags, monkeypatch)
    assert kind.kind() == name


def test_tiles_that_die_make_another_kind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    having(f"{VNNI} amx_tile", monkeypatch)
    bench.simulate("tiles:die")
    assert kind.kind() == "avx512-vnni, tiles die"
    machine.prepare()  # what Regard rules out itself is not forced
    assert kind.kind() == "avx512-vnni, tiles die"


def test_what_is_forced_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    having(VNNI, monkeypatch)
    monkeypatch.setenv(machine.ISA, "AVX2")
    monkeypatch.setenv(machine.ATEN, "avx2")
    assert kind.kind() == "avx512-vnni machine, forced to avx2"
    monkeypatch.setenv("REGARD_ENGINE_PATH", "portable")
    assert kind.kind() == "avx512-vnni machine, forced to avx2 and portable"
