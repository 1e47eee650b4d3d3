"""What this machine has."""

import os
import resource
import shutil
from pathlib import Path

from chromabuild.base.threads import thread_count

UNUSED_ADDRESSES = 5e8
"""Bytes that a stage maps beyond those that it uses, which ``ulimit -v`` counts: at most 6.2e8 of six stages, and
``build``, which has most, goes through with 4.9e8."""
_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_FREE = Path("/proc/meminfo")


def memory_here() -> float:
    """Bytes of memory that processes here may use: of the machine, or what its container, or the batch job or the
    service that they belong to, is allowed, or what ``ulimit -v`` or ``ulimit -d`` leave a process."""
    limits = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    for kind, unused in ((resource.RLIMIT_AS, UNUSED_ADDRESSES), (resource.RLIMIT_DATA, 0.0)):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(max(0.0, soft - unused))
    for path in _limit_files():
        try:
            limits.append(float(path.read_text()))
        except (OSError, ValueError):  # another version of control groups, or "max"
            continue
    return min(limits)


def memory_free() -> float:
    """Bytes of memory that are free for a process that starts now, what the system can give up for it and swap
    included; what there is where the system does not tell."""
    try:
        lines = _FREE.read_text().splitlines()
    except OSError:
        return memory_here()
    kilobytes = {name: float(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    if "MemAvailable" not in kilobytes:
        return memory_here()
    return min(memory_here(), 1024 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0.0)))


def _limit_files() -> list[Path]:
    """Files that may limit memory: of the control group of this process and of all above it, in both versions."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        lines = []
    found = [_GROUPS / "memory.max", _GROUPS / "memory" / "memory.limit_in_bytes"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        base, name = (_GROUPS, "memory.max") if not controllers else (_GROUPS / "memory", "memory.limit_in_bytes")
        if controllers and "memory" not in controllers.split(","):
            continue
        own = base / group.lstrip("/")
        found += [folder / name for folder in (own, *own.parents) if folder.is_relative_to(base)]
    return found


def nodes_here() -> int:
    """Nodes that the batch system gave to this job; 1 outside of one."""
    try:
        return max(1, int(os.environ.get("SLURM_JOB_NUM_NODES", "1")))
    except ValueError:
        return 1


def summary_of_machine(folder: str | Path) -> dict[str, float]:
    """Cores and memory that processes here may use, memory that is free now, and disk that is free for a folder; GB."""
    path = Path(folder).resolve()
    there = next(one for one in (path, *path.parents) if one.is_dir())
    return {"cores": thread_count(), "memory_gb": memory_here() / 1e9, "memory_free_gb": memory_free() / 1e9,
            "disk_free_gb": shutil.disk_usage(there).free / 1e9}
