"""What a model of pictures sees, and how its pictures are varied while it learns; brought by `task=image`."""

from dataclasses import dataclass

from regard.config.rules import between, one_of, rule

FITS = ("crop", "pad", "stretch")
STEMS = ("convolution", "patches")
POOLINGS = ("attention", "mean", "first")
STARTS = ("random", "convolution")
FLIPS = ("auto", "always", "never")


@dataclass(frozen=True)
class ImageConfig:
    """Sizes that are 0 are taken from the pictures."""

    height: int = 0
    width: int = 0
    channels: int = 0  # 1: grey, 3: colour
    fit: str = "crop"  # what is done with pictures of other proportions
    patch: int = 0  # pixels of a patch's side; 0: so that there are about 8 patches a side
    stem: str = "convolution"  # how a patch becomes a vector
    blocks: int = 1  # of two convolutions, after each halving of the stem
    pooling: str = "attention"  # how the patches become one vector; first: a place of its own in front
    front: int = 1  # places in front, where image.pooling=first
    start: str = "random"  # convolution: each head begins at one place of a K×K kernel (the theorem)
    classes: int = 0  # 0: taken from the examples
    flip: str = "auto"  # whether a mirrored picture is still the same thing; auto: tried out on the pictures
    augment: float = 1.0  # how far pictures are moved, turned, scaled and covered while learning; 0: not

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            between(f"image.{name}", getattr(self, name), 0, 4096)
        rule(self.channels in (0, 1, 3), f"image.channels ({self.channels}) must be between 0 and 3, not 2")
        between("image.patch", self.patch, 0, 1024)
        between("image.front", self.front, 1, 16)
        between("image.blocks", self.blocks, 0, 16)
        between("image.classes", self.classes, 0, 100_000)
        between("image.augment", self.augment, 0, 4)
        one_of("image.fit", self.fit, FITS)
        one_of("image.stem", self.stem, STEMS)
        one_of("image.pooling", self.pooling, POOLINGS)
        one_of("image.start", self.start, STARTS)
        one_of("image.flip", self.flip, FLIPS)
