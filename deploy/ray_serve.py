"""Regard on a cluster of Ray: as many replicas of the whole server as are needed, behind Ray's proxy.

    pip install 'regard[serve]' 'ray[serve]'
    cd deploy && serve run ray_serve:app models=/srv/regard/en-de replicas=1-4

`models` are folders that every machine of the cluster can read, several with commas between, each as
`regard serve` takes it. Every route answers as that server's does, the page too. A replica is ready once its
models are loaded, and one that leaves first answers what it has begun. More of them are started when each has
more than a few requests under way.
"""

from typing import Any

from ray import serve

from regard.serving.app import build_app
from regard.serving.family import parse_place
from regard.serving.service import Service

UNDER_WAY = 8  # requests in each replica, of which one more is started
DRAIN = 40  # seconds for what was begun: more than a request may take


def app(asked: dict[str, str]) -> Any:
    """What `serve run` and `serve deploy` start; `asked` are the words behind it."""
    wrong = sorted(asked.keys() - {"models", "replicas", "cpus"})
    if wrong or not asked.get("models"):
        told = ", ".join(wrong) or "no models"
        raise SystemExit(f"ray_serve:app takes models=DIR[,DIR], replicas=LEAST-MOST and cpus=N, not {told}")
    least, _, most = asked.get("replicas", "1-1").partition("-")
    folders = asked["models"].split(",")

    def build() -> Any:
        return build_app(Service([parse_place(each) for each in folders], quiet=True))

    @serve.deployment(  # type: ignore[untyped-decorator]
        name="regard",
        autoscaling_config={
            "min_replicas": int(least),
            "max_replicas": int(most or least),
            "target_ongoing_requests": UNDER_WAY,
        },
        max_ongoing_requests=8 * UNDER_WAY,  # beyond, its own queue says what it thinks of it
        graceful_shutdown_timeout_s=DRAIN,
        ray_actor_options={"num_cpus": float(asked.get("cpus", "2"))},
    )
    @serve.ingress(build)
    class Regard:
        """One replica."""

    return Regard.bind()
