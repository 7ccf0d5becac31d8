"""Several processes train one model, and nothing of it depends on how many they are."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from command import ROOT, environment
from toy import TINY, write_pairs
from worlds import free_port, of_run, run_worlds, variables
from worlds import settings as as_words

import regard
from regard.errors import StorageError, UsageError
from regard.training.checkpoint import newest, saved_steps
from regard.training.workspace import CHECKPOINTS
from regard.training.world import ALONE, here, joined

SHARED = TINY | {
    "train.accumulate": 4,
    "train.max_steps": 5,
    "train.valid_every": 2,
    "train.save_every": 1e6,
    "train.schedule": "constant",
}
LONG = 40  # steps: long enough to be killed in between
LANGUAGE = {"text.units": "characters", "model.encoder_layers": 0}


def flags(**settings: object) -> list[str]:
    return as_words(SHARED | {key.replace("__", "."): value for key, value in settings.items()})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_pairs(folder)
    text = "".join(f"{line}\n" for line in (folder / "toy.src").read_text().splitlines() * 9)
    (folder / "text.txt").write_text(text)
    (folder / "other.src").write_text((folder / "toy.src").read_text().replace("two", "six"))
    return folder


def pairs(place: Path, out: str, **settings: object) -> list[str]:
    """Training a translator."""
    files = [str(place / "toy.src"), str(place / "toy.tgt")]
    return ["train", *files, "-o", str(place / out), *flags(**settings)]


def text(place: Path, out: str, **settings: object) -> list[str]:
    """Training a language model."""
    files = ["--task", "language", str(place / "text.txt")]
    return ["train", *files, "-o", str(place / out), *flags(**settings), *as_words(LANGUAGE)]


@pytest.fixture(scope="module")
def ran(place: Path) -> Any:
    """What became of the processes of worlds that were run one after the other, by name."""
    epoch = {"train__optimizer": "adam", "train__max_steps": 0, "train__max_epochs": 1}
    worlds: dict[str, list[list[str]]] = {}
    for size in (1, 2):
        worlds[f"pairs{size}"] = [pairs(place, f"pairs{size}")] * size
    for size in (1, 4):
        worlds[f"text{size}"] = [text(place, f"text{size}", **epoch)] * size
    worlds["half"] = [pairs(place, "moved", train__max_steps=2)] * 2
    worlds["more"] = [pairs(place, "moved", train__max_steps=3)]
    worlds["rest"] = [pairs(place, "moved")] * 4
    cut = {"train__shard": "true"}
    worlds["cut half"] = [pairs(place, "cut", train__max_steps=2, **cut)] * 2
    worlds["cut more"] = [pairs(place, "cut", train__max_steps=3, **cut)]
    worlds["cut rest"] = [pairs(place, "cut", **cut)] * 3
    worlds["cut text"] = [text(place, "cut text", **epoch, **cut)] * 2
    worlds["long1"] = [pairs(place, "long1", train__max_steps=LONG)]
    worlds["too many"] = [pairs(place, "bad", train__accumulate=1)] * 2
    worlds["other rate"] = [pairs(place, "bad"), pairs(place, "bad", train__lr=0.02)]
    missing = [word.replace("toy.src", "none.src") for word in pairs(place, "bad")]
    worlds["missing"] = [pairs(place, "bad"), missing]
    other = [word.replace("toy.src", "other.src") for word in pairs(place, "bad")]
    worlds["other files"] = [pairs(place, "bad"), other]
    worlds["other processor"] = [pairs(place, "bad"), ["ATEN_CPU_CAPABILITY=default", *pairs(place, "bad")]]
    return dict(zip(worlds, run_worlds(list(worlds.values())), strict=True))


def weights(folder: Path) -> str:
    return of_run(folder)[0]


@pytest.mark.parametrize(("name", "sizes"), [("pairs", [2]), ("text", [4])])
def test_weights_and_scores_do_not_depend_on_how_many_processes_there_are(
    place: Path, ran: Any, name: str, sizes: list[int]
) -> None:
    for size in (1, *sizes):
        assert [each["code"] for each in ran[f"{name}{size}"]] == [0] * size, ran[f"{name}{size}"]
    for size in sizes:
        assert of_run(place / f"{name}{size}") == of_run(place / f"{name}1")
        assert [each["said"] for each in ran[f"{name}{size}"][1:]] == [""] * (size - 1)
        assert f"{size} processes share the 4 batches of a step" in ran[f"{name}{size}"][0]["said"]


def test_process_0_saves_what_the_others_remember(place: Path, ran: Any) -> None:
    one, two = (newest(place / f"pairs{size}" / CHECKPOINTS) for size in (1, 2))
    assert one is not None
    assert two is not None
    assert one.tensors.keys() == two.tensors.keys()
    assert any(name.endswith(".momentum") for name in one.tensors)
    for name, tensor in one.tensors.items():
        if not name.startswith("random."):
            assert torch.equal(tensor, two.tensors[name]), name


def test_saved_by_two_it_goes_on_in_one_and_in_four(place: Path, ran: Any) -> None:
    for name in ("half", "more", "rest"):
        assert [each["code"] for each in ran[name]] == [0] * len(ran[name]), ran[name]
    assert "going on from step 3" in ran["rest"][0]["said"]
    assert weights(place / "moved") == weights(place / "pairs1")


def test_cut_into_shards_it_is_the_same_model(place: Path, ran: Any) -> None:
    for name in ("cut half", "cut more", "cut rest", "cut text"):
        assert [each["code"] for each in ran[name]] == [0] * len(ran[name]), ran[name]
        assert [each["said"] for each in ran[name][1:]] == [""] * (len(ran[name]) - 1)
    assert "a shard in each of 3 processes" in ran["cut rest"][0]["said"]
    assert "going on from step 3" in ran["cut rest"][0]["said"]
    assert "Warning" not in ran["cut more"][0]["said"]
    assert weights(place / "cut") == weights(place / "pairs1")
    assert of_run(place / "cut text") == of_run(place / "text1")


def test_processes_that_differ_are_refused_in_one_line_by_the_first(ran: Any) -> None:
    said = {
        "too many": "train.accumulate (1) must be at least the number of processes (2)",
        "other rate": "has train.lr 0.02 where process 0 has 0.01; every process must be started alike",
        "missing": "process 1: ",
        "other files": " has training data ",
        "other processor": " has processor ",
    }
    for name, words in said.items():
        first, second = ran[name]
        assert (first["code"], second["code"]) == (2, 2)
        assert words in first["said"]
        assert len(first["said"].splitlines()) == 1
        assert second["said"] == ""


def test_another_version_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "regard").mkdir()
    for path in Path(regard.__file__).parent.iterdir():
        if path.name != "__init__.py":
            (tmp_path / "regard" / path.name).symlink_to(path)
    text = Path(regard.__file__).read_text(encoding="utf-8").replace(regard.__version__, "0.0.7")
    (tmp_path / "regard" / "__init__.py").write_text(text, encoding="utf-8")
    port, argv = free_port(), [sys.executable, "-m", "regard", *pairs(place, "bad")]
    ours, theirs = (
        subprocess.Popen(
            argv,
            cwd=tmp_path if rank else ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables(rank, 2, port)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    )
    said = f"has Regard 0.0.7 where process 0 has {regard.__version__}; every process must be started alike"
    assert said in ours.communicate(timeout=300)[1]
    assert theirs.communicate(timeout=300)[1] == ""
    assert (ours.returncode, theirs.returncode) == (2, 2)


def test_torchrun_starts_it_again_when_a_process_is_killed(place: Path, ran: Any, tmp_path: Path) -> None:
    words = ["--nproc_per_node", "2", "--standalone", "--max-restarts", "1"]
    argv = [sys.executable, "-m", "torch.distributed.run", *words, "-m", "regard"]
    argv += pairs(place, "killed", train__max_steps=LONG, train__save_every=0.0)
    with (tmp_path / "log").open("w") as log:
        launcher = subprocess.Popen(argv, env=environment(), stdout=log, stderr=subprocess.STDOUT)
        while launcher.poll() is None and not saved_steps(place / "killed" / CHECKPOINTS):
            time.sleep(0.01)
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        os.kill(int(children[1]), signal.SIGKILL)
        code = launcher.wait(timeout=300)
    said = (tmp_path / "log").read_text()
    assert code == 0, said
    assert "going on from step" in said
    assert weights(place / "killed") == weights(place / "long1")


PARTED = """
import os, sys
from regard.training.world import joined
try:
    with joined() as world:
        import torch._dynamo
        world.numbers(1)
        if "fails" in sys.argv:
            raise ValueError
        if "shards" in sys.argv:
            from torch.distributed.fsdp import fully_shard
            from torch.distributed.device_mesh import init_device_mesh
            layer = fully_shard(torch.nn.Linear(4, 4), mesh=init_device_mesh("cpu", (2,)))
            layer(torch.ones(2, 4)).sum().backward()
            del layer
