"""`regard serve --workers 2`: what the second worker takes in memory, and whether a reload loses a request.

    python benchmarks/workers.py --reloads 10

A model of 22 million weights, hardly trained, answers phrases. Memory is PSS (`/proc/PID/smaps_rollup`: a
page that three processes share counts a third in each), after each worker has answered. Then clients ask all
the time, half of them over one connection, half over a new one for each request, while SIGHUP reloads the
model again and again: every answer must be a 200 with the text that it always was.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

from processes import ROOT, children
from report import write_report

from regard.tasks.train import train
from regard.text.phrasebook import phrases

SETTINGS = {
    "model.d_model": 512,
    "model.d_ff": 2048,
    "model.encoder_layers": 3,
    "model.decoder_layers": 3,
    "text.vocab_size": 1500,
    "train.batch_tokens": 512,
    "train.max_steps": 2,
    "train.valid_every": 10**6,
    "train.precision": "fp32",
}
CLIENTS = 4
PATIENCE = 300.0  # seconds, for a machine that is busy


def prepare(folder: Path) -> Path:
    """The model."""
    pairs = list(islice(phrases("de"), 2000))
    files = [folder / "phrases.en", folder / "phrases.de"]
    for side, path in enumerate(files):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    train(*files, out=folder / "model", overrides=SETTINGS, quiet=True)
    return folder / "model"


def memory(number: int, *names: str) -> float:
    """What Linux tells of a process's memory under these names: MB."""
    lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return sum(found[name] for name in names) / 1024


def family(number: int) -> list[int]:
    """A process and all that it started."""
    return [number, *(each for child in children(number) for each in family(child))]


class Served:
    """A server of two workers."""

    def __init__(self, model: Path, log: Path) -> None:
        self.log = log
        words = ["serve", "-m", f"en-de={model}", "--port", "0", "--workers", "2"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("w") as said:
            argv = [sys.executable, "-m", "regard", *words]
            self.process = subprocess.Popen(argv, stderr=said, env=env)
        self.wait("2 workers", 1)
        self.settle()
        self.port = int(log.read_text().split("127.0.0.1:")[1].split()[0])

    def wait(self, words: str, times: int) -> None:
        """Until it has said so."""
        until = time.monotonic() + PATIENCE
        while self.log.read_text().count(words) < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)

    def settle(self) -> None:
        """Until those that were replaced are gone."""
        until = time.monotonic() + PATIENCE
        while len(children(self.process.pid)) != 1 or len(self.workers()) != 2:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)

    def workers(self) -> list[int]:
        return [each for mould in children(self.process.pid) for each in children(mould)]

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def megabytes(self) -> tuple[float, float]:
        """All of it with one worker, and what the second adds with its helper: what is theirs alone."""
        private = ("Private_Clean", "Private_Dirty")
        added = max(sum(memory(each, *private) for each in family(one)) for one in self.workers())
        return sum(memory(each, "Pss") for each in family(self.process.pid)) - added, added


def ask(connection: http.client.HTTPConnection, text: str) -> tuple[int, str]:
    body = json.dumps({"q": text, "source": "en", "target": "de"})
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    return answer.status, found.get("translatedText", "")


def under_load(served: Served, texts: list[str], reloads: int) -> Counter[str]:
    """What became of the requests that were sent while the model was reloaded so many times."""
    known = {text: ask(served.connect(), text) for text in texts}
    found: Counter[str] = Counter()
    done = threading.Event()

    def client(number: int) -> None:
        connection = served.connect()
        for text in islice(cycle(texts), number, None):
            if done.is_set():
                return
            try:
                answer = ask(connection, text)
                found["answered" if answer == known[text] else f"{answer[0]}, another answer"] += 1
            except (OSError, http.client.HTTPException) as error:
                found[f"lost ({type(error).__name__})"] += 1
                connection.close()
            if number % 2:
                connection.close()
                connection = served.connect()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for number in range(reloads):
        served.process.send_signal(signal.SIGHUP)
        served.wait("reloaded", number + 1)
        served.settle()
    done.set()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reloads", type=int, default=10)
    options = parser.parse_args()
    texts = [pair[0] for pair in islice(phrases("de"), 20)]
    rows = []
    with tempfile.TemporaryDirectory() as place:
        served = Served(prepare(Path(place)), Path(place) / "log")
        try:
            for text in texts * 3:
                assert ask(served.connect(), text)[0] == 200
            first, second = served.megabytes()
            rows.append(["server and first worker, MB", f"{first:.0f}", ""])
            rows.append(["the second worker, MB more", f"{second:.0f}", ""])
            rows.append(["the second, of the first", f"{second / first:.1%}", "at most 30%, aim 15%"])
            found = under_load(served, texts, options.reloads)
            again = served.megabytes()
        finally:
            served.process.terminate()
            served.process.wait(PATIENCE)
        rows.append([f"requests during {options.reloads} reloads", f"{sum(found.values()):,}", ""])
        rows.append(["what became of them", f"{dict(found)}", "all answered"])
        rows.append(["MB after them: first, second", f"{again[0]:.0f}, {again[1]:.0f}", "as before"])
    note = f"{CLIENTS} clients ask without a pause, on the machine of the server. PSS of all its processes."
    write_report("workers", "Two workers on one port", ["what", "measured", "goal"], rows, note)


if __name__ == "__main__":
    main()
