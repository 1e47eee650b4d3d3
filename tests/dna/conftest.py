import pytest
from support.synthetic_scaffold import synthetic_scaffold


@pytest.fixture
def scaffold_of():
    """The function ``synthetic_scaffold``."""
    return synthetic_scaffold
