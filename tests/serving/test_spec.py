"""Requests that schemathesis makes up from the server's own description: none makes it fail."""

import subprocess
import sys
from pathlib import Path


def test_made_up_requests_never_make_it_fail(server, tmp_path):
    tool = Path(sys.executable).parent / "schemathesis"
    words = [tool, "run", f"{server.url}/spec", "--checks", "not_a_server_error,content_type_conformance"]
    words += ["--max-examples", "12", "--phases", "fuzzing", "--seed", "1", "--no-color"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert server.get("/health").status == 200
