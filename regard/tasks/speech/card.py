"""What the card of a recogniser says beside what every card does: what it hears, and how far ahead.

Before this file: `regard.models.card`.
"""

from regard.audio.frames import HOP
from regard.config import Config
from regard.config.speech import SpeechConfig
from regard.models.card import Facts, titled, write_card

_USE = ("regard transcribe -m {} recording.wav", "regard evaluate -m {} metadata.tsv")


def look_ahead(config: Config) -> float | None:
    """Seconds after a sound that what is heard there depends on; None: on the whole recording."""
    how, attention = config.of(SpeechConfig), config.attention
    if how.encoder == "recurrent" or config.positions.kind == "learned":
        return None
    if how.encoder == "attention" and attention.kind != "local":
        return None
    ahead = attention.window if attention.ahead < 0 else attention.ahead
    places = (config.model.kernel // 2 if how.encoder == "conv" else ahead) * config.model.encoder_layers
    stride = how.subsampling or 4
    return (places * stride + stride - 1) * HOP  # convolutions that halve hear one frame less than they join


def write(facts: Facts, folder: str) -> str:
    """The card as Markdown; `folder` is how the commands in it call the model."""
    config, model = facts.config, facts.config.model
    how, ahead = config.of(SpeechConfig), look_ahead(facts.config)
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    hears = "the whole recording" if ahead is None else f"{ahead:.2f} s ahead"
    return write_card(
        facts,
        folder,
        title=titled("A recogniser of speech", facts),
        intro="Frames of sound in, characters out, made with Regard.",
        shape=[
            f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers, d_model "
            f"{model.d_model}, {model.n_heads} heads, d_ff {model.d_ff}, {model.norm}-norm{size}".replace(
                "_", "\\_"
            ),
            f"{how.rate:,} Hz, {how.mels} bands every 10 ms, {how.subsampling} frames joined; "
            f"{config.attention.kind} attention that hears {hears}",
            f"{config.text.units}, a vocabulary of {model.vocab_size:,}; {how.ctc:.0%} of the loss was CTC's",
        ],
        use=_USE,
        python='next(regard.load({}).transcribe("recording.wav")).text',
    )
