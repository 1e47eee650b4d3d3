"""A small locus with everything that a viewer shows: scaffold, solute, a trajectory, contacts, marks."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.molecule.solute import Solute
from mesoscale.scaffold import Scaffold


@dataclass(frozen=True)
class Built:
    """An output folder, its settings, and what was written there."""

    settings: Settings
    scaffold: Scaffold
    solute: Solute
    folder: Path


def settings_of(folder, **build):
    return Settings.model_validate({"output": str(folder), "build": {"histones": "yeast", "tails": "compact", **build}})


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Two nucleosomes 120 bp apart, the second with H2A.Z and H3:K56Q, one contact, one moved and one dropped dyad."""
    from support.synthetic_scaffold import synthetic_scaffold

    folder = tmp_path_factory.mktemp("built")
    scaffold = synthetic_scaffold(2, 120, 12)
    scaffold.position = scaffold.position + 5000
    scaffold.chromosome = "chrS"
    first, second = (5000 + scaffold.dyad).tolist()
    scaffold.contacts = [{"first": [10, 40], "second": [300, 340], "weight": 3.0}]
    scaffold.shifts = [{"nucleosome": "n2", "from": second - 9, "to": second, "reason": "too close"},
                       {"nucleosome": "n3", "from": second + 40, "to": None, "reason": "too close"}]
    scaffold.write(folder / "scaffold.h5")
    marks = folder / "marks.bed"
    marks.write_text(f"chrS\t{second}\t{second + 1}\tH2A.Z\nchrS\t{second}\t{second + 1}\tH3:K56Q\n")
    settings = settings_of(folder, marks=str(marks))
    solute = build_solute(scaffold, settings)
    solute.write(folder / "solute.h5")
    return Built(settings, Scaffold.read(folder / "scaffold.h5"), Solute.read(folder / "solute.h5"), folder)
