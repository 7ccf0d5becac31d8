"""What sending less costs: sums in bf16 (`train.sums`) and meeting seldom (`train.outer_every`, DiLoCo).

    python benchmarks/rounds.py ../shared/data/multi30k

Two processes of one thread learn Multi30k (English to German) for the same steps: in step, which is what one
process gives; with gradients that travel in 16 bits; in rounds of some lengths, whose meetings take the mean
or DiLoCo's momentum; one process alone on half of each step's batches, which is what each would be worth
without the other; and in step with another seed, so that one sees what chance does. The scores are of
held-out pairs, with the averaged weights at the end.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from processes import forked
from report import keep, so_far, write_report

SETTINGS = {
    "model.d_model": 128,
    "model.n_heads": 4,
    "model.d_ff": 512,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "text.vocab_size": 4000,
    "train.batch_tokens": 1024,
    "train.threads": 1,
    "train.save_every": 1e6,
    "train.valid_every": 10**6,  # at the end alone
}
BATCHES = 4  # in a step, of both processes


def ways(seed: int, every: list[int]) -> dict[str, tuple[int, dict[str, Any]]]:
    """How many processes, and their settings, by name."""
    step = {"train.accumulate": BATCHES, "train.seed": seed}
    found: dict[str, tuple[int, dict[str, Any]]] = {
        "two in step": (2, step),
        "two in step, sums in bf16": (2, step | {"train.sums": "bf16"}),
    }
    for steps in every:
        alone = step | {"train.outer_every": steps}
        found[f"two, meeting after {steps} steps"] = (2, alone)
        found[f"two, meeting after {steps} steps, momentum 0.9"] = (2, alone | {"train.outer_momentum": 0.9})
    found["one alone, half the batches"] = (1, step | {"train.accumulate": BATCHES // 2})
    found["two in step, another seed"] = (2, step | {"train.seed": seed + 1})
    return found


def learned(files: list[Path], out: Path, size: int, asked: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The last line of what so many processes have measured, and the seconds they took."""
    began = time.monotonic()
    codes = forked(size, files, out, "translation", SETTINGS | asked)
    assert not any(codes), codes
    last = (out / "metrics.jsonl").read_text().splitlines()[-1]
    return json.loads(last), time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--every", type=int, nargs="*", default=[10, 50])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", default="fp32", help="of each process's own products")
    parser.add_argument("--kept", type=Path, help="what is kept here is not trained again, and new is added")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Python 3.12 on fork and threads
    import torch

    torch.set_num_threads(1)
    files = [options.data / f"train.{language}.gz" for language in ("en", "de")]
    fixed = {"train.max_steps": options.steps, "train.precision": options.precision}
    rows, known = [], {each["way"]: each["row"] for each in so_far(options.kept)}
    with tempfile.TemporaryDirectory() as place:
        for number, (name, (size, asked)) in enumerate(ways(options.seed, options.every).items()):
            if name not in known:
                found, seconds = learned(files, Path(place) / str(number), size, fixed | asked)
                scores = [f"{found['valid_loss']:.3f}", f"{found['valid_bleu']:.1f}"]
                known[name] = [*scores, f"{found['epoch']:.1f}", f"{seconds:.0f}"]
                keep(options.kept, {"way": name, "row": known[name]})
            rows.append([name, *known[name]])
            print(rows[-1], flush=True)
    note = f"{options.steps} steps each, with the same schedule; products in {options.precision}."
    header = ["how", "validation loss", "BLEU", "epochs", "seconds"]
    write_report("rounds", "What meeting seldom costs", header, rows, note)


if __name__ == "__main__":
    main()
