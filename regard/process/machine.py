"""What this machine really can do, found out by children that may die (`survival.py`), not by its flags.

Some machines advertise instructions that their hypervisor then kills. torch would run into them, so before
it is loaded (`loading.py`) it gets the first of some `CEILINGS` under which its products live and are right.
The answer is kept in the user's cache folder (`memo.py`). REGARD_MACHINE overrides it: words of OVERRIDES
with commas between them. A variable that the user set is never changed.
"""

import functools
import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.errors import UsageError
from regard.process import memo, survival
from regard.process.cores import count_cores
from regard.process.cpu import SIMULATE, advertises_tiles, processor
from regard.process.probe import expected

OVERRIDE = "REGARD_MACHINE"
OVERRIDES = ("tiles", "no-tiles", "bf16", "no-bf16")
OURS = "REGARD_SET"  # what Regard set itself, as NAME=VALUE;NAME=VALUE, for the processes that it starts
THREADS = "OMP_NUM_THREADS"
ISA, OLD_ISA, MKL = "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"
ATEN = "ATEN_CPU_CAPABILITY"
# From all that is advertised downwards: no tiles, no bf16 instructions, AVX2. They are the names of oneDNN,
# of MKL (E3 is the last without tiles, E1 the last without bf16) and of torch's own loops.
CEILINGS: tuple[dict[str, str], ...] = (
    {},
    {ISA: "AVX512_CORE_BF16", MKL: "AVX512_E3"},
    {ISA: "AVX512_CORE_VNNI", MKL: "AVX512_E1"},
    {ISA: "AVX2", MKL: "AVX2", ATEN: "avx2"},
)
TILELESS = 1  # the ceiling under which there are no tiles
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Facts:
    """What was found out about this machine."""

    tiles: bool  # torch's products by AMX tiles run and are right
    bf16: bool  # torch's bf16 products run and are right
    bf16_gain: float  # how many times faster than fp32 they were, in one thread; 0 where they do not run
    cores: int  # threads that can run at the same time
    ceiling: Mapping[str, str]  # what torch is held to, as environment variables


def cores() -> int:
    """Threads of this process that can run at the same time, by affinity and quota."""
    return count_cores().usable


@functools.cache
def facts() -> Facts:
    """What this machine can do; found out by children once, then remembered."""
    words, torch = overrides(), _torch_answer()
    lifted = torch["ceiling"] < TILELESS and not any(set_by_user(name) for name in (ISA, OLD_ISA))
    bf16 = "bf16" in words or (torch["bf16"] and "no-bf16" not in words)
    return Facts(
        tiles=advertises_tiles() and lifted,
        bf16=bf16,
        bf16_gain=torch["gain"] if bf16 else 0.0,
        cores=cores(),
        ceiling=CEILINGS[torch["ceiling"]],
    )


def find_out_again() -> Facts:
    """The same without what is remembered."""
    facts.cache_clear()
    _torch_answer(again=True)
    return facts()


def prepare(*, patient: bool = True) -> None:
    """Keep torch off what dies here; to be called before torch computes. Not `patient`: ask no child now.

    Where nothing is known yet and nobody is asked, advertised tiles are left alone.
    """
    _hold(_torch_answer() if patient else _torch_answer(ask=False))


def known() -> bool:
    """Whether `prepare` needs no child."""
    allowed = _allowed()
    return _recall(_torch_question(allowed), allowed) is not None


def prepare_after(load: Callable[[], None]) -> None:
    """The same, asking copies of this process as soon as `load` has loaded torch: they load nothing.

    That is safe as long as loading computes nothing: oneDNN, MKL and torch read what they are held to when
    they first compute. libgomp reads its threads as it is loaded.
    """
    _hold({"ceiling": 0})
    load()
    _hold(_torch_answer(fork=True))


def _hold(answer: Mapping[str, Any]) -> None:
    """Set what torch is held to."""
    wanted = dict(CEILINGS[answer["ceiling"]])
    bounds = count_cores()
    if bounds.usable < bounds.allowed:  # torch sees the affinity, but no quota
        wanted[THREADS] = str(bounds.usable)
    _set(wanted)


def set_by_user(name: str) -> bool:
    """Whether an environment variable is there and was not set by Regard."""
    return name in os.environ and f"{name}={os.environ[name]}" not in os.environ.get(OURS, "").split(";")


def _set(wanted: Mapping[str, str]) -> None:
    """Set variables for this process and its children; those of an earlier choice of ours are cleared."""
    free = [name for name in (ISA, MKL, ATEN, THREADS) if not set_by_user(name)]
    if set_by_user(OLD_ISA) and ISA in free:  # oneDNN reads the new name first
        free.remove(ISA)
    for name in free:
        os.environ.pop(name, None)
    ours = {name: wanted[name] for name in free if name in wanted}
    os.environ.pop(OURS, None)
    if ours:
        os.environ |= ours
        os.environ[OURS] = ";".join(f"{name}={value}" for name, value in ours.items())


def overrides() -> frozenset[str]:
    """The words of REGARD_MACHINE."""
    words = frozenset(word.strip() for word in os.environ.get(OVERRIDE, "").split(",")) - {""}
    for word in sorted(words):
        if word not in OVERRIDES:
            raise UsageError(f"{OVERRIDE}: {word} is none of {', '.join(OVERRIDES)}")
    return words


# torch ---------------------------------------------------------------------------------------------


def _torch_answer(*, ask: bool = True, again: bool = False, fork: bool = False) -> dict[str, Any]:
    """`ceiling` (a number), `bf16` (right under it?) and `gain`. `fork`: torch is loaded and new."""
    allowed = _allowed()
    feared = TILELESS if advertises_tiles() else 0
    careful: dict[str, Any] = {
        "ceiling": feared if feared in allowed else allowed[0],
        "bf16": False,
        "gain": 0.0,
    }
    question = _torch_question(allowed)
    if not again and (kept := _recall(question, allowed)) is not None:
        return kept
    if not ask:
        return careful
    try:
        found = _climb_down(allowed, fork=fork) or careful
    except OSError:  # no process may be started here
        return careful
    memo.keep(question, found)
    return found


