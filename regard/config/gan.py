"""A generator and its discriminator: what they draw, where they attend, how they learn."""

from dataclasses import dataclass

from regard.config.rules import between, one_of

AUGMENT = ("auto", "none", "shift", "all")


@dataclass(frozen=True)
class GanConfig:
    """What is drawn, and how it is learned; model.d_model is the width of the smallest maps."""

    side: int = 0  # pixels of a picture's side; 0: taken from the pictures
    channels: int = 0  # 1 grey, 3 colour; 0: taken from the pictures
    classes: int = 0  # that can be asked for; taken from the labels, 0 where there are none
    noise: int = 64  # numbers that a drawing begins with
    attend: int = 16  # the largest side of a map that attends; 0: no attention
    pace: float = 2.0  # the discriminator's rate beside the generator's
    augment: str = "auto"  # what both see of pictures: as they are, shifted and cut, colours too

    def __post_init__(self) -> None:
        one_of("gan.augment", self.augment, AUGMENT)
        between("gan.side", self.side, 0, 256)
        between("gan.channels", self.channels, 0, 3)
        between("gan.classes", self.classes, 0, 10_000)
        between("gan.noise", self.noise, 1, 4096)
        between("gan.attend", self.attend, 0, 256)
        between("gan.pace", self.pace, 0.01, 100)
