"""Every verb that writes, on a disk that fails at each operation in turn: see tests/failing.py."""

import json
import subprocess
import sys
from pathlib import Path

from command import ROOT, environment


def test_what_was_there_survives_a_disk_that_fails(tmp_path: Path) -> None:
    library, result = tmp_path / "failing.so", tmp_path / "result.json"
    source = ROOT / "tests" / "failing.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    given = environment() | {"LD_PRELOAD": str(library)}
    given["PYTHONPATH"] += f":{ROOT / 'tests'}"
    script = [sys.executable, "-W", "ignore", ROOT / "tests" / "failing.py", tmp_path, result]
    done = subprocess.run(script, env=given, capture_output=True, text=True, timeout=900, check=False)
    assert result.exists(), done.stderr
    found = json.loads(result.read_text())
    assert not found["faults"], "\n".join(found["faults"])
    assert all(count > 3 for count in found["tried"].values()), found["tried"]
