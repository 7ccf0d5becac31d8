"""A toy to train: three dozen short pairs and a model of a few thousand weights."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import Config, merge
from regard.data.corpus import Corpus
from regard.data.store import Store, open_store
from regard.models import build
from regard.tasks.translation.feed import PairFeed
from regard.tasks.translation.prepare import objective_for
from regard.tasks.translation.validation import Validation
from regard.text.tokenizer import Tokenizer
from regard.training import spread
from regard.training.checkpoint import newest
from regard.training.loop import train_loop
from regard.training.metrics import Metrics
from regard.training.state import State
from regard.training.trainer import Trainer, unpack

WORDS = ("one", "two", "three", "four", "five", "six", "seven")
TINY = {
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_ff": 17,
    "model.dropout": 0.3,
    "train.batch_tokens": 29,
    "train.lr": 0.01,
    "train.save_every": 0.0,
    "train.log_every": 3,
    "train.valid_every": 5,
    "train.precision": "fp32",
    "train.threads": 1,
}


def write_pairs(folder: Path, count: int = 37) -> tuple[Path, Path]:
    """Sentences and the same backwards, as files; the same for the same count."""
    random = np.random.default_rng(5)
    lines = [" ".join(random.choice(WORDS, size=1 + i % 5)) for i in range(count)]
    src, tgt = folder / "toy.src", folder / "toy.tgt"
    src.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tgt.write_text("".join(" ".join(reversed(line.split())) + "\n" for line in lines), encoding="utf-8")
    return src, tgt


@dataclass(frozen=True)
class Toy:
    """Builds trainers over one small store."""

    store: Store
    tokenizer: Tokenizer

    def config(self, **overrides: object) -> Config:
        asked = {key.replace("__", "."): value for key, value in overrides.items()}
        return merge(Config(), TINY | {"model.vocab_size": self.tokenizer.vocab_size} | asked)

    def trainer(self, folder: Path, **overrides: object) -> Trainer:
        config = self.config(**overrides)
        torch.manual_seed(config.train.seed)
        rows = np.arange(len(self.store))
        folder.mkdir(parents=True, exist_ok=True)
        return Trainer(
            build(config),
            config.train,
            PairFeed(self.store, rows[7:], config.train),
            objective_for(config, self.tokenizer.specials),
            Validation(
                self.store,
                rows[:7],
                self.tokenizer,
                objective=objective_for(config, self.tokenizer.specials, measuring=True),
            ),
            folder,
            torch.device("cpu"),
        )

    def run(self, folder: Path, **overrides: object) -> tuple[Trainer, State]:
        """Train from the newest checkpoint in `folder` to the end, as a new process would."""
        trainer = self.trainer(folder, **overrides)
        checkpoint = spread.newest(trainer) if trainer.config.shard else newest(folder)
        state = unpack(trainer, checkpoint) if checkpoint else State()
        with Metrics(folder, step=state.step) as metrics:
            train_loop(trainer, state, metrics)
        return trainer, state


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    corpus = Corpus.of(write_pairs(folder))
    tokenizer = Tokenizer.train(corpus.lines(), 0)
    return Toy(open_store(corpus, tokenizer, Config().data, folder / "store"), tokenizer)


@pytest.fixture
def toy_files(tmp_path: Path) -> tuple[Path, Path]:
    return write_pairs(tmp_path)


@pytest.fixture(scope="session")
def toy_settings() -> dict[str, object]:
    return dict(TINY)
