"""The memory that chromaqm reckons with is what its runs take."""

import os
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support import systems
from support.plane_waves import HYDROGEN, WATER, Case, write_case


def told_and_taken(folder: Path, case: Case) -> tuple[float, float]:
    """Megabytes: what `chromaqm check` tells, and the largest resident set of three steps with forces."""
    control = write_case(folder, case, MINIMIZE={"nsteps": 3})
    program = systems.BIN / "chromaqm"
    told = subprocess.run([program, "check", control.name], cwd=folder, capture_output=True, text=True, check=True)
    process = subprocess.Popen([program, "run", control.name], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    taken = 0
    while process.poll() is None:
        # Not from getrusage, which counts the pages of this process too, from before the program took its place.
        with suppress(OSError):
            found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            taken = max(taken, int(found[1]) if found else 0)
        time.sleep(0.002)
    assert process.returncode == 10, "it must not converge in three steps"
    return float(re.search(r"each needs about (\d+) MB", told.stdout)[1]), taken * 1.024e-3


@pytest.mark.parametrize("functional", ["PZ", "BLYP"])
@pytest.mark.parametrize(("box", "copies"), [(20.0, 1), (26.0, 1), (20.0, 8)])
def test_need_is_what_a_run_takes(tmp_path, functional, box, copies):
    """With much grid and few states, and with eight waters. Beyond what the smallest run takes: libraries of messages
    are larger or smaller."""
    edge = box / 2
    atoms = [(element, x + edge * (k & 1), y + edge * (k >> 1 & 1), z + edge * (k >> 2))
             for k in range(copies) for element, x, y, z in WATER]
    told, taken = told_and_taken(tmp_path, Case(atoms, box, 50.0, functional))
    told_alone, taken_alone = told_and_taken(tmp_path, Case(HYDROGEN, 6.0, 30.0, functional))
    assert told - told_alone == pytest.approx(taken - taken_alone, rel=0.2)
