"""Which of several processes of a parallel launcher this one is, from the variables that the launcher sets.

No MPI library is loaded: processes that share work out by their rank and meet in files need none, and none can hang.
"""

import os
from collections.abc import Mapping

from chromabuild.base.errors import BadInputError

_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI and its descendants
    ("PMI_RANK", "PMI_SIZE"),  # mpiexec of MPICH, Intel and Cray
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun; SLURM_NTASKS stands in a batch script, too, which is one process
)


def rank_and_size(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Number of this process, from 0, and how many there are. Raises BadInputError when no launcher tells."""
    for names in _LAUNCHERS:
        values = [environment.get(name, "") for name in names]
        if all(value.isdecimal() for value in values):
            rank, size = map(int, values)
            if rank < size:
                return rank, size
    raise BadInputError("--mpi was given, but no launcher says which of how many processes this is "
                        f"({', '.join(' and '.join(names) for names in _LAUNCHERS)}): start it with mpirun or srun, "
                        "or leave --mpi out")
