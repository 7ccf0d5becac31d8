"""What a detector sees, how many objects it can find, what helps it to learn; brought by `task=detection`."""

from dataclasses import dataclass

from regard.config.image import FLIPS
from regard.config.rules import between, one_of, rule

BACKBONES = ("own", "efficientnet-lite0", "resnet")


@dataclass(frozen=True)
class DetectionConfig:
    """Sizes that are 0 are taken from the pictures."""

    height: int = 0
    width: int = 0
    channels: int = 0  # 1: grey, 3: colour
    stride: int = 0  # pixels of a patch's side; 0: 8 where the picture is small, else 16
    backbone: str = "own"  # what makes vectors of pixels
    blocks: int = 1  # of two convolutions, after each halving of our own
    resnet: str = "bottleneck 64 256x3 512x4 1024x6 2048x3"  # the blocks of one, and how many of which width
    queries: int = 0  # objects that can be found; 0: by what the pictures hold
    classes: int = 0  # 0: taken from the examples
    anchors: bool = True  # a query is a box from the beginning; no: it is a vector (plain DETR)
    centred: bool = True  # cross-attention looks around each query's box
    denoising: int = 4  # groups of boxes that are spoiled and put right again, to learn from; 0: none
    flip: str = "auto"  # whether a mirrored thing is still the same; auto: tried out on what is in the boxes
    augment: float = 1.0  # how far pictures are moved and scaled while learning; 0: not

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            between(f"detection.{name}", getattr(self, name), 0, 4096)
        rule(
            self.channels in (0, 1, 3), f"detection.channels ({self.channels}) must be between 0 and 3, not 2"
        )
        rule(self.stride in (0, 4, 8, 16, 32), f"detection.stride ({self.stride}) must be 0, 4, 8, 16 or 32")
        between("detection.blocks", self.blocks, 0, 16)
        between("detection.queries", self.queries, 0, 10_000)
        between("detection.classes", self.classes, 0, 100_000)
        between("detection.denoising", self.denoising, 0, 100)
        rule(
            self.anchors or not (self.centred or self.denoising),
            "detection.anchors=false has no boxes to look around or to spoil: it goes with "
            "detection.centred=false and detection.denoising=0",
        )
        between("detection.augment", self.augment, 0, 4)
        one_of("detection.backbone", self.backbone, BACKBONES)
        one_of("detection.flip", self.flip, FLIPS)
