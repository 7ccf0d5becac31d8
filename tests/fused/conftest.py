"""Every path that this processor has, one after the other."""

from collections.abc import Iterator

import pytest

from regard.fused.library import PATHS, available, choose


@pytest.fixture(params=[path for path in PATHS if available() and choose(path) == path])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """The loops of one path while the test runs."""
    assert choose(request.param) == request.param
    yield request.param
    choose()
