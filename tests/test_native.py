"""The compiled parts are optional for users: a build that fails fails nothing. Here it must not go unseen."""

import os

import pytest

from regard.engine import path
from regard.fused import library


@pytest.mark.skipif(not os.environ.get("CI"), reason="a machine without a compiler may do without them")
def test_the_compiled_parts_were_built() -> None:
    """Without them the tests of engine and fused loops would be skipped."""
    assert path.available() is None
    assert library.available()
