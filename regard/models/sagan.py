"""A generator and a discriminator that attend (SAGAN: Zhang et al. 2019).

    make    noise (B, Z), labels (B,) -> pictures (B, C, S, S) in -1 to 1
    judge   pictures, labels -> (B,): above 0 for real

Both are ladders of maps whose sides double from 4 to 7 pixels on, up to half the picture's: the generator
climbs, the discriminator descends, and on one rung each attends (`layers/gated.py`). From the last rung to
the picture it is one product: maps as large as the picture would take half of the time. What is to be drawn,
noise and class, sets gain and bias of every norm of the generator; a norm takes the numbers of one picture
alone, so a picture does not depend on what else is drawn. The discriminator asks whether a picture is of its
class by a product with a vector of the class (Miyato and Koyama 2018), and sees how much those of a class
differ (`Variety`). Products of maps have the norm 1 (`layers/bounded.py`). The
losses stand outside: `regard.tasks.gan.objective`.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.kernel import build_kernel
from regard.attention.site import Site
from regard.config import Config
from regard.config.gan import GanConfig
from regard.config.rules import rule
from regard.layers.bounded import bound
from regard.layers.gated import Gated
from regard.models.assembly import draw

SMALLEST = (4, 5, 6, 7)  # sides of the lowest rung
GROUP = 8  # channels that a norm takes together
SLOPE = 0.1
FEW = 4  # pictures of a class in a batch, from which on they are compared with their class alone
SLOWLY, TINY = 0.01, 1e-8


def rungs(side: int) -> list[int]:
    """The sides of the maps, from the smallest on.

    >>> rungs(28), rungs(32)
    ([7, 14, 28], [4, 8, 16, 32])
    """
    steps = [side]
    while steps[0] not in SMALLEST and steps[0] % 2 == 0:
        steps.insert(0, steps[0] // 2)
    rule(
        steps[0] in SMALLEST and len(steps) > 1,
        f"gan.side ({side}) must be 4, 5, 6 or 7 doubled, such as {nearest_side(side)}",
    )
    return steps


def nearest_side(side: int) -> int:
    """The side that pictures of about `side` pixels are drawn with."""
    open_ = [small << times for small in SMALLEST for times in range(1, 7)]
    return min(sorted(open_), key=lambda each: (abs(each - side), each))


def widths(side: int, widest: int) -> list[int]:
    """Channels by rung, without the picture's: half of the widest on the largest map, the widest below it.

    >>> widths(28, 64), widths(32, 64)
    ([64, 32], [64, 64, 32])
    """
    count = len(rungs(side)) - 1
    return [min(widest, max(1, widest // 2) << (count - 1 - rung)) for rung in range(count)]


def attending(sides: list[int], most: int) -> int | None:
    """The rung that attends: the largest map that may, but no picture itself; None: none."""
    fit = [rung for rung, side in enumerate(sides[:-1]) if side <= most]
    return fit[-1] if fit else None


class Styled(nn.Module):
    """norm(x) (1 + gain) + bias, with gain and bias made of a style (B, Y)."""

    def __init__(self, channels: int, style: int) -> None:
        super().__init__()
        self.groups = max(1, channels // GROUP)
        self.made = nn.Linear(style, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        gain, bias = self.made(style)[..., None, None].chunk(2, 1)  # (B, C, 1, 1)
        out: Tensor = F.group_norm(x, self.groups) * (1 + gain) + bias
        return out


class Generator(nn.Module):
    """Noise to pictures."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape = config.of(GanConfig)
        self.sides, channels = rungs(shape.side), widths(shape.side, config.model.d_model)
        style = shape.noise * (2 if shape.classes else 1)
        self.classes = nn.Embedding(shape.classes, shape.noise) if shape.classes else None
        self.begin = nn.Linear(style, channels[0] * self.sides[0] ** 2, bias=False)
        self.norms = nn.ModuleList(Styled(width, style) for width in channels)
        self.ups = nn.ModuleList(
            nn.ConvTranspose2d(low, high, 4, stride=2, padding=1) for low, high in pairwise(channels)
        )
        self.inner_norms = nn.ModuleList(Styled(width, style) for width in channels[1:])
        self.inner = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in channels[1:])
        self.rung = attending(self.sides, shape.attend)
        self.attention = attention_at("generator", self.rung, channels, config)
        self.out = nn.ConvTranspose2d(channels[-1], shape.channels, 4, stride=2, padding=1)

    def forward(self, noise: Tensor, labels: Tensor | None) -> Tensor:
        """(B, Z) and (B,) -> (B, C, S, S) in -1 to 1."""
        style = noise if self.classes is None else torch.cat([noise, self.classes(labels)], 1)
        side = self.sides[0]
        x = _by_place(self.begin(style).unflatten(1, (-1, side, side)))  # (B, D, s, s)
        for rung, norm in enumerate(self.norms):
            if rung:  # looked over once more
                x = x + self.inner[rung - 1](F.relu(self.inner_norms[rung - 1](x, style)))
            if rung == self.rung and self.attention is not None:
                x = self.attention(x)
            x = F.relu(norm(x, style))
            x = self.ups[rung](x) if rung < len(self.ups) else self.out(x)
        pictures: Tensor = x.tanh()
        return pictures


