"""Without fcntl, resource, fork and most signals (Windows) all modules are imported, a folder locked."""

import subprocess
import sys
from pathlib import Path

from command import environment

# What those systems lack is taken away before anything is imported; their own locks are played by a list.
WITHOUT = """
import os, signal, sys, types
import numpy, portalocker  # they go by the name of the system, which stays what it is
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("pread", "pwrite", "fork", "uname", "setpgid", "sched_getaffinity", "waitid"):
    delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGQUIT"):
    delattr(signal, name)
"""
IMPORTED = """
import importlib, pkgutil
import regard
for module in pkgutil.walk_packages(regard.__path__, "regard."):
    if not module.name.endswith(("__main__", "_native")):
        importlib.import_module(module.name)
from regard.text.tokenizer import Tokenizer
assert Tokenizer.train(["the cat", "the dog"] * 9, vocab_size=0).decode([]) == ""
from regard.errors import UsageError
from regard.serving.workers import Workers
try:
    Workers(2, print, print, print)
except UsageError as error:
    assert "--workers" in str(error), error
else:
    raise SystemExit("it would fork")
"""
LOCKED = """
held = []
def locking(number, how, count):
    if held:
        raise PermissionError
    held.append(number)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
from pathlib import Path
from regard.process.lock import locked
folder = Path(sys.argv[1])
with locked(folder):
    assert (folder / ".lock").read_text() == f"{os.getpid()}\\n"
    try:
        with locked(folder):
            raise SystemExit("it was locked twice")
    except UsageError as error:
        assert str(error).endswith(f"is being trained by process {os.getpid()}"), error
held.clear()
assert not (folder / ".lock").exists()
"""


def test_the_package_is_imported_and_a_folder_locked(tmp_path: Path) -> None:
    script = WITHOUT + IMPORTED + LOCKED
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
