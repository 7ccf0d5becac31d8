"""`make fuzz`: the readers of foreign bytes, each in a process of its own, for some time.

    python -m fuzz [READER ...] [--seconds 600] [--rounds N] [--seed S] [--engine atheris | plain] [--jobs 2]
    python -m fuzz READER --input FILE

With atheris inputs follow the code that they reach; without it, or with `plain`, they are the corpus and what
the mutator makes of it, the same ones for the same seed. Findings lie in build/fuzz; each says how to see it
again.
"""

import argparse
import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random

from fuzz.corpus import CORPUS
from fuzz.mutate import LONGEST, mutated
from fuzz.parsers import PARSERS
from fuzz.trial import patience, place_of, spare_the_machine, try_on

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 20.0  # seconds of the processor for one input


class Reader:
    """One reader under trial, and what was found."""

    def __init__(self, name: str, home: Path, seconds: float) -> None:
        self.name, self.home, self.patience = name, home, seconds
        self.parser, self.seeds = PARSERS[name], CORPUS[name]
        self.words = [word.encode() for word in self.seeds.words.split()]
        self.found: dict[str, Path] = {}
        self.tried = 0
        home.mkdir(parents=True, exist_ok=True)
        self.current = home / f"{name}.current"

    def corpus(self) -> list[bytes]:
        """The inputs that it begins with; the first, an honest one, has been taken once.

        What is imported and made for all inputs must not count as the cost of one.
        """
        seeds = self.seeds.make()
        self.current.write_bytes(seeds[0])
        with contextlib.suppress(Exception), patience(self.patience):
            self.parser(seeds[0])
        return seeds

    def attempt(self, data: bytes) -> None:
        """Try one input. It lies on the disk while it is tried: it may be the last one."""
        self.current.write_bytes(data)
        self.tried += 1
        try:
            with patience(self.patience):
                try_on(self.parser, data)
        except Exception as error:
            self._note(error, data)

    def _note(self, error: Exception, data: bytes) -> None:
        where = place_of(error)
        if where in self.found:
            return
        path = self.home / f"{self.name}-{sha256(where.encode()).hexdigest()[:8]}.found"
        path.write_bytes(data)
        self.found[where] = path
        lines = traceback.format_exception(error)[-12:]
        shown = "".join(line if len(line) < 2000 else f"{line[:300]} ... {line[-1500:]}" for line in lines)
        print(f"{shown}FOUND {where}\n  again: python -m fuzz {self.name} --input {path}", flush=True)


def plain(reader: Reader, seed: int, rounds: int, seconds: float) -> None:
    """The corpus, then so many inputs made from it, or as many as there is time for."""
    seeds = reader.corpus()
    for data in seeds:
        reader.attempt(data)
    small = [data for data in seeds if len(data) <= LONGEST // 4]
    rng, end = Random(seed), time.monotonic() + seconds
    while reader.tried < len(seeds) + rounds if rounds else time.monotonic() < end:
        reader.attempt(mutated(rng.choice(small), rng, reader.seeds.form, reader.words, small))


def guided(reader: Reader, seed: int, seconds: float) -> None:
    """The same led by coverage. atheris does not come back: it ends the process."""
    import atheris

    grown = reader.home / f"{reader.name}.corpus"
    grown.mkdir(exist_ok=True)
    small = []
    with atheris.instrument_imports(include=["regard", "json", "html", "tomllib", "_markupbase"]):
        for data in reader.corpus():
            reader.attempt(data)
            if len(data) <= LONGEST // 4:
                small.append(data)
                (grown / sha256(data).hexdigest()[:16]).write_bytes(data)

    def change(data: bytes, longest: int, number: int) -> bytes:
        rng = Random(number)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, longest))
        return mutated(data, rng, reader.seeds.form, reader.words, small)[:longest]

    flags = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-seed={seed}",
        f"-max_len={LONGEST}",
        "-timeout=3600",
    ]
    flags += ["-rss_limit_mb=0", "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={reader.home}/"]
    words = [sys.argv[0], str(grown), *flags]
    atheris.Setup(words, reader.attempt, custom_mutator=change)
    atheris.Fuzz()


# All of them ---------------------------------------------------------------------------------------


def every(names: list[str], given: argparse.Namespace) -> int:
    """A process for each reader; whether nothing was found."""
    share = given.seconds * given.jobs / len(names)
    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda name: _child(name, share, given), names))
    return int(any(results))


def _child(name: str, seconds: float, given: argparse.Namespace) -> bool:
    """Run one; what it left behind if it was felled becomes a finding."""
    for old in given.home.glob(f"{name}-*.found"):
        old.unlink()
    words = [sys.executable, "-m", "fuzz", name, "--seconds", seconds, "--rounds", given.rounds, "--alone"]
    words += [
        "--seed",
        given.seed,
        "--engine",
        given.engine,
        "--patience",
        given.patience,
        "--home",
        given.home,
    ]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    found = sorted(given.home.glob(f"{name}-*.found"))
    if done.returncode < 0:
        felled = given.home / f"{name}-felled.found"
        (given.home / f"{name}.current").rename(felled)
        found.append(felled)
    good = done.returncode == 0 and not found
    print(f"{name}: {'nothing found' if good else f'{len(found)} found'}", flush=True)
    if not good:
        print(done.stdout[-6000:], done.stderr[-3000:], *found, sep="\n", flush=True)
    return not good


def _arguments() -> argparse.Namespace:
    asked = argparse.ArgumentParser(prog="fuzz")
    asked.add_argument("readers", nargs="*", metavar="READER", help=", ".join(PARSERS))
    asked.add_argument("--seconds", type=float, default=600, help="for all of them together")
    asked.add_argument("--rounds", type=int, default=0, help="inputs for each, instead of seconds")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--engine", choices=("atheris", "plain"), default=_engine())
    asked.add_argument("--jobs", type=int, default=os.cpu_count())
    asked.add_argument("--patience", type=float, default=PATIENCE, help="seconds for an input; 0: any")
    asked.add_argument("--home", type=Path, default=ROOT / "build" / "fuzz", help="where findings are put")
    asked.add_argument("--input", type=Path, help="try this one")
    asked.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return asked.parse_args()


def _engine() -> str:
    return "atheris" if importlib.util.find_spec("atheris") else "plain"


def main() -> int:
    given = _arguments()
    names = given.readers or list(PARSERS)
    if given.input is None and not given.alone:
        return every(names, given)
    logging.disable(logging.CRITICAL)  # what the readers say to people is not for us
    spare_the_machine()
    return int(sum(_alone(name, given) for name in names) > 0)


def _alone(name: str, given: argparse.Namespace) -> bool:
    """One reader in this process; whether something was found."""
    reader = Reader(name, given.home, given.patience)
    if given.input is not None:
        reader.attempt(given.input.read_bytes())
    elif given.engine == "plain":
        plain(reader, given.seed, given.rounds, given.seconds)
    else:
        guided(reader, given.seed, given.seconds)
    print(f"{name}: {reader.tried} inputs, {len(reader.found)} findings", flush=True)
    return bool(reader.found)


if __name__ == "__main__":
    sys.exit(main())
