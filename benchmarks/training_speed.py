"""Training speed against transformers' MarianMTModel: real target tokens per second.

The same shape (3+3 layers, d 256, ff 1024), the same vocabulary, the same length-bucketed batches of
Multi30k, rounds in turn in processes of their own. The peer runs as its users run it: a plain torch
loop, AdamW, label smoothing by torch's cross-entropy; once in fp32 and once under bf16 autocast. Ours
runs what `regard train` runs.

    python benchmarks/training_speed.py ../shared/data/multi30k --rounds 5
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from report import write_report

from regard.config import Config, merge
from regard.data.batch import Batch, collate
from regard.data.corpus import Corpus
from regard.data.sampler import Sampler
from regard.data.store import Store, open_store
from regard.text.tokenizer import Tokenizer

SHAPE = {
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.encoder_layers": 3,
    "model.decoder_layers": 3,
    "model.dropout": 0.1,
}
BATCH_TOKENS = 4096
WARMUP, STEPS = 3, 12
WAYS = ("regard muon", "regard adam", "transformers fp32", "transformers bf16")


def prepare(data: Path, folder: Path) -> tuple[Store, Tokenizer]:
    """The token store of English to German with a joint vocabulary of 8,000; made once, then reused."""
    corpus = Corpus.of([data / "train.en.gz", data / "train.de.gz"])
    vocabulary = folder / "tokenizer.json"
    if not vocabulary.exists():
        lines = (side for pair in corpus.pairs() for side in (pair.src, pair.tgt))
        vocabulary.write_text(Tokenizer.train(lines, 8000).to_json(), encoding="utf-8")
    tokenizer = Tokenizer.from_json(vocabulary.read_text(encoding="utf-8"))
    return open_store(corpus, tokenizer, Config().data, folder / "store"), tokenizer


def batches(store: Store, tokenizer: Tokenizer, seed: int) -> list[Batch]:
    """The first batches of an epoch, the same for every way."""
    sampler = Sampler(store.src_lengths, store.tgt_lengths, batch_tokens=BATCH_TOKENS, seed=seed)
    chosen = sampler.batches(0)
    ids = {"pad_id": tokenizer.pad_id, "begin_id": tokenizer.begin_id, "end_id": tokenizer.end_id}
    return [collate(store, chosen[i], **ids) for i in range(WARMUP + STEPS)]


def ours(vocab_size: int, optimizer: str) -> Callable[[Batch], None]:
    """One step as the training loop takes it; Muon is its default, Adam what the peer uses."""
    from regard.models import build
    from regard.process.allocator import keep_freed_memory
    from regard.process.device import autocast
    from regard.training.loss import sequence_loss
    from regard.training.optimizer import build_optimizers

    keep_freed_memory()
    config = merge(Config(), SHAPE | {"model.vocab_size": vocab_size, "train.optimizer": optimizer})
    model = build(config).train()
    optimizers = build_optimizers(model, config.train)
    parameters = list(model.parameters())

    def step(batch: Batch) -> None:
        with autocast(torch.device("cpu"), config.train.precision):
            loss = sequence_loss(model, batch, label_smoothing=0.1) / batch.targets
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for optimizer in optimizers:
            with autocast(torch.device("cpu"), config.train.precision):
                optimizer.step()
            optimizer.zero_grad()

    return step


def theirs(vocab_size: int, precision: str) -> Callable[[Batch], None]:
    """One step of MarianMTModel in a plain torch loop."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=256,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        dropout=0.1,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=2,
    )
    model = MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)

    def step(batch: Batch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            out = model(
                input_ids=batch.inputs.ids,
                attention_mask=batch.inputs.real.long(),
                decoder_input_ids=batch.tgt_in,
            )
            loss = loss_of(out.logits.flatten(0, 1), batch.tgt_out.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure(way: str, data: Path, folder: Path, seed: int) -> float:
    """Real target tokens per second of one way over STEPS batches."""
    store, tokenizer = prepare(data, folder)
    work = batches(store, tokenizer, seed)
    torch.manual_seed(seed)
    who, kind = way.split()
    step = (ours if who == "regard" else theirs)(tokenizer.vocab_size, kind)
    for batch in work[:WARMUP]:
        step(batch)
    start = time.perf_counter()
    for batch in work[WARMUP:]:
        step(batch)
    return sum(batch.targets for batch in work[WARMUP:]) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.way:
        print(measure(options.way, options.data, options.folder, options.seed))
        return
    rates: dict[str, list[float]] = {way: [] for way in options.ways}
    with tempfile.TemporaryDirectory() as folder:
        prepare(options.data, Path(folder))
        for seed in range(options.rounds):
            for way in options.ways:
                command = [sys.executable, __file__, str(options.data), "--way", way]
                command += ["--folder", folder, "--seed", str(seed)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                rates[way].append(float(done.stdout))
                print(way, round(rates[way][-1]), file=sys.stderr, flush=True)
    medians = {way: statistics.median(found) for way, found in rates.items()}
    own = [way for way in WAYS[:2] if way in medians]
    rows = [
        [way, f"{rate:,.0f}", *(f"{medians[each] / rate:.2f}×" for each in own)]
        for way, rate in medians.items()
    ]
    write_report(
        "training_speed",
        "Training speed, real target tokens per second",
        ["way", "tokens/s (median)", *(f"{each.split()[1].capitalize()} against it" for each in own)],
        rows,
        f"{options.rounds} rounds in turn, a process each; {STEPS} steps of {BATCH_TOKENS}-token batches",
    )


if __name__ == "__main__":
    main()
