"""Whichever way torch comes in, it is held back before: each case is a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import QUICK, ROOT

SHOWN = "import json, os; print(json.dumps(dict(os.environ)))"
ISA, MKL = "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"


def run(code: str, cache: Path, **variables: str) -> dict[str, str]:
    """The environment in which some code ends on a machine whose tiles die."""
    own = ("REGARD_", "ONEDNN_", "DNNL_", "MKL_", "ATEN_", "OMP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    given = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), "REGARD_SIMULATE": "tiles:die"}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOWN}"],
        env=kept | given | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_importing_regard_asks_nobody(tmp_path: Path) -> None:
    found = run("import regard", tmp_path)
    assert ISA not in found
    assert not list(tmp_path.iterdir())


def test_torch_that_was_there_before_is_held_back_without_asking(tmp_path: Path) -> None:
    found = run("import sys; sys.modules['torch'] = sys; import regard", tmp_path)
    assert found[ISA] == "AVX512_CORE_BF16"
    assert not list(tmp_path.iterdir())


def test_a_machine_that_is_not_known_is_asked_when_torch_is_loaded_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    found = run(
        "import regard, torch\nloader = torch.__loader__\nassert loader is torch.__spec__.loader\n"
        "assert 'regard' not in type(loader).__module__",
        tmp_path,
    )
    assert (found[ISA], found[MKL]) == ("AVX512_CORE_BF16", "AVX512_E3")
    assert list(tmp_path.iterdir())


def test_no_other_python_is_started_to_ask(tmp_path: Path) -> None:
    """It would load torch once more, which takes longer than everything else."""
    found = run("import sys; sys.executable = '/nowhere/python'; import regard, torch", tmp_path)
    assert (found[ISA], found[MKL]) == ("AVX512_CORE_BF16", "AVX512_E3")
    assert list(tmp_path.iterdir())


def test_torch_reads_what_it_is_held_to_when_it_first_computes(tmp_path: Path) -> None:
    late = "import os, torch; os.environ['ATEN_CPU_CAPABILITY'] = 'default'"
    run(
        f"{late}; assert 'AVX' not in torch.backends.cpu.get_cpu_capability().replace('NO AVX', '')", tmp_path
    )


def test_a_command_trains_where_tiles_die(
    cache: Path, tmp_path: Path, letter_files: tuple[Path, Path]
) -> None:
    words = [
        "train",
        *map(str, letter_files),
        "-o",
        str(tmp_path / "run"),
        *QUICK,
        "--set",
        "train.max_steps=3",
    ]
    found = run(f"from regard.cli.main import run; assert run({words!r}) == 0", cache)
    assert (found[ISA], found[MKL]) == ("AVX512_CORE_BF16", "AVX512_E3")
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_script_and_its_children_are_held_back(cache: Path) -> None:
    child = "import os; assert os.environ['ONEDNN_MAX_CPU_ISA'] == 'AVX512_CORE_BF16'"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    found = run(f"import regard; regard.attend; {start}", cache)
    assert found[MKL] == "AVX512_E3"
