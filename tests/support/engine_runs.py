"""Runs of chromamd in a folder that several test files need."""

from pathlib import Path

from chromabuild.simulate import chromamd
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.openmm_engine import NonbondedOptions
from support.engine_energies import energy_section, write_input
from support.molecular_systems import MolecularSystem

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(32, 32, 36))


def start(system: MolecularSystem, folder: Path, ranks: int) -> dict[str, object]:
    """Restart files of the given coordinates; returns the [INPUT] entries of a run."""
    chromamd.write_control(folder / "setup.inp", {
        "INPUT": write_input(system, folder), "ENERGY": energy_section(OPTIONS),
        "OUTPUT": {"rstfile": folder / "start_().rst"},
    })
    chromamd.launch("setup", folder / "setup.inp", ranks)
    return {"topologyfile": folder / "topology.h5", "rstfile": folder / "start_().rst"}


def simulate(folder: Path, name: str, ranks: int, precision: chromamd.Precision, entries: dict[str, object],
             steps: int, period: int, options: NonbondedOptions = OPTIONS, constraints: dict[str, object] | None = None,
             **dynamics: object) -> EnergyLog:
    """NVE with rigid X-H bonds and waters, 2 fs."""
    control = folder / f"{name}.inp"
    chromamd.write_control(control, {
        "INPUT": entries,
        "OUTPUT": {"logfile": control.with_suffix(".log"), "rstfile": folder / f"{name}_().rst"},
        "ENERGY": energy_section(options),
        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": period, **{"iseed": 11, **dynamics}},
        "CONSTRAINTS": {"rigid_bond": True, **(constraints or {})},
        "ENSEMBLE": {"ensemble": "NVE", "temperature": 300},
    })
    chromamd.launch("run", control, ranks, precision)
    return EnergyLog.read(control.with_suffix(".log"))
