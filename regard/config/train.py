"""How a model is trained, whatever it learns: bounds, optimiser, schedule, what is saved when."""

from dataclasses import dataclass

from regard.config.rules import between, one_of, rule


@dataclass(frozen=True)
class TrainConfig:
    """How the model is trained. A bound that is 0 does not bind; the first one reached ends it."""

    seed: int = 1
    minutes: float = 0.0  # time budget, everything included; the schedule ends with it
    max_steps: int = 0
    max_epochs: int = 0
    optimizer: str = "muon"
    lr: float = 8e-3  # the peak
    warmup: int = 0  # steps; 0: a twentieth of the run
    schedule: str = "linear"  # after the warm-up: to zero at the end of the run, or never
    batch_tokens: int = 3072  # padded tokens of the longer side in one batch
    accumulate: int = 1  # batches in one step
    sums: str = "fp32"  # how gradients travel between processes; bf16: fewer bytes, no longer the same bits
    shard: bool = False  # each of several processes holds a part of every weight, and of all that moves it
    outer_every: int = 0  # steps that each process goes alone before they meet (DiLoCo); 0: they never part
    outer_momentum: float = 0.0  # of a meeting's own step (the paper's: 0.9); 0: they take their mean
    clip: float = 1.0  # largest gradient norm; 0: no clipping
    weight_decay: float = 0.0
    label_smoothing: float = 0.1
    glance: float = 0.5  # model.kind=ctc: of what it has wrong, the share that is shown (glancing)
    precision: str = "auto"  # auto: the faster of the two, measured before the first step
    threads: int = 0  # 0: as many as are fastest, measured before the first step
    recompute: str = "auto"  # encoder layers in the backward pass, instead of holding what they made
    average: str = "ema"
    average_span: float = 0.05  # share of the run that the average looks back over
    valid_every: int = 0  # steps; 0: chosen, about twenty times in a run
    patience: int = 0  # validations without a better loss before stopping; 0: never
    log_every: int = 20  # steps between the lines of metrics.jsonl
    save_every: float = 120.0  # seconds between checkpoints
    keep: int = 2  # checkpoints kept
    tensorboard: bool = False

    def __post_init__(self) -> None:
        one_of("train.optimizer", self.optimizer, ("adam", "muon"))
        one_of("train.schedule", self.schedule, ("linear", "cosine", "inverse-sqrt", "constant"))
        one_of("train.precision", self.precision, ("auto", "fp32", "bf16"))
        one_of("train.sums", self.sums, ("fp32", "bf16"))
        one_of("train.recompute", self.recompute, ("auto", "always", "never"))
        one_of("train.average", self.average, ("ema", "last", "none"))
        rule(
            not (self.shard and self.outer_every),
            f"train.outer_every ({self.outer_every}) must be 0 with train.shard=true",
        )
        rule(
            not self.shard or self.sums == "fp32",
            f"train.sums ({self.sums}) must be fp32 with train.shard=true",
        )
        between("train.threads", self.threads, 0, 1024)
        between("train.lr", self.lr, 0, 10)
        between("train.label_smoothing", self.label_smoothing, 0, 0.95)
        between("train.glance", self.glance, 0, 1)
        between("train.outer_momentum", self.outer_momentum, 0, 0.99)
        between("train.average_span", self.average_span, 0, 1)
        between("train.batch_tokens", self.batch_tokens, 1, 10_000_000)
        for name in ("accumulate", "log_every", "keep"):
            between(f"train.{name}", getattr(self, name), 1, 1_000_000)
        for name in ("minutes", "max_steps", "max_epochs", "warmup", "clip", "weight_decay"):
            between(f"train.{name}", getattr(self, name), 0, 1e12)
        for name in ("seed", "valid_every", "patience", "save_every", "outer_every"):
            between(f"train.{name}", getattr(self, name), 0, 1e12)
