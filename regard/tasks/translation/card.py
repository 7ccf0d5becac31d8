"""What a translator's card says beside what every card does: languages, layers, how to call it.

Before this file: `regard.models.card`.
"""

from regard.models.card import Facts, escape, titled, write_card
from regard.text.directions import Directions
from regard.text.languages import language_name

_USE = ('echo "your text" | regard translate -m {}', "regard evaluate -m {} SRC REF")


def write(facts: Facts, folder: str) -> str:
    """The card as Markdown; `folder` is how the commands in it call the model."""
    config, model = facts.config, facts.config.model
    codes = config.text.source, config.text.target
    names = [escape(language_name(code)) for code in codes if code]
    directions = Directions.of(config.text)
    if directions:
        several = [f"{escape(language_name(a))} to {escape(language_name(b))}" for a, b in directions.pairs]
        title, use = f"A translator: {', '.join(several)}", _use_to(directions)
    elif all(codes):
        title, use = f"A translator from {names[0]} to {names[1]}", _USE
    else:
        title, use = titled("A translator", facts), _USE
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    card = write_card(
        facts,
        folder,
        title=title,
        intro=f"A {model.kind} that translates one line of text at a time, made with Regard.",
        shape=[
            f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers, d_model "
            f"{model.d_model}, {model.n_heads} heads, d_ff {model.d_ff}, {model.norm}-norm{size}".replace(
                "_", "\\_"
            ),
            f"{config.positions.kind} positions, {config.attention.kind} attention, "
            f"a joint vocabulary of {model.vocab_size:,} tokens with byte fallback",
        ],
        use=use,
        python=f"regard.load({{}}){_to(directions)}.translate(['your text'])",
    )
    if directions:
        zero = ", ".join(map("-".join, directions.untrained))
        card += (
            f"\nIts pairs are {directions}." + (f" Zero-shot, never trained: {zero}." if zero else "") + "\n"
        )
    return f"{card}\nDecoding defaults are in `generation.json` and may be edited.\n"


def _to(directions: Directions | None) -> str:
    return f".to({directions.targets[0]!r})" if directions else ""


def _use_to(directions: Directions) -> tuple[str, ...]:
    source, target = directions.pairs[0]
    return (
        f'echo "your text" | regard translate -m {{}} --from {source} --to {target}',
        f"regard evaluate -m {{}} SRC REF --from {source} --to {target}",
    )