except ValueError:
    pass
print([open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")])
"""


@pytest.mark.parametrize("how", ["well", "fails", "shards"])
def test_no_thread_outlives_the_meeting(how: str) -> None:
    port = free_port()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PARTED, how],
            env=environment() | variables(rank, 2, port),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for child in children:
        said, _ = child.communicate(timeout=300)
        assert child.returncode == 0
        assert "gloo" not in said
        assert said.startswith("[")


def test_alone_it_is_nothing() -> None:
    with joined() as world:
        assert world is ALONE is here()
        assert list(world.share(5)) == [0, 1, 2, 3, 4]
        assert (world.numbers(3, 4), world.gather({}), world.tell("a")) == ([[3, 4]], [{}], "a")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("WORLD_SIZE", "two", "WORLD_SIZE=two in the environment is no number"),
        ("RANK", "-1", "RANK=-1 in the environment is no number"),
        ("RANK", "2", r"RANK \(2\) must be below WORLD_SIZE \(2\)"),
        ("MASTER_PORT", "http", "MASTER_PORT=http in the environment is no number"),
    ],
)
def test_an_environment_that_torchrun_never_made(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    for told, sound in variables(0, 2, 29_517).items():
        monkeypatch.setenv(told, sound)
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=words), joined():
        pass
    assert here() is ALONE


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for told, sound in variables(0, 2, port).items():
            monkeypatch.setenv(told, sound)
        with (
            pytest.raises(StorageError, match=f"process 0 cannot meet the others at 127.0.0.1:{port}"),
            joined(),
        ):
            pass
    assert here() is ALONE
