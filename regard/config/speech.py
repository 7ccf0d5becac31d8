"""How sound becomes frames and frames become what an encoder reads: the keys of task=speech."""

from dataclasses import dataclass

from regard.config.rules import between, one_of, rule

ENCODERS = ("attention", "conv", "recurrent")
FRONTS = ("bands", "frames")
FEATURES = ("fixed", "whisper")
SCORED = ("words", "text")
DECODINGS = ("plain", "whisper")


@dataclass(frozen=True)
class SpeechConfig:
    """What is heard, how it is shortened, and how it is made harder while training."""

    rate: int = 0  # samples a second; 0: the data's commonest, at most 16,000
    mels: int = 64  # bands of a frame
    fft: int = 512  # samples of a spectrum; the window is 25 ms of them
    features: str = "fixed"  # whisper: what is far below the loudest is lifted, as Whisper was trained
    front: str = "bands"  # convolutions over time and bands, or over time alone (Whisper's)
    channels: int = 32  # front=bands: of its convolutions
    subsampling: int = 0  # frames of 10 ms that become one; 0: 4, or 2 where texts are too fast for that
    encoder: str = "attention"  # what reads the frames
    ctc: float = 0.3  # share of the loss that is CTC's; 0: none
    joint: float = 0.5  # share of CTC in what is written, where it was trained; 0: the decoder alone
    longest: float = 30.0  # seconds; longer recordings are not trained on
    heard: float = 0.0  # seconds of the longest that was: longer ones are cut when transcribed; 0: as longest
    join: int = 1  # recordings, drawn anew, that are joined to one while training, at most; 1: none
    speed: float = 0.15  # recordings are made slower or faster by at most this share
    throat: float = 0.1  # its bands are moved up or down by at most this share, as in another's voice
    colour: float = 8.0  # dB that some bands are louder or softer by at most, as with another microphone
    noise: float = 0.5  # share of recordings that noise is added to
    mask: float = 0.6  # share of recordings with bands and times blotted out (SpecAugment)
    silence: float = 0.02  # share of rows that are noise alone, with no text
    decoding: str = "plain"  # whisper: windows of 30 s with times among the words, as Whisper was trained
    scored: str = "words"  # what WER compares: words in lower case without punctuation, or the text as it is

    def __post_init__(self) -> None:
        rule(
            self.rate == 0 or 4000 <= self.rate <= 48000,
            f"speech.rate ({self.rate}) must be between 4000 and 48000, or 0 for the data's own",
        )
        between("speech.mels", self.mels, 8, 256)
        between("speech.fft", self.fft, 64, 8192)
        rule(
            round(self.rate * 0.025) <= self.fft,
            f"speech.fft ({self.fft}) must hold 25 ms, which are {round(self.rate * 0.025)} samples",
        )
        for name, words in (
            ("features", FEATURES),
            ("front", FRONTS),
            ("encoder", ENCODERS),
            ("decoding", DECODINGS),
            ("scored", SCORED),
        ):
            one_of(f"speech.{name}", getattr(self, name), words)
        between("speech.channels", self.channels, 1, 4096)
        rule(
            self.subsampling in (0, 2, 4, 8),
            f"speech.subsampling ({self.subsampling}) must be 2, 4 or 8, or 0 for chosen by the data",
        )
        between("speech.longest", self.longest, 1, 3600)
        between("speech.heard", self.heard, 0, 3600)
        between("speech.join", self.join, 1, 100)
        between("speech.speed", self.speed, 0, 0.5)
        between("speech.throat", self.throat, 0, 0.5)
        between("speech.colour", self.colour, 0, 40)
        for name in ("ctc", "joint", "noise", "mask", "silence"):
            between(f"speech.{name}", getattr(self, name), 0, 1)
