import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import environment
from machines import Bench

from regard.process import survival
from regard.process.survival import ask


@pytest.fixture(autouse=True)
def _own(bench: Bench) -> None:
    bench.probe(PROBE)


# Says each name backwards and does what the name asks for first.
PROBE = """
import os, signal, sys, time
for name in sys.argv[2:]:
    if name == "die":
        os.kill(os.getpid(), signal.SIGILL)
    elif name == "hang":
        time.sleep(1000)
    elif name == "leave":
        sys.exit(3)
    print("of", sys.argv[1], flush=True)
    print(name, name[::-1], os.environ.get("MARK"), flush=True)
"""


def test_answers_are_those_that_came() -> None:
    found = ask("who", ["one", "two"], os.environ | {"MARK": "x"})
    assert found == {"one": ["eno", "x"], "two": ["owt", "x"]}


@pytest.mark.parametrize("end", ["die", "leave"])
def test_the_name_that_ends_the_child_is_left_out_and_the_others_are_tried(end: str) -> None:
    assert list(ask("who", ["one", end, "two", end, "three"], os.environ)) == ["one", "two", "three"]


def test_a_child_that_hangs_is_ended() -> None:
    assert list(ask("who", ["one", "hang", "two"], os.environ, limit=3)) in (["one"], [])


def test_rubbish_is_no_answer(bench: Bench) -> None:
    bench.probe("import sys; sys.stdout.buffer.write(bytes(range(256)) * 9); print('\\n\\n other 1')")
    assert ask("who", ["one"], os.environ) == {}


def test_where_no_process_starts_the_caller_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(OSError, match="nowhere"):
        ask("who", ["one"], os.environ)


def test_a_copy_that_hangs_is_ended_and_a_new_process_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    monkeypatch.setattr(survival, "COPY_LIMIT", 0.1)
    monkeypatch.setattr(survival, "_answer_as_copy", lambda *_: time.sleep(1000))
    assert ask("who", ["one"], os.environ | {"MARK": "x"}, fork=True) == {"one": ["eno", "x"]}
    with pytest.raises(ChildProcessError):  # nobody is left to wait for
        os.waitpid(children[0], os.WNOHANG)


def test_where_no_copy_can_be_made_a_new_process_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise OSError("no memory")

    monkeypatch.setattr(os, "fork", refused)
    assert list(ask("who", ["one"], os.environ, fork=True)) == ["one"]


def test_a_copy_says_what_it_computed_and_leaves_no_trace(tmp_path: Path) -> None:
    code = (
        "import atexit, faulthandler, os, sys; faulthandler.enable(); print('begun', end=' ')\n"
        "atexit.register(lambda: print('ended'))\n"
        "import regard, torch\n"
        "from regard.process.survival import ask\n"
        "environment = dict(os.environ, REGARD_SIMULATE='bf16:die')\n"
        "print(*ask('torch', ['bf16', 'fp32'], environment, fork=True), os.environ.get('REGARD_SIMULATE'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment() | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("begun fp32 None\nended\n", "")
