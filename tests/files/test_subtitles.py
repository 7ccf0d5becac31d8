"""Subtitles: times stay, sentences over several cues are translated whole, lines stay as long."""

import re

from formats import loud

from regard.files.subtitles import Srt, Vtt, shared_out, wrapped

FILM = """1
00:00:01,000 --> 00:00:02,500
The big dog
ran over the

2
00:00:02,600 --> 00:00:04,000
very green field.

3
00:00:05,000 --> 00:00:06,000
- Really?
- Yes & no.

4
00:00:07,000 --> 00:00:08,000
{\\an8}<i>Some music</i>
"""


def test_srt():
    film = Srt(FILM.encode())
    assert film.segments == [
        "The big dog ran over the very green field.",
        "- Really?",
        "- Yes &amp; no.",
        "<img alt='{\\an8}'><i>Some music</i>",
    ]
    made = film.written([loud(each) for each in film.segments]).decode()
    assert made == FILM.replace("ran over the", "RAN OVER THE").replace("The big dog", "THE BIG DOG").replace(
        "very green field", "VERY GREEN FIELD"
    ).replace("Really", "REALLY").replace("Yes & no", "YES & NO").replace("Some music", "SOME MUSIC")


def test_times_stay_whatever_is_said():
    film = Srt(FILM.replace("\n", "\r\n").encode())
    for said in (["", "", "", ""], ["a --> b"] * 4, ["word " * 60] * 4):
        made = film.written(said).decode()
        assert re.findall(r".*-->.*\r", made) == re.findall(r".*-->.*\r", FILM.replace("\n", "\r\n"))
        assert "\n" not in made.replace("\r\n", "")
    longest = max(map(len, film.written(["word " * 60] * 4).decode().splitlines()))
    assert longest <= 40


def test_vtt():
    data = b"WEBVTT\n\nNOTE a > b\n\nSTYLE\n::cue {}\n\n00:01.000 --> 00:02.000 line:0\n<v Bob>Hi &amp; bye\n"
    film = Vtt(data)
    assert film.segments == ["<v Bob>Hi &amp; bye"]
    assert film.written(["<v Bob>Hallo"]) == data.replace(b"Hi &amp; bye", b"Hallo")


def test_shares():
    assert shared_out("a b c d", [1, 1, 1, 1]) == ["a", "b", "c", "d"]
    assert shared_out("a", [5, 5]) == ["a", ""]
    assert wrapped("", 2, 40) == []
    assert wrapped('one <font color="a b">two</font> three', 2, 40) == [
        'one <font color="a b">two</font>',
        "three",
    ]
