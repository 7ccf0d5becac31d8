"""The tree of errors and the exit codes it promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import errors


def test_codes_are_those_of_the_design():
    codes = {
        errors.RegardError: 1,
        errors.UsageError: 2,
        errors.DataError: 2,
        errors.ModelError: 2,
        errors.QualityError: 3,
        errors.DivergedError: 4,
        errors.StorageError: 5,
    }
    assert {kind: kind.exit_code for kind in codes} == codes


def test_the_drawing_on_top_of_the_file_is_the_tree():
    drawn = {
        line.split("──")[-1].split("(")[0].strip(): int(line.split("(")[1].split(")")[0])
        for line in (errors.__doc__ or "").splitlines()
        if "Error (" in line
    }
    tree = [errors.RegardError, *errors.RegardError.__subclasses__()]
    assert drawn == {kind.__name__: kind.exit_code for kind in tree}


@pytest.mark.parametrize("kind", [errors.UsageError, errors.DataError, errors.ModelError])
def test_mistakes_can_be_caught_as_value_errors(kind):
    with pytest.raises(ValueError, match="n_heads"):
        raise kind("n_heads (6) must divide d_model (512)")


def test_storage_errors_can_be_caught_as_os_errors():
    with pytest.raises(OSError, match="disk"):
        raise errors.StorageError("the disk is full")


@given(st.text(st.characters(exclude_categories=())))
def test_printable_is_printable(text: str) -> None:
    assert errors.printable(text).isprintable()
    if text.isprintable():
        assert errors.printable(text) == text


@pytest.mark.parametrize(
    "value",
    [10**5000, "x" * 10**6, [[]] * 10**6, None, True, 1e400, "\x1b[2J", b"\x1b"],
    ids=lambda value: type(value).__name__,
)
def test_a_strangers_value_is_short_and_printable(value):
    text = errors.shown(value)
    assert 0 < len(text) <= errors.LONGEST_VALUE
    assert text.isprintable()


@pytest.mark.parametrize("kind", [errors.RegardError, *errors.RegardError.__subclasses__()])
def test_whatever_is_in_an_error_it_is_one_printable_line(kind):
    error = kind(f"\x1b]0;owned\x07 {'long' * 10**6}\nend \udcff")
    assert str(error).isprintable()
    assert len(str(error)) <= errors.LONGEST_MESSAGE
    assert str(error).startswith("<U+001B>]0;owned")
    assert str(error).endswith("end <0xFF>")
