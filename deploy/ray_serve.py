"""Regard on a cluster of Ray: as many replicas of the whole server as are needed, behind Ray's proxy.

    pip install 'regard[serve]' 'ray[serve]'
    cd deploy && serve run ray_serve:app models=/srv/regard/en-de replicas=1-4

`models` are folders that every machine of the cluster can read, several with commas between, each as
`regard serve` takes it. Every route answers as that server's does, the page too. A replica is ready once its
models are loaded, and one that leaves first answers what it has begun. More of them are started when each has
more than a few requests under way.
"""

import re
from typing import Any

from ray import serve

from regard.serving.app import build_app
from regard.serving.family import parse_place
from regard.serving.service import Service

UNDER_WAY = 8  # requests in each replica, of which one more is started
DRAIN = 40  # seconds for what was begun: more than a request may take


def _understood(asked: dict[str, str]) -> tuple[int, int, float]:
    """Least and most replicas, and the cores of each; SystemExit with a line for what makes no sense."""
    wrong = sorted(asked.keys() - {"models", "replicas", "cpus"})
    replicas = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", asked.get("replicas", "1"))
    cpus = re.fullmatch(r"\d{1,4}(\.\d{1,3})?", asked.get("cpus", "2"))
    least, most = (int(replicas[1]), int(replicas[2] or replicas[1])) if replicas else (1, 0)
    if most < max(1, least):
        wrong.append(f"replicas={asked.get('replicas')}")
    if cpus is None or not float(cpus[0]):
        wrong.append(f"cpus={asked.get('cpus')}")
    if wrong or cpus is None or not asked.get("models"):
        told = ", ".join(wrong) or "no models"
        raise SystemExit(f"ray_serve:app takes models=DIR[,DIR], replicas=LEAST-MOST and cpus=N, not {told}")
    return least, most, float(cpus[0])


def app(asked: dict[str, str]) -> Any:
    """What `serve run` and `serve deploy` start; `asked` are the words behind it."""
    least, most, cpus = _understood(asked)
    folders = asked["models"].split(",")

    def build() -> Any:
        return build_app(Service([parse_place(each) for each in folders], quiet=True))

    @serve.deployment(  # type: ignore[untyped-decorator]
        name="regard",
        autoscaling_config={
            "min_replicas": least,
            "max_replicas": most,
            "target_ongoing_requests": UNDER_WAY,
        },
        max_ongoing_requests=8 * UNDER_WAY,  # beyond, its own queue says what it thinks of it
        graceful_shutdown_timeout_s=DRAIN,
        ray_actor_options={"num_cpus": cpus},
    )
    @serve.ingress(build)
    class Regard:
        """One replica."""

    return Regard.bind()