def _allowed() -> list[int]:
    """The ceilings that REGARD_MACHINE leaves to choose from."""
    words = overrides()
    lowest = 1 if "tiles" in words else len(CEILINGS)
    return list(range(TILELESS if "no-tiles" in words else 0, lowest)) or [TILELESS]


def _recall(question: Mapping[str, Any], allowed: list[int]) -> dict[str, Any] | None:
    """What is remembered, if it has the right kinds."""
    answer = memo.recall(question) or {}
    sound = (
        answer.get("ceiling") in allowed
        and isinstance(answer.get("bf16"), bool)
        and isinstance(answer.get("gain"), float)
    )
    return answer if sound else None


def _torch_question(allowed: list[int]) -> dict[str, Any]:
    """All that the answer depends on."""
    spec = find_spec("torch")
    version = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    chosen = {name: os.environ[name] for name in (ISA, OLD_ISA, MKL, ATEN) if set_by_user(name)}
    return {
        "about": "torch",
        "torch": version.read_text(encoding="utf-8") if version and version.exists() else "",
        "probe": _digest(survival.PROBE),
        "allowed": allowed,
        "chosen": chosen,
        **_machine(),
    }


def _machine() -> dict[str, Any]:
    """The part of a question that names the machine; another boot may have another hypervisor below it."""
    system = platform.uname()
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "processor": processor().block,
        "kernel": f"{system.system} {system.release} {system.version}",
        "boot": boot.read_text(encoding="utf-8").strip() if boot.exists() else "",
        "simulated": os.environ.get(SIMULATE, ""),
    }


def _climb_down(allowed: list[int], *, fork: bool) -> dict[str, Any] | None:
    """The first ceiling under which everything is right; else one with right fp32 (and no tiles); else None.

    Tiles that are advertised are likely to die and loading torch takes a second, so the first two ceilings
    are tried side by side there. Copies load nothing, and only the thread that loads torch may make them.
    """
    found: dict[int, dict[str, Any]] = {}
    together = 2 if advertises_tiles() and not fork else 1
    for first in range(0, len(allowed), together):
        some = allowed[first : first + together]
        if fork:
            found |= {number: _under(number, fork=True) for number in some}
        else:
            with ThreadPoolExecutor(together) as pool:
                found |= dict(zip(some, pool.map(_under, some), strict=True))
        whole = next((number for number in some if found[number]["bf16"]), None)
        if whole is not None:
            return found[whole]
    feared = TILELESS if advertises_tiles() else 0
    return next((one for number, one in found.items() if one["fp32"] and number >= feared), None)


def _under(number: int, *, fork: bool = False) -> dict[str, Any]:
    """What torch can do under one ceiling."""
    environment = {name: value for name, value in os.environ.items() if set_by_user(name) or name == THREADS}
    if set_by_user(OLD_ISA):
        environment[ISA] = environment.get(ISA, os.environ[OLD_ISA])
    answers = survival.ask("torch", PRECISIONS, {**CEILINGS[number], **environment}, fork=fork)
    seconds = {name: _believed(answers.get(name)) for name in PRECISIONS}
    fp32, bf16 = seconds["fp32"], seconds["bf16"]
    return {
        "ceiling": number,
        "fp32": fp32 is not None,
        "bf16": fp32 is not None and bf16 is not None,
        "gain": fp32 / bf16 if fp32 and bf16 else 0.0,
    }


def _believed(words: list[str] | None) -> float | None:
    """The seconds of an answer whose numbers are right; None for any other."""
    if not words or words[1:] != [str(number) for number in expected()]:
        return None
    try:
        return float(words[0])
    except ValueError:
        return None


# The engine ----------------------------------------------------------------------------------------


def paths_that_run(library: Path, names: Sequence[str], *, again: bool = False) -> list[str]:
    """Those of the engine's paths that come back from the library's own trial, in the order given."""

    def tried() -> list[str] | None:
        try:
            answers = survival.ask(str(library), names, os.environ)
        except OSError:
            return None
        return [name for name in names if answers.get(name) == ["0.0", "0"]]

    question = {"about": "engine", "probe": _digest(survival.PROBE)}
    return _remembered(question, library, names, tried, again=again)


def paths_by_speed(
    library: Path, names: Sequence[str], shape: Sequence[int], rate: Callable[[str], float]
) -> list[str]:
    """The engine's paths, the fastest at products of that shape first; `rate` is asked once a machine."""

    def timed() -> list[str]:
        rates = {name: rate(name) for name in names}
        return sorted(names, key=lambda name: -rates[name])

    return _remembered({"about": "path", "shape": list(shape)}, library, names, timed)


def _remembered(
    question: Mapping[str, Any],
    library: Path,
    names: Sequence[str],
    find: Callable[[], list[str] | None],
    *,
    again: bool = False,
) -> list[str]:
    """Some of these names, as they were found once; none, and nothing kept, where nothing can be found."""
    question = {**question, "library": _digest(library), "names": list(names), **_machine()}
    known = None if again else memo.recall(question)
    kept = known.get("runs") if known else None
    if isinstance(kept, list) and set(kept) <= set(names):
        return kept
    found = find()
    if found is not None:
        memo.keep(question, {"runs": found})
    return found or []


def _digest(path: Path) -> str:
    with path.open("rb") as file:  # never whole in memory: a library with what debuggers need is large
        return hashlib.file_digest(file, "sha256").hexdigest()
