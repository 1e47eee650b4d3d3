"""Memory of the GPUs of this machine, as their drivers tell it."""

import os
import subprocess
from pathlib import Path

_MIB = 1 << 20
_AMD = Path("/sys/class/drm")


def gpu_memory_here(devices: str = "") -> float | None:
    """Bytes of memory of the smallest of the GPUs that a run would use; None where no driver tells.

    ``devices``: their numbers as ``dynamics.devices`` has them, empty: any. Numbers count the devices that
    CUDA_VISIBLE_DEVICES leaves.
    """
    found = _nvidia() or _amd()
    chosen = [int(number) for number in devices.split(",") if number]
    known = [found[k] for k in chosen if k < len(found)] if chosen else found
    return float(min(known)) if known else None


def _nvidia() -> list[int]:
    """Bytes of each device; empty where there is no driver."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20, check=True)
        every = [_MIB * int(line) for line in done.stdout.split()]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = [word.strip() for word in visible.split(",")]
    if all(word.isdigit() for word in numbers):
        every = [every[int(word)] for word in numbers if int(word) < len(every)]
    return every


def _amd() -> list[int]:
    """Bytes of each device that the kernel's amdgpu driver knows."""
    found = []
    for path in sorted(_AMD.glob("card*/device/mem_info_vram_total")):
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return found
