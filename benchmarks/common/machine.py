"""The machine that a benchmark runs on, and the versions of what it runs."""

import os
import platform
import re
from importlib import metadata
from pathlib import Path

INSTRUCTION_SETS = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse4_1", "SSE4.1"), ("asimd", "NEON"))
"""Flag of /proc/cpuinfo and name, widest first."""


def machine() -> dict:
    """Processor, widest instruction set, cores that this process may use, memory (GiB), system, present load."""
    text = _text("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = set(re.findall(r"^(?:flags|Features)\s*: (.*)$", text, re.MULTILINE)[:1] or [""])
    words = set(" ".join(flags).split())
    memory = re.search(r"MemTotal:\s+(\d+) kB", _text("/proc/meminfo"))
    return {
        "processor": model[1].strip() if model else platform.machine(),
        "instruction_set": next((name for flag, name in INSTRUCTION_SETS if flag in words), platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else None,
        "system": platform.platform(terse=True),
        "load": round(os.getloadavg()[0], 2),
    }


def slug(described: dict) -> str:
    """The machine as part of a file name: ``amd-epyc-avx2-2``; ``computed`` where results do not depend on it."""
    if "processor" not in described:
        return "computed"
    words = f"{described['processor']} {described.get('instruction_set') or ''} {described.get('cores') or ''}"
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((?:R|TM)\)|@.*?GHz|CPU|Processor", "", words).lower()).strip("-")


def versions(*packages: str) -> dict[str, str]:
    """Versions of chromabuild, Python and the named Python packages that are installed."""
    from chromabuild import __version__

    found = {"chromabuild": __version__, "Python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""
