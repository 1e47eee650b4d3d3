"""Charges against the AMBER force field in OpenMM; the choice of slots against its definition."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openmm.app
import pytest
from scipy.spatial.distance import pdist

from chromabuild.errors import BadInputError
from chromabuild.residues import residue_library, residue_names
from chromabuild.solvate.ions import choose_slots, formal_charges, ion_counts, slot_priorities


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


@pytest.mark.parametrize(("charge", "salt", "expected"), [
    (-144, 0.15, (243, 99)), (20, 0.15, (99, 119)), (0, 0.0, (0, 0)), (-5, 0.0, (5, 0))])
def test_counts(charge, salt, expected):
    """36,630 waters x 0.15 / 55.5 = 99 pairs."""
    sodium, chloride = ion_counts(charge, 36_630, salt)
    assert (sodium, chloride) == expected
    assert charge + sodium - chloride == 0


def test_priorities_belong_to_slots():
    whole = slot_priorities(7, 0, 1000)
    for first, count in ((0, 10), (3, 7), (501, 499), (998, 2)):
        assert np.array_equal(slot_priorities(7, first, count), whole[first:first + count])
    assert not np.array_equal(slot_priorities(8, 0, 1000), whole)
    assert len(np.unique(whole)) == 1000


def test_choice_is_greedy_in_priority():
    """Against a plain loop over all candidates; a longer candidate list leaves the first choices alone."""
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


def test_small_box_is_refused():
    with pytest.raises(BadInputError, match="too short for ions"):
        choose_slots(np.arange(3, dtype=np.uint64), np.zeros((3, 3)), np.full(3, 9000), 2)
