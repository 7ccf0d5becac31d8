"""`regard machine`: what this machine really can do, measured. It is what a bug report should hold."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from regard.cli.options import takes


@dataclass(frozen=True)
class Options:
    """What `regard machine` takes."""

    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False


@takes(Options)
def machine(options: Options) -> None:
    """Say what this machine really can do, measured.

    Instructions are tried anew by processes that may die; what is found is remembered for the other verbs.
    """
    from regard.process.inventory import lines, take_inventory

    tree = take_inventory(_engine())
    print(json.dumps(tree, indent=1) if options.as_json else "\n".join(lines(tree)))


def _engine() -> dict[str, Any]:
    """The engine's part: which paths run, and how fast the chosen one multiplies."""
    from regard.engine import path
    from regard.process.machine import cores

    missing = path.available()
    if missing:
        return {"missing": missing}
    runs = path.try_again()
    chosen = path.path()
    speeds = {each: path.speed(chosen, each, threads=cores()) for each in ("fp32", "bf16", "int8")}
    return {"path": chosen, "runs": runs, "compiled": path.paths(), "operations_per_second": speeds}
