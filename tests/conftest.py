"""The whole suite runs its quick tests first; tests that share a costly fixture stay in one process."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    """Put slow tests last, keeping the order otherwise; tell pytest-xdist (--dist loadgroup) what belongs together."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
    for item in items:
        one_build = item.path.parent.name == "pipeline"  # these tests share one build of the demo
        item.add_marker(pytest.mark.xdist_group(str(Path("pipeline") if one_build else item.path)))
