"""The paths through the native engine: each that runs here against plain loops, and the choice of one."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from regard.data.inputs import pad_sources
from regard.decoding.beam import beam_search
from regard.engine import path
from regard.engine.engine import Engine
from regard.errors import UsageError
from tests.engine.test_engine import SHAPES, rules_for, same, sentences, transformer

pytestmark = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")

PATHS = [] if path.available() is not None else path.running()
# Rows, columns, what is summed: whole tiles and panels, one less and one more, primes, and blocks of rows.
SIZES = [
    (1, 1, 1),
    (2, 17, 3),
    (3, 31, 16),
    (4, 33, 17),
    (5, 47, 61),
    (6, 64, 64),
    (7, 65, 67),
    (11, 113, 127),
]
SIZES += [
    (13, 48, 128),
    (16, 80, 192),
    (17, 97, 31),
    (31, 19, 113),
    (37, 128, 71),
    (97, 37, 33),
    (193, 16, 19),
]
TILES = [(16, 32, 64), (35, 83, 128), (64, 48, 192)]  # of sixteen rows and 64 bytes, and what is left over


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_path_does_what_plain_loops_do(name: str, sizes: tuple[int, int, int]):
    assert path.fault(name, *sizes) == ""


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_is_offered_runs(name: str):
    assert path.compiled().regard_try(name.encode()) == 0


def test_a_path_that_is_unknown_or_not_offered_is_not_run():
    assert path.compiled().regard_try(b"abacus") == 1
    others = [name for name in path.paths() if name not in path.offered()]
    assert [path.compiled().regard_try(name.encode()) for name in others] == [2] * len(others)
    assert "not offered" in path.fault("abacus", 1, 1, 1)


def test_a_path_that_dies_here_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh: Callable[[], None]
):
    best, *others = path.offered()
    if not others:
        return  # the plain one is all there is
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("REGARD_SIMULATE", f"{best}:die")
    monkeypatch.delenv(path.FORCED, raising=False)
    fresh()
    assert best not in path.running()
    assert path.path() in others
    monkeypatch.setenv(path.FORCED, best)
    with pytest.raises(UsageError, match=f"this machine runs {path.running()[0]}"):
        path.path()


@pytest.fixture
def fresh() -> Iterator[Callable[[], None]]:
    """Forgets which paths run, now and afterwards."""
    yield path.running.cache_clear
    path.running.cache_clear()


def test_the_best_is_taken_and_another_one_forced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(path.FORCED, raising=False)
    assert path.path() == PATHS[0]
    monkeypatch.setenv(path.FORCED, "portable")
    assert path.path() == "portable"
    monkeypatch.setenv(path.FORCED, "abacus")
    with pytest.raises(UsageError, match=r"REGARD_ENGINE_PATH \(abacus\) must be one of .*portable"):
        path.path()
    monkeypatch.setattr(path, "running", lambda: ["portable"])
    monkeypatch.setenv(path.FORCED, path.paths()[0])
    with pytest.raises(UsageError, match="this machine runs portable"):
        path.path()


@pytest.mark.parametrize(("slow", "taken"), [("amx-int8", "avx512-vnni"), ("avx512-vnni", "amx-int8")])
def test_of_paths_that_sum_alike_a_model_takes_the_one_that_is_fastest_at_its_products(
    slow: str, taken: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    asked: list[tuple[str, tuple[int, int, int]]] = []

    def speed(
        name: str, precision: str, *, threads: int, sizes: tuple[int, int, int], seconds: float
    ) -> float:
        asked.append((name, sizes))
        return 1.0 if name == slow else 2.0

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(path.FORCED, raising=False)
    monkeypatch.setattr(path, "running", lambda: ["amx-int8", "avx512-vnni", "avx2", "portable"])
    monkeypatch.setattr(path, "speed", speed)
    path.fastest.cache_clear()
    assert path.path(68, 22) == taken
    sizes = [(1, 68, 22), (32, 68, 22)]
    assert asked == [(name, each) for name in ("amx-int8", "avx512-vnni") for each in sizes]  # never avx2
    path.fastest.cache_clear()
    assert path.path(68, 22) == taken
    assert len(asked) == 4  # it was remembered
    assert path.path(34, 22) == taken
    assert len(asked) == 8
    path.fastest.cache_clear()


def test_where_there_is_no_choice_nothing_is_timed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(path.FORCED, raising=False)
    monkeypatch.setattr(path, "running", lambda: ["avx512-vnni", "avx2", "portable"])
    monkeypatch.setattr(path, "speed", None)
    path.fastest.cache_clear()
    assert path.path(68, 22) == "avx512-vnni"
    path.fastest.cache_clear()


def test_a_path_is_timed_in_every_precision():
    for precision in path.PRECISIONS:
        assert path.speed(PATHS[-1], precision, threads=2, seconds=0.001) > 0
    assert path.speed("abacus", "int8", threads=1) == 0


@pytest.mark.parametrize("shape", ["prime", "bare norms", "rotary grouped"])
@pytest.mark.parametrize("name", PATHS)
def test_every_path_gives_what_the_readable_search_gives(
    name: str, shape: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(path.FORCED, name)
    model, sources = transformer(SHAPES[shape]), sentences()
    rules = rules_for(model, sources)
    with torch.inference_mode():
        wanted = beam_search(model, pad_sources(sources), rules, beam=3, n_best=3)
    same(Engine(model, precision="fp32").search(sources, rules, beam=3, n_best=3), wanted)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_paths_translate_alike(precision: str, monkeypatch: pytest.MonkeyPatch):
    """The same tokens, but for the coarser bytes of a processor that cannot sum eight bits; scores near."""
    model, sources = transformer({}), sentences()
    rules = rules_for(model, sources)
    found = {}
    for name in PATHS:
        monkeypatch.setenv(path.FORCED, name)
        found[name] = Engine(model, precision=precision).search(sources, rules)
    exact = found["portable"]
    for name, outputs in found.items():
        alike = [(a, b) for a, b in zip(outputs, exact, strict=True) if a[0].ids == b[0].ids]
        coarse = precision == "int8" and name == "avx2"
        assert len(alike) == len(exact) or (coarse and alike)
        for ours, theirs in alike:
            assert ours[0].score == pytest.approx(theirs[0].score, abs=0.1 if coarse else 1e-3)


# Paths that do not run here ------------------------------------------------------------------------


def missing(*programs: str) -> None:
    """Skips where a program is not installed; under CI that is a failure."""
    for program in programs:
        if shutil.which(program) is None:
            reason = f"{program} is not installed: the paths of other processors are not run"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def try_all(folder: Path, compiler: str, *options: str, emulator: Sequence[str] = ()) -> list[str]:
    """The paths that a program of the inner loops alone offers; each does as plain loops do."""
    here, native = Path(__file__).parent, Path(path.__file__).parent / "native"
    loops = ("kernels", "trial", "portable", "avx2", "avx512", "neon")
    sources = [*(str(native / f"{name}.cpp") for name in loops), str(here / "paths.cpp")]
    program = folder / "paths"
    flags = ["-std=gnu++17", "-O1", "-w", f"-I{native}", f"-I{here}", *options]
    subprocess.run([compiler, *flags, "-o", str(program), *sources], check=True, capture_output=True)
    words = [str(number) for sizes in [*SIZES, *TILES] for number in sizes]
    done = subprocess.run([*emulator, str(program), *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.split()


def test_the_paths_of_aarch64_under_an_emulator(tmp_path: Path):
    missing("aarch64-linux-gnu-g++", "qemu-aarch64")
    emulator = ["qemu-aarch64", "-cpu", "max"]
    found = try_all(tmp_path, "aarch64-linux-gnu-g++", "-static", emulator=emulator)
    assert found == ["neon-i8mm", "neon-dot", "portable"]


@pytest.mark.skipif(
    "avx512-vnni" not in PATHS, reason="the emulated paths need vectors of 512 bits around them"
)
def test_the_loops_around_tiles_and_avx_vnni_with_their_instructions_spelled_out(tmp_path: Path):
    missing("g++")
    found = try_all(tmp_path, "g++", "-DREGARD_EMULATE=1")
    assert found == ["amx-int8", "avx512-vnni", "avx-vnni", "avx2", "portable"]
