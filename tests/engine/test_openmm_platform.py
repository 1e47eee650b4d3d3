"""OpenMM on the platform of the settings: CPU and, where a driver is installed, OpenCL, whose code is that of GPUs."""

import locale

import numpy as np
import openmm
import pytest
from openmm import unit
from support.engine_energies import relative_rms
from support.opencl import needs_opencl

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology
from chromabuild.simulate.openmm_platform import ChosenPlatform, chosen_platform, context_on, platform_names

pytestmark = pytest.mark.release  # none of this is ours
OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(32, 32, 36))
AUTOMATIC = chosen_platform(DynamicsSection()).name


def forces(system: openmm.System, platform: ChosenPlatform, position: np.ndarray) -> tuple[float, np.ndarray]:
    """Energy, kcal/mol, and forces, kcal/mol/angstrom."""
    context = context_on(platform, system, openmm.VerletIntegrator(0.001))
    context.setPositions(position / 10)
    state = context.getState(getEnergy=True, getForces=True)
    return (state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole),
            state.getForces(asNumpy=True).value_in_unit(unit.kilocalorie_per_mole / unit.angstrom))


@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_one_force_for_charges_and_lennard_jones(systems, name):
    """The system of a simulation against that of a comparison by terms, in double precision."""
    system = systems[name]
    parts, expected = energies_by_term(system_from_topology(system.topology, system.box, OPTIONS), system.position)
    together = system_from_topology(system.topology, system.box, OPTIONS, by_term=False)
    assert sum(isinstance(force, openmm.NonbondedForce) for force in together.getForces()) == 1
    energy, force = forces(together, ChosenPlatform("Reference"), system.position)
    assert energy == pytest.approx(sum(parts.values()), rel=1e-9)
    assert relative_rms(force, expected) < 1e-9


@pytest.mark.parametrize("platform", ["CPU", pytest.param("OpenCL", marks=needs_opencl)])
def test_forces_of_a_platform(systems, platform):
    """Single precision in the pairs."""
    system = systems["duplex"]
    _, expected = energies_by_term(system_from_topology(system.topology, system.box, OPTIONS), system.position)
    together = system_from_topology(system.topology, system.box, OPTIONS, by_term=False)
    chosen = chosen_platform(DynamicsSection(platform=platform, platform_precision="single"), threads=1)
    _, force = forces(together, chosen, system.position)
    assert relative_rms(force, expected) < 1e-4


@needs_opencl
def test_what_openmm_prints_is_no_result(systems, capfd):
    """It warns of an OpenCL for processors on standard output, where a command writes JSON."""
    system = systems["water"]
    together = system_from_topology(system.topology, system.box, OPTIONS, by_term=False)
    forces(together, ChosenPlatform("OpenCL", {"Precision": "single"}), system.position)
    assert capfd.readouterr().out == ""


@needs_opencl
def test_the_locale_stays(systems):
    """Files in UTF-8 are read after a simulation as before."""
    system = systems["water"]
    before = locale.setlocale(locale.LC_ALL)
    together = system_from_topology(system.topology, system.box, OPTIONS, by_term=False)
    forces(together, ChosenPlatform("OpenCL", {"Precision": "single"}), system.position)
    assert locale.setlocale(locale.LC_ALL) == before


def test_auto_takes_the_fastest_that_works():
    """GPUs that are not there are passed over; Reference, which is in every installation, never comes first."""
    assert AUTOMATIC in platform_names() and AUTOMATIC != "Reference"
    if "CUDA" not in platform_names() and "HIP" not in platform_names():
        assert AUTOMATIC in ("OpenCL", "CPU")


def test_a_platform_that_is_not_here_is_refused():
    absent = next(name for name in ("CUDA", "HIP") if name not in platform_names())
    with pytest.raises(BadInputError, match=rf"{absent}, and OpenMM has .*: pip install 'chromabuild\[.*, or set it"):
        chosen_platform(DynamicsSection(platform=absent))


@needs_opencl
def test_a_device_that_is_not_here_is_refused(systems):
    system = systems["water"]
    together = system_from_topology(system.topology, system.box, OPTIONS, by_term=False)
    chosen = chosen_platform(DynamicsSection(platform="OpenCL", devices="7", platform_precision="single"))
    with pytest.raises(BadInputError, match="OpenMM cannot use .* change dynamics.devices"):
        forces(together, chosen, system.position)
