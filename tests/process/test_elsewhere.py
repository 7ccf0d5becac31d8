"""Systems without fcntl and resource (Windows): the package is imported, and a folder is locked."""

import subprocess
import sys
from pathlib import Path

from command import environment

# What those systems lack is taken away before anything is imported; their own locks are played by a list.
WITHOUT = """
import os, sys, types
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
del os.pread, os.pwrite
"""
IMPORTED = """
import regard
from regard.cli.main import run
from regard.text.tokenizer import Tokenizer
assert Tokenizer.train(["the cat", "the dog"] * 9, vocab_size=0).decode([]) == ""
import regard.attention.heads, regard.models.transformer, regard.decoding.beam, regard.training.run
import regard.tasks.translation.translator, regard.look, regard.serving.server, regard.compare.trial
"""
LOCKED = """
held = []
def locking(number, how, count):
    if held:
        raise PermissionError
    held.append(number)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
from pathlib import Path
from regard.errors import UsageError
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
