"""Switches nest, and leave nothing behind."""

import pytest

from regard.attention.switch import any_off, heads_off, off


def test_switches_nest_and_end_with_their_block() -> None:
    with heads_off({"a": [0]}):
        with heads_off({"a": [2], "b": [1]}):
            assert off("a") == {0, 2}
            assert off("b") == {1}
        assert off("a") == {0}
        assert off("b") == set()
    assert not any_off()


def test_an_error_inside_switches_the_heads_on_again() -> None:
    with pytest.raises(RuntimeError), heads_off({"a": [0]}):
        raise RuntimeError
    assert not any_off()
