"""What a language model's card says beside what every card does: what its tokens are, how to call it.

Before this file: `regard.models.card`.
"""

from regard.models.card import Facts, titled, write_card

_USE = ('regard generate -m {} "Once upon a time" --temperature 0.8', "regard evaluate -m {} TEXT")


def write(facts: Facts, folder: str) -> str:
    """The card as Markdown; `folder` is how the commands in it call the model."""
    config, model = facts.config, facts.config.model
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    return write_card(
        facts,
        folder,
        title=titled("A language model", facts),
        intro="A decoder that reads a text and writes what may come next, made with Regard.",
        shape=[
            f"{model.decoder_layers} layers, d_model {model.d_model}, {model.n_heads} heads, "
            f"d_ff {model.d_ff}, {model.norm}-norm, {model.activation}{size}".replace("_", "\\_"),
            f"{config.positions.kind} positions, {config.attention.kind} attention, "
            f"a vocabulary of {model.vocab_size:,} tokens ({config.text.units}), of which "
            f"{config.data.context:,} are seen at once",
        ],
        use=_USE,
        python='next(regard.load({}).generate(["Once upon a time"])).text',
    )
