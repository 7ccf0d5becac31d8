"""What is in deploy/: it names flags, routes and metrics that there are, and gives time to end."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from regard.cli.main import app
from regard.serving.app import Shared
from regard.serving.limits import Limits
from regard.serving.metrics import Metrics

DEPLOY = Path(__file__).parent.parent / "deploy"


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def docker(word: str) -> list[str]:
    """What follows a word of the Dockerfile, its lines joined."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    return re.findall(rf"^{word} +(.*)$", text, re.MULTILINE)


def container() -> Any:
    (found,) = read("kubernetes/deployment.yaml")["spec"]["template"]["spec"]["containers"]
    return found


def commands() -> dict[str, list[str]]:
    unit = re.search(r"^ExecStart=\S+/regard (.*)$", (DEPLOY / "regard.service").read_text(), re.MULTILINE)
    assert unit
    return {
        "Dockerfile": yaml.safe_load(docker("CMD")[-1]),
        "compose": read("compose.yaml")["services"]["regard"]["command"],
        "systemd": shlex.split(unit[1]),
        "kubernetes": container()["args"],
    }


@pytest.mark.parametrize("name", commands())
def test_every_command_is_one_that_regard_takes(name: str) -> None:
    verb, *flags = commands()[name]
    command: Any = typer.main.get_command(app())
    with command.commands[verb].make_context(verb, flags) as context:
        assert context.params["port"] == 5000
        assert context.params["models"]


def test_probes_ask_routes_that_there_are() -> None:
    routes = {route.path for route in Shared(None).routes()}  # type: ignore[arg-type]
    probes = [container()[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")]
    checked = re.search(r"5000(/\w+)", docker("HEALTHCHECK")[0])
    assert checked
    assert {*probes, checked[1]} <= routes
    assert probes[2] == checked[1] == "/live"  # what loads or drains is not to be killed


def test_a_server_has_time_to_answer_what_it_has_taken() -> None:
    drain = Limits().drain_seconds
    pod = read("kubernetes/deployment.yaml")["spec"]["template"]["spec"]
    (pause,) = container()["lifecycle"]["preStop"]["exec"]["command"][1:]
    assert pod["terminationGracePeriodSeconds"] > drain + int(pause)
    assert int(read("compose.yaml")["services"]["regard"]["stop_grace_period"].rstrip("s")) > drain
    stop = re.search(r"^TimeoutStopSec=(\d+)$", (DEPLOY / "regard.service").read_text(), re.MULTILINE)
    assert stop
    assert int(stop[1]) > drain


def test_kubernetes_objects_belong_together() -> None:
    deployment, service, scaler = (
        read(f"kubernetes/{name}.yaml") for name in ("deployment", "service", "autoscaler")
    )
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert service["spec"]["ports"][0]["targetPort"] == container()["ports"][0]["name"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    (metric,) = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"].encode() in Metrics().text()


@pytest.mark.parametrize("path", sorted((DEPLOY / "kubernetes").iterdir()), ids=lambda path: path.stem)
def test_kubernetes_schemas_allow_it_and_know_every_key(path: Path) -> None:
    latest = kubernetes_validate.latest_version()
    kubernetes_validate.validate(yaml.safe_load(path.read_text()), latest, strict=True)


def test_hadolint_finds_nothing_wrong_with_the_image() -> None:
    lint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([lint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_copies_what_is_there_and_runs_as_nobody() -> None:
    root = DEPLOY.parent
    for line in docker("COPY"):
        if not line.startswith("--from"):
            assert all((root / name).exists() for name in line.split()[:-1])
    assert docker("USER") == ["10001"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    # The command of the unit is not installed here; everything else is looked at.
    unit = tmp_path / "regard.service"
    unit.write_text((DEPLOY / "regard.service").read_text().replace("/opt/regard/bin/regard", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "regard.service" not in done.stderr, done.stderr
