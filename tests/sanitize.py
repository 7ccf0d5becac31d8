"""`make sanitize`: the engine built with a sanitizer, under its own tests.

    python tests/sanitize.py [address | thread] [arguments of pytest]

address: memory and undefined behaviour; thread: data races. A copy of the checkout is built and tested, so
that the library in use stays as it is. The first finding ends the process that met it, and with it the tests.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLAGS = {"address": "-fsanitize=address,undefined -fno-sanitize-recover=all", "thread": "-fsanitize=thread"}
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# The interpreter and torch leak on purpose, and torch's own threads meet in ways that a sanitizer which did
# not build them cannot follow. A stack that is kept beyond its return is not aligned for vectors of 64 bytes
# (seen with GCC 12): paths that have them would die in their trial, and be left out of the tests.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:report_signal_unsafe=0",
}
TESTS = ["tests/engine", "tests/fused"]


def build(kind: str) -> Path:
    """A copy of the checkout whose engine was built with the sanitizer."""
    home = ROOT / "build" / "sanitize" / kind
    for part in ("regard", "tests"):
        leave = shutil.ignore_patterns("_native*.so", "__pycache__")
        shutil.copytree(ROOT / part, home / part, ignore=leave, dirs_exist_ok=True)
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / part, home / part)
    # A sanitizer's checks take the compiler an hour at -O3.
    setup = (ROOT / "setup.py").read_text(encoding="utf-8").replace('"-O3"', '"-O1"')
    (home / "setup.py").write_text(setup, encoding="utf-8")
    flags = f"{FLAGS[kind]} -g -fno-omit-frame-pointer"
    variables = {"CFLAGS": flags, "CXXFLAGS": flags, "LDFLAGS": flags}
    words = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(words, cwd=home, env=os.environ | variables, check=True)
    if not list(home.glob("regard/engine/_native*.so")):  # setup.py lets a build fail
        raise SystemExit("the engine was not built; is there a C++ compiler?")
    return home


def library(name: str) -> str:
    """Where the compiler has one of its libraries."""
    words = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_absolute():
        raise SystemExit(f"the compiler has no {name}; install its sanitizers")
    return found


def run(kind: str, arguments: list[str]) -> int:
    """Build, then test; the exit code."""
    home = build(kind)
    runtimes = [library(name) for name in (*RUNTIMES[kind], "libstdc++.so")]
    variables = {
        **OPTIONS,
        "LD_PRELOAD": " ".join(runtimes),
        "PYTHONPATH": str(home),
        "OMP_NUM_THREADS": "1",
        "PYTHONMALLOC": "malloc",  # so that each object of the interpreter has its own borders
    }
    environment = os.environ | variables
    asked = "from regard.engine import path; print('paths under test:', *path.try_again())"
    subprocess.run([sys.executable, "-c", asked], cwd=home, env=environment, check=True)
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(words, cwd=home, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1] if len(sys.argv) > 1 else "address", sys.argv[2:]))
