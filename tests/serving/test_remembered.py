"""Sentences that come again: asked for once, as they were wished, and no more than there is room for."""

from regard.serving.remembered import CHARACTER, EACH, Remembered


class Engine:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[str]:
        self.asked.append(texts)
        return [text.upper() for text in texts]


def test_what_was_answered_is_not_asked_again() -> None:
    engine, memory = Engine(), Remembered(1_000_000)
    assert memory.answers("de", ["a", "b", "a"], engine) == ["A", "B", "A"]
    assert memory.answers("de", ["b", "c"], engine) == ["B", "C"]
    assert memory.answers("de", ["a", "c"], engine) == ["A", "C"]
    assert memory.answers("fr", ["a"], engine) == ["A"]
    assert engine.asked == [["a", "b"], ["c"], ["a"]]


def test_the_least_recently_asked_for_goes_first() -> None:
    engine, memory = Engine(), Remembered(2 * (EACH + CHARACTER))
    for text in ("a", "b", "a", "c"):
        memory.answers("de", [text], engine)
    assert memory.held == 2 * (EACH + CHARACTER)
    memory.answers("de", ["a", "c", "b"], engine)
    assert engine.asked == [["a"], ["b"], ["c"], ["b"]]


def test_without_room_nothing_is_kept() -> None:
    engine, memory = Engine(), Remembered()
    for _ in range(2):
        memory.answers("de", ["a", "a"], engine)
    assert engine.asked == [["a", "a"], ["a", "a"]]
    assert memory.held == 0
