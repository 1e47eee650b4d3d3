"""How many threads work uses."""

import os


def thread_count(threads: int | None = None) -> int:
    """``threads``, or where it is None the cores that this process may use."""
    return threads or len(os.sched_getaffinity(0))
