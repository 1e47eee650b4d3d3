"""Histidines by their pKa: what is built at a pH, and the values of PROPKA where it is installed."""

import sys

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection
from chromabuild.build.octamers import protonation_report
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.nucleosome import recipe as recipes
from chromabuild.nucleosome.homology import chains_of, octamer_of
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.protonation import HISTIDINES, pka_values, protonate, unusual
from chromabuild.nucleosome.recipe import OctamerRecipe, build_octamer
from chromabuild.solvate.ions import formal_charges

NOWHERE = np.zeros((0, 3)), np.zeros(0, dtype=bool)
CRYSTAL = {("H3", 39): (6.20, 6.35), ("H3", 113): (6.40, 5.99), ("H4", 18): (6.24, 6.28), ("H4", 75): (5.88, 5.93),
           ("H2A", 31): (4.83, 5.08), ("H2A", 82): (4.63, 4.73), ("H2B", 46): (6.60, 6.62), ("H2B", 79): (5.43, 4.97),
           ("H2B", 106): (6.62, 6.68)}
"""pKa of both copies that the program propka3 3.5.1 gives for the ATOM records of the histones in the file of 1KX5."""


def histidines(core) -> list[str]:
    names = [residue_library()[residue_names()[k]].inner_name for k in core.residue_template]
    return [name for name in names if name in HISTIDINES]


def test_histidines_above_the_ph_are_charged():
    """One more proton each, one more charge, a hydrogen on either nitrogen; a tie is neutral."""
    core = octamer("crystal")
    chains = chains_of(core)
    pkas = {(0, 39): ("HIS", 7.6), (1, 18): ("HIS", 7.5), (2, 31): ("HIS", 7.51), (2, 90): ("ASP", 9.0)}
    protonate(chains, pkas, 7.5)
    changed = octamer_of(chains, core.chain, core.histone)
    charge = formal_charges()
    assert charge[changed.residue_template].sum() == charge[core.residue_template].sum() + 2
    assert histidines(changed).count("HIP") == histidines(core).count("HIP") + 2
    assert len(changed.position) == len(core.position) + 2
    k = next(k for k, kind in enumerate(changed.residue_template) if residue_names()[kind] == "HIP")
    index, atoms = residue_library()["HIP"].index, changed.position[changed.first_atom[k]:changed.first_atom[k + 1]]
    for nitrogen, hydrogen in (("ND1", "HD1"), ("NE2", "HE2")):
        assert np.linalg.norm(atoms[index[nitrogen]] - atoms[index[hydrogen]]) == pytest.approx(1.01, abs=0.01)
    protonate(chains, {(0, 39): ("HIS", 6.0)}, 7.5)
    assert next(one for one in chains[0] if one.number == 39).name == "HIE"


def test_other_unusual_side_chains_are_named():
    pkas = {(0, 50): ("GLU", 7.9), (1, 16): ("LYS", 7.2), (2, 36): ("LYS", 9.9), (3, 40): ("TYR", 7.0),
            (0, 81): ("ASP", 3.9)}
    assert unusual(pkas, 7.4, ("H3", "H4", "H2A", "H2B")) == [
        "H3 Glu50 (pKa 7.9)", "H4 Lys16 (pKa 7.2)", "H2B Tyr40 (pKa 7.0)"]


def test_without_propka_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "propka.run", None)
    recipe, = octamer_recipes(BuildSection(ph=6.05), "chrI", np.array([500]))
    with pytest.raises(BadInputError, match="build.ph needs the package propka: install it .*, or leave"):
        build_octamer(recipe, *NOWHERE)
    assert protonation_report([OctamerRecipe()]) == {}


def test_the_report_counts_charged_histidines(monkeypatch):
    """Of every nucleosome, with what is left as it is; values of another source than PROPKA's stand in for it."""
    def values(chains):
        return {(k, one.number): ("HIS", 7.0) if one.name in HISTIDINES else ("GLU", 6.6 if k == 0 else 4.0)
                for k, chain in enumerate(chains) for one in chain if one.name in (*HISTIDINES, "GLU")
                and (one.name != "GLU" or one.number == 50)}

    monkeypatch.setattr(recipes, "pka_values", values)
    found = protonation_report([OctamerRecipe(ph=6.5)] * 2)["protonation"]
    assert found == {"ph": 6.5, "charged_histidines": 2 * 18, "as_usual_in_spite_of_pka": ["H3 Glu50 (pKa 6.6)"]}


@pytest.mark.release
def test_values_are_those_of_the_program():
    """Of the crystal's own atoms, rounded to 0.001 angstrom and without a terminal oxygen."""
    core = octamer("crystal")
    pkas = pka_values(chains_of(core))
    for (family, number), values in CRYSTAL.items():
        ours = [pkas[k, number][1] for k, name in enumerate(core.histone) if name == family]
        assert ours == pytest.approx(values, abs=0.3)
    acid = build_octamer(OctamerRecipe(tails="crystal", ph=6.1), *NOWHERE)
    assert histidines(acid).count("HIP") == sum(pka > 6.1 for kind, pka in pkas.values() if kind == "HIS") > 4
