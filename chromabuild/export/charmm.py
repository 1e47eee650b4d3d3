"""CHARMM's psf and parameter file of a system, for programs that read them: NAMD, GENESIS, OpenMM, CHARMM itself."""

from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.export.charmm_parameters import charmm_terms, parameter_text
from chromabuild.export.psf import MoleculeEntries, write_entries
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import masses_of_molecules
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.protocol import PlannedPhase

_FORMS = "14.9f", "14.6f"
"""Of charges and masses: as many digits as their columns hold."""


def is_charmm(topology: Topology) -> bool:
    """Whether a system is in a force field of CHARMM. Raises BadInputError where its atom types are not known."""
    own = FORCE_FIELDS.get(topology.force_field)
    if own is None or not own.is_charmm:
        return False
    if not all(len(template.atom_class) == template.n_atoms for template in topology.templates):
        raise BadInputError("topology.h5 is of an earlier version, without the atom types of CHARMM: run chromabuild "
                            "topology again")
    return True


def write_charmm(system: BuiltSystem, folder: Path, factor: float = 1.0, counted: bool = False) -> list[Path]:
    """Write ``system.psf``, ``system.prm`` and, where hydrogens are heavier by a factor, ``heavy.psf`` into ``folder``,
    which is made; gives their paths.

    ``counted``: residues are numbered through the whole system. Raises BadInputError for what such files cannot hold.
    """
    topology = system.topology
    for template in topology.templates:
        if len(template.virtual_site_atoms):
            raise BadInputError(f"{template.name} has a virtual site, which this export writes for force fields "
                                "of AMBER alone: export to gromacs or openmm")
    terms = [charmm_terms(template) for template in topology.templates]
    text = parameter_text(topology, terms)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / "system.prm") as part:
        part.write_text(text, encoding="ascii")
    masses = {"system": [template.mass for template in topology.templates]}
    if factor != 1:
        masses["heavy"] = masses_of_molecules(topology, factor)
    for name, mass in masses.items():
        entries = [MoleculeEntries([one.decode() for one in template.atom_class.tolist()], own, term.bonds,
                                   term.dihedrals, np.empty((0, 4), dtype=np.int64), _FORMS)
                   for template, own, term in zip(topology.templates, mass, terms, strict=True)]
        write_entries(topology, folder / f"{name}.psf", entries, system.solute, counted, empty_lists=True)
    return [folder / "system.prm", *(folder / f"{name}.psf" for name in masses)]


def psf_of(phase: PlannedPhase) -> str:
    """The file with the masses of a phase."""
    return "system.psf" if phase.hydrogen_mass_factor == 1 else "heavy.psf"
