"""deploy/ray_serve.py on Ray Serve itself: the same routes, the same answers, the same refusals."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, environment
from worlds import free_port

import regard

DEPLOY = ROOT / "deploy"
SCRIPT = """
import json, sys, urllib.error, urllib.request
import ray
from ray import serve
import ray_serve

model, port = sys.argv[1:]
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": int(port)})
serve.run(ray_serve.app({"models": model, "cpus": "1"}), name="regard", route_prefix="/")

def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, kind)
    try:
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

said = [ask("/health"), ask("/translate", {"q": "a b c", "source": "en", "target": "de"}), ask("/")]
said += [ask("/translate", {"q": 1}), ask("/v1/models")]
serve.shutdown()
ray.shutdown()
print(json.dumps(said))
"""


def test_a_replica_answers_as_the_server_does(model: Path) -> None:
    pytest.importorskip("ray.serve", reason="pip install 'ray[serve]'")
    more = {"RAY_DISABLE_MEMORY_MONITOR": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    env = environment() | more
    env["PYTHONPATH"] = f"{DEPLOY}:{env['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, f"en-de={model}", str(free_port())],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    health, translated, page, wrong, models = json.loads(done.stdout.splitlines()[-1])
    assert health == [200, '{"status":"ready"}']
    (wanted,) = regard.load(model).translate(["a b c"])
    assert translated[0] == 200
    assert json.loads(translated[1])["translatedText"] == wanted
    assert page[0] == 200
    assert page[1].startswith("<!DOCTYPE html>")
    assert wrong[0] == 400
    assert "q" in json.loads(wrong[1])["error"]
    assert [each["id"] for each in json.loads(models[1])["data"]] == ["en-de"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "no models"),
        ({"models": ""}, "no models"),
        ({"models": "a", "model": "b"}, "model"),
        *(({"models": "a", "replicas": each}, f"replicas={each}") for each in ("x", "3-1", "0", "-2", "1-")),
        *(({"models": "a", "cpus": each}, f"cpus={each}") for each in ("x", "0", "-1", "nan")),
    ],
)
def test_words_that_it_does_not_take_are_said(monkeypatch: pytest.MonkeyPatch, asked: Any, told: str) -> None:
    pytest.importorskip("ray.serve", reason="pip install 'ray[serve]'")
    monkeypatch.syspath_prepend(str(DEPLOY))
    import ray_serve

    with pytest.raises(SystemExit, match=f"takes models=DIR.* not {told}$"):
        ray_serve.app(asked)
