"""The whole suite runs its quick tests first."""


def pytest_collection_modifyitems(items):
    """Put slow tests last, keeping the order otherwise."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
