"""OpenCL, whose code is that of GPUs, on whatever device there is: in CI on a processor (pocl)."""

import openmm
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.simulate.openmm_platform import ChosenPlatform, context_on, platform_names


def has_opencl() -> bool:
    """Whether OpenCL finds a device."""
    if "OpenCL" not in platform_names():
        return False
    system = openmm.System()
    system.addParticle(1.0)
    try:
        context_on(ChosenPlatform("OpenCL"), system, openmm.VerletIntegrator(0.001))
    except BadInputError:
        return False
    return True


needs_opencl = pytest.mark.skipif(not has_opencl(), reason="no OpenCL driver")
