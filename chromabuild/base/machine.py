"""What this machine has."""

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_here() -> float:
    """Bytes of memory that processes here may use: of the machine, or what its container is allowed."""
    limits = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    for name in _LIMITS:
        try:
            limits.append(float(Path(name).read_text()))
        except (OSError, ValueError):  # another version of control groups, or "max"
            continue
    return min(limits)


def nodes_here() -> int:
    """Nodes that the batch system gave to this job; 1 outside of one."""
    try:
        return max(1, int(os.environ.get("SLURM_JOB_NUM_NODES", "1")))
    except ValueError:
        return 1
