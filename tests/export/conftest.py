"""Small systems of known ingredients."""

import numpy as np
import pytest
from support.molecular_systems import MolecularSystem, make_solute, solvated
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from mesoscale.scaffold import Scaffold


@pytest.fixture(scope="session")
def systems() -> dict[str, MolecularSystem]:
    """Water and salt, a peptide, a duplex: minimised a little."""
    return {"water": solvated(None, 25.0), "peptide": solvated("peptide", 30.0), "duplex": solvated("duplex", 36.0)}


@pytest.fixture(scope="session")
def scaffold() -> Scaffold:
    """Two nucleosomes; the locus begins at base pair 1,001 of chromosome IV."""
    made = synthetic_scaffold(2, 20, 10)
    made.chromosome, made.position = "chrIV", 1000 + np.arange(len(made.base), dtype=np.int64)
    return made


@pytest.fixture(scope="session")
def solute(scaffold: Scaffold) -> Solute:
    """All atoms of it."""
    return build_solute(scaffold, Settings())


@pytest.fixture(scope="session")
def mixed() -> BuiltSystem:
    """DNA, proteins, water and ions, somewhere."""
    solute = make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"], ["NALA", "HIE", "CVAL"]])
    topology = make_topology(solute, {"water": 5, "sodium": 2, "chloride": 1})
    generator = np.random.Generator(np.random.Philox(key=8))
    position = generator.uniform(0, 40, (topology.n_atoms, 3)).round(3)
    velocity = generator.normal(0, 4, position.shape)
    return BuiltSystem(topology, position, np.array([40.0, 42.0, 44.0]), velocity=velocity)