class Variety(nn.Module):
    """One more channel: how much the pictures of a class differ in this batch (Karras et al. 2018).

    A generator that draws one picture a class is seen through by it. Where nothing is learned it is what real
    pictures had, so that no picture's judgement depends on another's.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.register_buffer("usual", torch.ones(1))

    def forward(self, x: Tensor, labels: Tensor | None, sets: int) -> Tensor:
        """(B, C, H, W) -> (B, C + 1, H, W); `sets` of equal length stand one behind the other, real first."""
        usual: Tensor = self.usual  # type: ignore[assignment]
        if self.training:
            group = torch.arange(len(x), device=x.device) * sets // len(x)
            if labels is not None and len(x) >= FEW * sets * self.classes:
                group = group * self.classes + labels
            with torch.autocast(x.device.type, enabled=False):  # small differences of large numbers
                found = spread_within(x.float().flatten(1), group, sets * max(1, self.classes))
            if sets > 1:
                with torch.no_grad():
                    usual.lerp_(found[: len(x) // sets].mean(), SLOWLY)
        else:
            found = usual.expand(len(x))
        more = found[:, None, None, None].expand(-1, 1, *x.shape[2:])
        return torch.cat([x, more.to(x.dtype)], 1)


def spread_within(x: Tensor, group: Tensor, groups: int) -> Tensor:
    """The mean deviation of the numbers (B, N) of each one's group: (B,)."""
    member = F.one_hot(group, groups).T.to(x.dtype)  # (G, B)
    count = member.sum(1, keepdim=True).clamp_min(1)
    away = x - (member @ x / count)[group]
    deviation = (member @ away.square() / count + TINY).sqrt().mean(1)  # (G,)
    return deviation[group]


class Discriminator(nn.Module):
    """Pictures to how real they are."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape = config.of(GanConfig)
        sides, channels = rungs(shape.side), widths(shape.side, config.model.d_model)
        self.begin = nn.Conv2d(shape.channels, channels[-1], 4, stride=2, padding=1)
        self.downs = nn.ModuleList(
            nn.Conv2d(high, low, 4, stride=2, padding=1) for high, low in pairwise(reversed(channels))
        )
        self.rung = attending(sides, shape.attend)
        self.attention = attention_at("discriminator", self.rung, channels, config)
        self.variety = Variety(shape.classes)
        self.last = nn.Conv2d(channels[0] + 1, channels[0], 3, padding=1)
        self.out = nn.Linear(channels[0], 1)
        self.classes = nn.Embedding(shape.classes, channels[0]) if shape.classes else None

    def forward(self, pictures: Tensor, labels: Tensor | None, sets: int = 1) -> Tensor:
        """(B, C, S, S) and (B,) -> (B,); `sets` as `Variety` takes them."""
        x = _by_place(pictures)
        for step, down in enumerate([self.begin, *self.downs]):
            x = F.leaky_relu(down(x), SLOPE)
            if self.attention is not None and len(self.downs) - step == self.rung:
                x = self.attention(x)
        x = self.variety(x, labels, sets)
        found = F.leaky_relu(self.last(x), SLOPE).sum((2, 3))  # (B, D)
        score: Tensor = self.out(found)[:, 0]
        return score if self.classes is None else score + (self.classes(labels) * found).sum(1)


def _by_place(x: Tensor) -> Tensor:
    """The same map with the channels of a place side by side: convolutions on a CPU are a fifth faster."""
    return x.contiguous(memory_format=torch.channels_last)


def attention_at(stack: str, rung: int | None, channels: list[int], config: Config) -> Gated | None:
    """The attention of a ladder, if it has one."""
    if rung is None:
        return None
    site, heads, width = (
        Site(stack, rung, queries="picture", keys="pooled"),
        config.model.n_heads,
        channels[rung],
    )
    rule(
        width % heads == 0,
        f"model.n_heads ({heads}) must divide the {width} channels of the map that attends",
    )
    return Gated(
        MultiHead(
            width,
            heads,
            site=site,
            kernel=build_kernel(config.attention, site),
            score=config.attention.score,
            dropout=config.attention.dropout,
        )
    )


class SAGAN(nn.Module):
    """The two of them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.noise = config.of(GanConfig).noise
        self.generator, self.discriminator = Generator(config), Discriminator(config)
        self.apply(draw)
        maker = self.generator
        for part in (maker.ups, maker.inner, maker.attention, maker.out):
            bound(part)  # not what spreads the noise: bounded, all drawings of a class would be one
        bound(self.discriminator)

    def make(self, noise: Tensor, labels: Tensor | None) -> Tensor:
        """Pictures (B, C, S, S) in -1 to 1."""
        made: Tensor = self.generator(noise, labels)
        return made

    def judge(self, pictures: Tensor, labels: Tensor | None, sets: int = 1) -> Tensor:
        """How real they are: (B,); `sets` of them, each compared within itself alone."""
        found: Tensor = self.discriminator(pictures, labels, sets)
        return found

    def forward(self, noise: Tensor, labels: Tensor | None) -> Tensor:
        """What `make` gives."""
        return self.make(noise, labels)
