import pytest

from planted import make_planted


@pytest.fixture(scope="session")
def planted():
    return make_planted()
