"""Learning the vocabulary: against byte-pair encoding in plain loops, and at its limits."""

import errno
import io
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from regard.errors import ModelError, StorageError, UsageError
from regard.text import vocabulary
from regard.text.normalise import normalise
from regard.text.tokenizer import Tokenizer
from regard.text.vocabulary import RESERVED, all_merges, broken, fitting_size, interruptible


def pieces_of(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(number) for number in range(len(RESERVED), tokenizer.vocab_size)]


def naive_pieces(lines: list[str], merges: int) -> list[str]:
    """Algorithm 1 of Sennrich et al. (2016) on words of letters; of equal pairs the oldest pieces first."""
    words = Counter(word for line in lines for word in ("\u2581" + line.replace(" ", " \u2581")).split(" "))
    spelled = {word: list(word) for word in words}
    age = {character: n for n, character in enumerate(sorted(set("".join(words))))}
    made: list[str] = []
    while len(made) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(spelled[word]):
                pairs[pair] += count
        pair, count = min(pairs.items(), key=lambda item: (-item[1], age[item[0][0]], age[item[0][1]]))
        if count < 2:
            break
        made.append("".join(pair))
        age[made[-1]] = len(age)
        for symbols in spelled.values():
            join(symbols, pair)
    return made


def join(symbols: list[str], pair: tuple[str, str]) -> None:
    place = 0
    while place < len(symbols) - 1:
        if (symbols[place], symbols[place + 1]) == pair:
            symbols[place : place + 2] = ["".join(pair)]
        place += 1


def test_equals_byte_pair_encoding_in_plain_loops(lines: list[str]) -> None:
    only_words = ["".join(c for c in line if c.isalpha() or c == " ") for line in lines[:200]]
    only_words = [normalise(line) for line in only_words if line.strip()]
    alphabet = len(set("".join(only_words)))  # the space stands for its mark
    tokenizer = Tokenizer.train(only_words, len(RESERVED) + alphabet + 97)
    assert sorted(pieces_of(tokenizer)[:alphabet]) == sorted(set("".join(only_words).replace(" ", "\u2581")))
    assert pieces_of(tokenizer)[alphabet:] == naive_pieces(only_words, 97)


def test_rare_characters_are_left_to_bytes() -> None:
    tokenizer = Tokenizer.train(["aaab" * 20] * 1000 + ["a\u72d7b a\u72d7b"], 0)
    assert "\u72d7" not in "".join(pieces_of(tokenizer))
    assert "\n" not in "".join(pieces_of(tokenizer))
    assert [tokenizer.token(n) for n in tokenizer.encode("\u72d7")] == [
        "\u2581",
        "<0xE7>",
        "<0x8B>",
        "<0x97>",
    ]


def test_nothing_is_merged_across_a_rare_character() -> None:
    rare = [f"x{chr(0x4E00 + n)}y" for n in range(50)]  # "xy" would come fifty times
    tokenizer = Tokenizer.train(["abcd" * 300] * 1000 + ["x", "y"] * 200 + rare, 0)
    assert {"x", "y"} < set(pieces_of(tokenizer))
    assert not any("xy" in piece for piece in pieces_of(tokenizer))


def test_same_lines_same_tokenizer_in_another_process(lines: list[str]) -> None:
    program = (
        "import sys; from regard.text.tokenizer import Tokenizer; "
        "sys.stdin.reconfigure(encoding='utf-8', newline='\\n'); sys.stdout.reconfigure(encoding='utf-8'); "
        "sys.stdout.write(Tokenizer.train((line[:-1] for line in sys.stdin), 0).to_json())"
    )
    text = "".join(line + "\n" for line in lines).encode()
    outs = {
        subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert outs == {Tokenizer.train(iter(lines), 0).to_json().encode()}


@pytest.mark.parametrize("size", [261, 262, 300, 333, 500])
def test_an_explicit_size_is_kept(lines: list[str], size: int) -> None:
    tokenizer = Tokenizer.train(lines, size)
    assert tokenizer.vocab_size == size
    assert tokenizer.decode(tokenizer.encode(lines[0])) == lines[0]


def test_more_than_the_text_can_give_is_refused_with_both_numbers() -> None:
    lines = ["the cat", "the dog"] * 5
    most = Tokenizer.train(lines, 0).vocab_size
    assert Tokenizer.train(lines, most).vocab_size == most
    with pytest.raises(UsageError, match=rf"\({most + 1}\) is more than this text can give \({most}\)"):
        Tokenizer.train(lines, most + 1)


@pytest.mark.parametrize("size", [1, 260, -5])
def test_less_than_the_least_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=rf"\({size}\) must be at least 261"):
        Tokenizer.train(["a"], size)


def test_no_text_still_spells_everything() -> None:
    tokenizer = Tokenizer.train([], 0)
    assert tokenizer.vocab_size == 261
    assert tokenizer.decode(tokenizer.encode("any text é")) == "any text é"


def test_line_breaks_inside_lines_do_no_harm() -> None:
    tokenizer = Tokenizer.train(["ab\ncd \x85 \u2028"] * 50, 0)
    assert tokenizer.decode(tokenizer.encode("ab\ncd\u2028")) == "ab\ncd\u2028"


def test_fitting_size_grows_with_the_text_within_bounds() -> None:
    sizes = [fitting_size(10**power) for power in range(12)]
    assert sizes == sorted(sizes)
    assert sizes[0] == len(RESERVED) + 64
    assert sizes[-1] == 32000


def test_all_merges_finds_each_pair_once() -> None:
    merges = all_merges([*RESERVED, "a", "b", "ab", "aba", "abab"])
    assert merges == [("a", "b"), ("ab", "a"), ("ab", "ab"), ("aba", "b")]


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda *_, **__: FullDisk())
    with pytest.raises(StorageError, match="No space left on device"):
        Tokenizer.train(["a"], 0)


def test_an_error_of_the_lines_passes_through() -> None:
    def lines() -> Iterator[str]:
        yield "a"
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        Tokenizer.train(lines(), 0)


def test_text_larger_than_the_memory_for_it(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = Tokenizer.train(lines, 0).to_json()
    monkeypatch.setattr(vocabulary, "IN_MEMORY", 1000)
    assert Tokenizer.train(lines, 0).to_json() == in_memory


@pytest.mark.parametrize("top", [400, 600, 2000])
def test_pieces_that_merge_in_too_many_ways_are_refused(top: int) -> None:
    with pytest.raises(ModelError, match=r"make it smaller|are not read"):
        all_merges(["a" * n for n in range(1, top)] + ["b" * n for n in range(1, top)], 0)


def test_long_words_are_learned_from_in_parts() -> None:
    assert list(broken("a" * 2500 + " b")) == ["a" * 1000, "a" * 1000, "a" * 500 + " b"]
    assert list(broken("a" * 1000)) == ["a" * 1000]
    assert "".join(broken("ab c" * 999)) == "ab c" * 999


def test_a_signal_is_obeyed_while_a_library_works() -> None:
    began, release = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        began.set()
        release.wait()  # as deaf as a library that never comes back

    def obey(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, obey)
    threading.Thread(target=lambda: (began.wait(), os.kill(os.getpid(), signal.SIGUSR1))).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(work)
    finally:
        signal.signal(signal.SIGUSR1, before)
        release.set()


def test_what_the_library_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda stop: 1 // 0)
