"""The order of the suite, and how its many short MPI jobs start, wait and end."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# Open MPI sleeps 0.2 s at each start, looking for networks, and 2 s between the two signals that end a failed job; a
# process without mpirun starts a daemon for others that may join it.
os.environ.setdefault("OMPI_MCA_pml", "ob1")
os.environ.setdefault("OMPI_MCA_ess_singleton_isolated", "1")
os.environ.setdefault("OMPI_MCA_odls_base_sigkill_timeout", "0")
# On a virtual machine, most of mpirun's start goes to reading what is on the PCI bus; its files need no disk. OpenCL of
# processors keeps it from handing signals on.
os.environ.setdefault("HWLOC_COMPONENTS", "-pci,-linuxio,-opencl")
os.environ.setdefault("PMIX_MCA_gds", "hash")
# A job that ends removes the folder that it shares with others, which may be about to make theirs in it: each process
# of the suite has a folder of its own.
_SESSIONS = tempfile.TemporaryDirectory(prefix="mpi-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
os.environ["OMPI_MCA_orte_tmpdir_base"] = _SESSIONS.name
# There are more threads than cores: one that waits must not keep another from working.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
_SCRATCH = tempfile.TemporaryDirectory(prefix="test-machine-")


def _preload() -> None:
    """Ranks that wait sleep, and nobody waits for the disk. Without a compiler the tests only take longer."""
    library = Path(_SCRATCH.name) / "test_machine.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler and subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library,
                                    Path(__file__).parent / "support" / "test_machine.c"]).returncode == 0:
        os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
        os.environ["LD_PRELOAD"] = " ".join([str(library), *os.environ.get("LD_PRELOAD", "").split()])


_preload()
os.fsync = lambda file: None  # in this process, as in those that it starts


def pytest_collection_modifyitems(items):
    """Quick tests first. Where several processes share the files, those with slow tests first, so that none of these
    is left to one process at the end."""
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    items.sort(key=set(slow).__contains__)
    if "PYTEST_XDIST_WORKER" in os.environ:
        files = {item.path for item in slow}
        items.sort(key=lambda item: item.path not in files)
