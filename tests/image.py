"""The steps of deploy/Dockerfile in a fresh root, where there is no container engine; run it as root.

    python tests/image.py PLACE MODEL_DIR [--bind FOLDER ...]

Each stage begins as a bare Debian (debootstrap) of the release that the base image names, with its Python.
RUN and COPY are done as they stand there; then the server is started as the image would start it, as its
user, on the model, until the health check answers; it translates, is told to end, and ends. Packages come
from where those of this machine do: its settings of apt and pip are copied, and folders that pip is told of
are bound by --bind. Not part of the tests: it installs for minutes. PLACE must be new, and is left there.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent
TAKEN = ("etc/apt", "etc/pip.conf", "etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")
BASE = "ca-certificates,python3,python3-venv,debian-archive-keyring"
PATIENCE = 120.0  # seconds until it must be healthy, as the health check has it


def steps(text: str) -> list[tuple[str, str]]:
    """The words of a Dockerfile with what follows them; comments are gone and lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n", " ", lines)
    return [(word, rest.strip()) for word, rest in re.findall(r"^([A-Z]+) +(.*)$", joined, re.MULTILINE)]


class Root:
    """One stage: a folder that holds a system, and what its steps have set."""

    def __init__(self, place: Path, bound: list[Path]) -> None:
        self.place, self.bound = place, bound
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
        self.environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.folder, self.user = "/", "0"

    def within(self, command: list[str], *, read_only: dict[Path, str] | None = None) -> list[str]:
        """A command in this root; what it mounts is gone when it ends."""
        mounts = [f"mount -t proc proc {self.place}/proc"]
        for source, target in {**{each: str(each) for each in self.bound}, **(read_only or {})}.items():
            inside = self.place / target.lstrip("/")
            inside.mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --bind -o ro {shlex.quote(str(source))} {inside}")
        told = [f"{name}={value}" for name, value in self.environment.items()]
        entered = ["chroot", f"--userspec={self.user}:{self.user}", str(self.place), "env", "-i", *told]
        inner = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        script = " && ".join([*mounts, f"exec {shlex.join([*entered, 'sh', '-c', inner])}"])
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]

    def run(self, line: str) -> None:
        subprocess.run(self.within(["sh", "-c", line]), check=True)

    def copy(self, words: list[str], stages: dict[str, "Root"]) -> None:
        """As COPY does: from the checkout, or from another stage."""
        source = HERE
        if words[0].startswith("--from="):
            source = stages[words.pop(0).removeprefix("--from=")].place
        *names, target = words
        into = self.place / (self.folder + "/" + target if not target.startswith("/") else target).lstrip("/")
        for name in names:
            found = source / name.lstrip("/")
            if found.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so")  # which the image compiles itself
                shutil.copytree(found, into, symlinks=True, ignore=ignored if source == HERE else None)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, into)


def bare(place: Path, image: str) -> None:
    """A Debian of the release that an image's name ends with, and `python` in it."""
    release = image.rpartition("-")[2]
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    site = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    made = ["debootstrap", "--variant=minbase", f"--include={BASE}", release, str(place), site]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    for name in TAKEN:
        taken = ["cp", "-rL", "--remove-destination", f"/{name}", str((place / name).parent)]
        if Path("/", name).exists():
            subprocess.run(taken, check=True)
    (place / "usr/local/bin/python").symlink_to("/usr/bin/python3")


def build(place: Path, bound: list[Path]) -> tuple[Root, dict[str, Any]]:
    """The last stage, and the words that say how it runs."""
    stages: dict[str, Root] = {}
    root, told = Root(place, bound), {}
    for word, rest in steps((HERE / "deploy/Dockerfile").read_text()):
        print(word, rest, flush=True)
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            root = stages[name or "last"] = Root(place / (name or "last"), bound)
            if not (place / "bare").exists():
                bare(place / "bare", image)
            subprocess.run(["cp", "-a", place / "bare", root.place], check=True)
        elif word == "RUN":
            root.run(rest)
        elif word == "COPY":
            root.copy(rest.split(), stages)
        elif word == "ENV":
            for each in shlex.split(rest):
                name, _, value = each.partition("=")
                root.environment[name] = value.replace("$PATH", root.environment["PATH"])
        elif word == "WORKDIR":
            root.folder = rest
            (root.place / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            root.user = rest
        elif word == "HEALTHCHECK":
            told[word] = json.loads(rest.partition("CMD ")[2])
        elif word in ("ENTRYPOINT", "CMD"):
            told[word] = json.loads(rest)
    return root, told


def answers(path: str) -> bool:
    """Whether there is a good answer."""
    try:
        ask(path)
    except OSError:
        return False
    return True


def ask(path: str, fields: dict[str, str] | None = None) -> Any:
    data = None if fields is None else json.dumps(fields).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:5000{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def healthy(root: Root, check: list[str]) -> bool:
    """What the image's own check says."""
    return subprocess.run(root.within(check), stderr=subprocess.DEVNULL, check=False).returncode == 0


def serve(root: Root, told: dict[str, Any], model: Path) -> None:
    """Start it as the image would, wait until it is healthy, use it, and have it end."""
    mounted = {model: "/model"}
    server = subprocess.Popen(root.within([*told["ENTRYPOINT"], *told["CMD"]], read_only=mounted))
    try:
        until = time.monotonic() + PATIENCE
        while not healthy(root, told["HEALTHCHECK"]) or not answers("/health"):
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < until, "it is not healthy"
            time.sleep(1)
        pair = next(each for each in ask("/languages") if each["targets"])
        fields = {"q": "A dog runs.", "source": pair["code"], "target": pair["targets"][0]}
        print("healthy;", ask("/translate", fields))
        inside = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
        print("runs as user", Path(f"/proc/{inside}").stat().st_uid)
        os.kill(inside, 15)
        print("told to end, it ended with", server.wait(PATIENCE))
    finally:
        server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("place", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--bind", type=Path, action="append", default=[])
    options = parser.parse_args()
    options.place.mkdir(parents=True)
    serve(*build(options.place.resolve(), options.bind), options.model.resolve())


if __name__ == "__main__":
    main()
