"""The formats, each read back by its own rules."""

import json
import re

from regard.tasks.speech.listener import Segment
from regard.tasks.speech.subtitles import FORMATS
from regard.tasks.speech.timing import Word

SAID = [
    Segment("one --> two", 0.5, 61.25, -0.1, 0.01, [Word("one", 0.5, 0.75, 0.9)], [1]),
    Segment("three", 3600.0, 3601.0, -0.2, 0.0),
]


def test_formats() -> None:
    assert FORMATS["txt"](SAID) == "one --> two\nthree\n"
    assert FORMATS["vtt"](SAID).startswith("WEBVTT\n\n00:00:00.500 --> 00:01:01.250\none -> two\n")
    cues = re.findall(
        r"(\d+)\n(\d\d:\d\d:\d\d,\d{3}) --> (\d\d:\d\d:\d\d,\d{3})\n(.+)\n", FORMATS["srt"](SAID)
    )
    assert cues == [
        ("1", "00:00:00,500", "00:01:01,250", "one -> two"),
        ("2", "01:00:00,000", "01:00:01,000", "three"),
    ]
    assert FORMATS["tsv"](SAID) == "start\tend\ttext\n500\t61250\tone --> two\n3600000\t3601000\tthree\n"
    tree = json.loads(FORMATS["json"](SAID))
    assert tree["text"] == "one --> two three"
    assert tree["segments"][0]["words"] == [{"text": "one", "start": 0.5, "end": 0.75, "probability": 0.9}]
    assert tree["segments"][1]["avg_logprob"] == -0.2


def test_nothing_said() -> None:
    assert FORMATS["txt"]([]) == ""
    assert FORMATS["vtt"]([]) == "WEBVTT\n"
    assert json.loads(FORMATS["json"]([])) == {"text": "", "segments": []}
