"""Keys of a file, their limits, and the bucket of each client."""

from pathlib import Path

import pytest

from regard.errors import UsageError
from regard.serving.keys import CLIENTS, Key, Keys, read_keys
from regard.serving.limits import Refusal


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_keys(tmp_path: Path) -> None:
    path = written(tmp_path, '[a]\nkey = "one"\nrequests = 3\ncharacters = 5\n[b]\nkey = "two"\n')
    first, second = read_keys(path)
    assert (first.requests, first.characters) == (3, 5)
    keys = Keys([first, second])
    assert keys.check(["nobody", "two"]) is second
    with pytest.raises(Refusal, match="Invalid API key"):
        keys.check(["One"])
    with pytest.raises(Refusal, match="text has 6 characters, your key allows 5"):
        keys.admit(first, "x", {"q": ["abc", "def"]})
    keys.admit(second, "x", {"q": "abcdef"})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "holds no key"),
        ("a = 1", "a must be a table"),
        ("[a]\nrequests = 1", r"\[a\] needs a line such as key"),
        ('[a]\nkey = "x"\nrate = 1', r"\[a\] has rate; it takes key, requests, characters"),
        ('[a]\nkey = "x"\nrequests = "many"', "requests must be a whole number"),
        ('[a]\nkey = "x"\n[b]\nkey = "x"', "has a key twice"),
        ("[a", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        read_keys(written(tmp_path, text))


def test_a_bucket_empties_and_fills_again() -> None:
    clock = Clock()
    keys = Keys(requests=6, now=clock)
    for _ in range(6):
        keys.admit(None, "192.0.2.1", {})
    with pytest.raises(Refusal) as caught:
        keys.admit(None, "192.0.2.1", {})
    assert (caught.value.status, caught.value.retry_after) == (429, 11)
    keys.admit(None, "192.0.2.2", {})  # another client
    clock.now = 10.0
    keys.admit(None, "192.0.2.1", {})
    with pytest.raises(Refusal):
        keys.admit(None, "192.0.2.1", {})


def test_a_key_has_its_own_bucket_wherever_it_comes_from() -> None:
    one = Key.of("one", requests=2)
    keys = Keys([one, Key.of("two")], requests=1, now=Clock())
    keys.admit(one, "192.0.2.1", {})
    keys.admit(one, "192.0.2.2", {})
    with pytest.raises(Refusal, match="more than 2 requests a minute"):
        keys.admit(one, "192.0.2.3", {})
    keys.admit(None, "2001:db8::1", {})
    with pytest.raises(Refusal):
        keys.admit(None, "2001:db8::2", {})  # the same network


def test_no_more_clients_are_remembered_than_there_is_room_for() -> None:
    keys = Keys(requests=1, now=Clock())
    for number in range(CLIENTS + 10):
        keys.admit(None, f"client {number}", {})
    assert len(keys._buckets) == CLIENTS
