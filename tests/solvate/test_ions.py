"""Charges against the AMBER force field in OpenMM; the choice of slots against its definition."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openmm.app
import pytest
from scipy.spatial.distance import pdist
from support.solvated_example import SOLUTE

from chromabuild.api import add_solvent
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import ions
from chromabuild.solvate.ions import (
    SPECIES,
    check_room_for_ions,
    choose_slots,
    debye_length,
    formal_charges,
    ion_counts,
    potential,
    slot_priorities,
)


def amber_charges():
    folder = Path(openmm.app.__file__).parent / "data" / "amber14"
    charges = {}
    for name in ("protein.ff14SB.xml", "DNA.OL15.xml", "tip3p.xml"):
        root = ElementTree.parse(folder / name).getroot()
        for residue in root.find("Residues"):
            atoms = [atom.get("charge") for atom in residue.findall("Atom")]
            if None not in atoms:
                charges[residue.get("name")] = sum(map(float, atoms))
    return charges


def test_formal_charges_are_ambers():
    """Residue by residue; strands end to end, since AMBER spreads a fraction over the two terminal nucleotides."""
    amber, ours = amber_charges(), dict(zip(residue_names(), formal_charges(), strict=True))
    compared = 0
    for name, template in residue_library().items():
        if name in amber and not (template.kind == "nucleotide" and name[-1] in "53"):
            assert ours[name] == pytest.approx(amber[name], abs=1e-4), name
            compared += 1
    assert compared > 60
    for base in ("DA", "DC", "DG", "DT"):
        strand = amber[f"{base}5"] + amber[base] + amber[f"{base}3"]
        assert ours[f"{base}5"] + ours[base] + ours[f"{base}3"] == pytest.approx(strand, abs=1e-4)


@pytest.mark.parametrize(("charge", "settings", "expected"), [
    (-144, {}, (243, 0, 0, 99)), (20, {}, (99, 0, 0, 119)), (0, {"salt": 0.0}, (0, 0, 0, 0)),
    (-5, {"salt": 0.0}, (5, 0, 0, 0)),
    (-144, {"salt": 0.0, "potassium_chloride": 0.15, "counterion": "potassium"}, (0, 243, 0, 99)),
    (-144, {"potassium_chloride": 0.15, "magnesium_chloride": 0.015, "salt": 0.0}, (144, 99, 10, 119)),
    (-13, {"salt": 0.0, "counterion": "magnesium"}, (0, 0, 7, 1)),  # 14 charges: a chloride makes up for one
    (-14, {"salt": 0.0, "counterion": "magnesium"}, (0, 0, 7, 0)),
    (-13, {"salt": 0.0, "counterion": "calcium"}, (0, 0, 0, 1, 7)),
    (-144, {"calcium_chloride": 0.015}, (243, 0, 0, 119, 10)),
])
def test_counts(charge, settings, expected):
    """36,630 waters x 0.15 / 55.5 = 99 formula units."""
    counts = ion_counts(charge, 36_630, SolvateSection(**settings))
    assert tuple(counts.values()) == expected
    assert charge + sum(SPECIES[key].charge * n for key, n in counts.items()) == 0
    assert list(counts) == list(SPECIES)[:len(expected)] and list(SPECIES) == [
        "sodium", "potassium", "magnesium", "chloride", "calcium"]


def test_priorities_belong_to_slots():
    whole = slot_priorities(7, 0, 1000)
    for first, count in ((0, 10), (3, 7), (501, 499), (998, 2)):
        assert np.array_equal(slot_priorities(7, first, count), whole[first:first + count])
    assert not np.array_equal(slot_priorities(8, 0, 1000), whole)
    assert len(np.unique(whole)) == 1000
    assert not np.array_equal(slot_priorities(7, 0, 1000, stream=1), whole)


@pytest.mark.parametrize("slab", [1 << 17, 50])
def test_choice_is_greedy_in_priority(slab, monkeypatch):
    """Against a plain loop over all candidates; a longer candidate list leaves the first choices alone."""
    monkeypatch.setattr(ions, "_CANDIDATES_A_SLAB", slab)
    rng = np.random.default_rng(3)
    box = np.array([40_000, 35_000, 30_000])
    position, priority = rng.integers(0, box, (600, 3)), rng.permutation(600).astype(np.uint64)
    taken = []
    for i in np.argsort(priority):
        d = position[taken] - position[i]
        if not taken or (np.linalg.norm(d - box * np.rint(d / box), axis=1) > 5000).all():
            taken.append(i)
    assert choose_slots(priority, position, box, 10**6).tolist() == taken
    early = np.flatnonzero(priority < 200)
    assert early[choose_slots(priority[early], position[early], box, 10**6)].tolist() == [
        i for i in taken if priority[i] < 200]
    assert pdist(position[choose_slots(priority, position, box, 20)]).min() > 5000
    free = choose_slots(priority, position, box, 10**6, occupied=position[taken[:20]])
    d = position[free][:, None] - position[taken[:20]]
    assert (np.linalg.norm(d - box * np.rint(d / box), axis=2) > 5000).all()


def test_debye_length_and_potential():
    """3.04 angstrom / sqrt(c) for a 1:1 salt in water at 25 degrees; the screened Coulomb law of two charges."""
    assert debye_length(SolvateSection(salt=0.1)) == pytest.approx(9613, rel=0.01)
    assert debye_length(SolvateSection(salt=0.0, magnesium_chloride=0.1)) == pytest.approx(
        debye_length(SolvateSection(salt=0.3)))
    box = np.array([100_000, 110_000, 120_000])
    site, charge = np.array([[1000, 50_000, 60_000], [50_000, 50_000, 60_000]]), np.array([-1, 2])
    point = np.array([[95_000, 50_000, 60_000]])  # 6 angstrom from the first through the face
    value = potential(point, site[:1], charge[:1], box, 8000.0)
    assert value == pytest.approx(-7130 / 6000 * np.exp(-6 / 8))
    both = potential(np.array([[20_000, 50_000, 60_000]]), site, charge, box, 8000.0)
    assert both == pytest.approx(-7130 / 19_000 * np.exp(-19 / 8) + 2 * 7130 / 30_000 * np.exp(-30 / 8))
    with pytest.raises(BadInputError, match="ion_placement=uniform"):
        potential(point, site, charge, np.full(3, 70_000), 8000.0)


def test_small_box_is_refused():
    with pytest.raises(BadInputError, match="too short for ions"):
        choose_slots(np.arange(3, dtype=np.uint64), np.zeros((3, 3)), np.full(3, 9000), 2)


@pytest.mark.parametrize("padding", [6.0, 15.0])
def test_room_for_ions_is_known_before_they_are_placed(tmp_path, padding):
    """As many as placing finds room for, within 5 %."""
    solute = Solute.read(SOLUTE)
    salts = {"salt": 6.0, "potassium_chloride": 6.0, "magnesium_chloride": 6.0}
    with pytest.raises(BadInputError, match="there is room for") as placed:
        add_solvent(solute, tmp_path, padding=padding, threads=1, **salts)
    found, wanted = map(int, re.search(r"for (\d+) ions .* (\d+) are needed", str(placed.value)).groups())
    volume = float(np.prod(np.ptp(solute.position, axis=0) + 2 * padding))
    with pytest.raises(BadInputError, match=f", {wanted} are needed: use a larger padding or box") as told:
        check_room_for_ions(volume, solute.n_atoms, {"water": 10**6, "sodium": wanted})
    assert int(re.search(r"about (\d+)", str(told.value))[1]) == pytest.approx(found, rel=0.05)
    check_room_for_ions(volume, solute.n_atoms, {"water": 10**6, "sodium": int(0.9 * found)})
