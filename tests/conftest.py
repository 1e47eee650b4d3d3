"""The whole suite runs its quick tests first; tests of one file stay in one process, because they share fixtures."""

import pytest


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which takes the groups from the markers it finds
def pytest_collection_modifyitems(items):
    """Put slow tests last, keeping the order otherwise; tell pytest-xdist (--dist loadgroup) what belongs together."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(str(item.path)))
