"""The tree of errors and the exit codes it promises."""

import pytest

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
