"""The order of the suite, and how its many short MPI jobs start and end."""

import os

# Open MPI sleeps 0.2 s at each start, looking for networks, and 2 s between the two signals that end a failed job; a
# process without mpirun starts a daemon for others that may join it.
os.environ.setdefault("OMPI_MCA_pml", "ob1")
os.environ.setdefault("OMPI_MCA_ess_singleton_isolated", "1")
os.environ.setdefault("OMPI_MCA_odls_base_sigkill_timeout", "0")
# There are more threads than cores: one that waits must not keep another from working.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_collection_modifyitems(items):
    """Quick tests first. Where several processes share the files, those with slow tests first, so that none of these
    is left to one process at the end."""
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    items.sort(key=set(slow).__contains__)
    if "PYTEST_XDIST_WORKER" in os.environ:
        files = {item.path for item in slow}
        items.sort(key=lambda item: item.path not in files)
