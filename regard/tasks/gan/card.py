"""What a generator's card says beside what every card does: its maps, where they attend, how to call it.

Before this file: `regard.models.card`.
"""

from regard.config.gan import GanConfig
from regard.models.card import Facts, titled, write_card
from regard.models.sagan import attending, rungs, widths

_USE = ("regard draw -m {} -n 64 -o sheet.png --seed 1", "regard evaluate -m {} PICTURES")


def card(facts: Facts, folder: str) -> str:
    """The card as Markdown; `folder` is how the commands in it call the model."""
    config, how = facts.config, facts.config.of(GanConfig)
    sides, channels = rungs(how.side), widths(how.side, config.model.d_model)
    maps = ", ".join(f"{side} x {side} x {width}" for side, width in zip(sides[:-1], channels, strict=True))
    rung = attending(sides, how.attend)
    where = (
        f"attention ({config.model.n_heads} heads, {config.attention.score}) on maps of side {sides[rung]}"
        if rung is not None
        else "no attention"
    )
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    return write_card(
        facts,
        folder,
        title=titled("A generator of pictures", facts),
        intro="A generator and the discriminator it learned from (SAGAN), made with Regard.",
        shape=[
            f"maps of {maps}{size}",
            where,
            f"the discriminator learns at {how.pace:g} times the rate; pictures shown to both: {how.augment}",
        ],
        use=_USE,
        python='regard.load({}).draw(64, seed=1).save("sheet.png")',
    )
