"""Charges of the cores of other histones: their atoms, agreement with an independent fit, cache, and what stands in."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from chromabuild.api import with_core_charges
from chromabuild.base.settings import Settings
from chromabuild.build import surface_charges
from chromabuild.build.surface_charges import core_atoms, core_charges_of, core_recipe, electrostatics
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.nucleosome.tail_charges import tail_charge_changes
from mesoscale.core_charges import bundled_charges, bundled_cores, core_sites, tail_charge_scale, template
from mesoscale.disco import MissingProgramError, SurfaceCharges, debye_hueckel_field
from mesoscale.fibre import Fibre
from mesoscale.folding import fold
from mesoscale.model import Parameters, build_chain

PDB2PQR = json.loads(Path(__file__).with_name("core_charges_pdb2pqr.json").read_text())
SALT = 0.15
KIND = {"K": 1, "R": 1, "D": -1, "E": -1}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No program, and a cache of the test's own."""
    def missing() -> str:
        raise MissingProgramError("the program apbs is not on the PATH: install it")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(surface_charges, "apbs_version", missing)
    return tmp_path


def test_every_residue_has_charges_and_radii_of_a_force_field():
    """Whole charges inside a chain; a strand's two ends together lack one phosphate."""
    library = residue_library()
    for name, entry in electrostatics().items():
        assert len(entry["charge"]) == len(entry["radius"]) == len(library[name].atoms)
        total = sum(entry["charge"])
        if library[name].kind == "amino acid":
            assert total == pytest.approx(round(total), abs=2e-3), name
    inside = {name: round(sum(electrostatics()[name]["charge"])) for name in ("LYS", "GLU", "HID", "ALY", "SEP", "DC")}
    assert inside == {"LYS": 1, "GLU": -1, "HID": 0, "ALY": 0, "SEP": -2, "DC": -1}
    assert all(round(sum(electrostatics()[name]["charge"])) == change.charge - change.begins_chain * 0
               for name, change in modifications().items())
    assert sum(sum(electrostatics()[end]["charge"]) for end in ("DA5", "DT3")) == pytest.approx(-1, abs=1e-3)


def test_atoms_of_a_core_and_beads_of_its_tails_are_the_whole_particle():
    """146 phosphates a strand; PDB2PQR's core has eight amino and two carboxyl ends more, where tails are cut off."""
    atoms = core_atoms(core_recipe(OctamerRecipe()))
    assert atoms.charge.sum() == pytest.approx(-234, abs=0.01) == PDB2PQR["atomic_charge"] - 6
    names = [entry.name for entry in residue_library().values()]
    whole = sum(sum(electrostatics()[names[k]]["charge"]) for k in octamer().residue_template) - 2 * 146
    tails = sum(sum(tail["charge"]) for tail in template("tail_beads_1kx5.json")["tails"])
    # The published beads of H2B begin at residue 1; the octamer has three more residues, PEP, of charge -1.
    assert atoms.charge.sum() + tails - 2 == pytest.approx(whole, abs=0.02)
    for name in ("yeast Cse4", "fly", "human CENP-A"):
        species, *variants = name.split()
        mine = core_atoms(core_recipe(OctamerRecipe(species, variants=tuple(variants))))
        assert round(float(mine.charge.sum())) == bundled_charges(name, SALT)[1], name


def test_bundled_charges_of_1kx5_agree_with_those_of_another_program():
    """PDB2PQR's hydrogens, the crystal's own DNA instead of ACGT, and charged ends of cut tails; the two fits are off
    by 6 % each. Their fields, and the energies of two cores face to face, differ by no more."""
    parameters, site = Parameters(salt=SALT), core_sites()
    ours, theirs = bundled_charges("xenopus", SALT)[0], np.array(PDB2PQR["charge"])
    assert ours.sum() == pytest.approx(theirs.sum(), rel=0.03)
    random = np.random.Generator(np.random.Philox(key=3))
    points = random.uniform(site.min(axis=0) - 2.5, site.max(axis=0) + 2.5, (6000, 3))
    nearest = cdist(points, site).min(axis=1)
    points = points[(nearest > 1.0) & (nearest < 2.5) & (np.linalg.norm(points, axis=1) > 5.5)]
    field = [debye_hueckel_field(site, points, parameters.bjerrum_length, parameters.kappa) @ q for q in (ours, theirs)]
    apart = np.linalg.norm(field[0] - field[1], axis=1) / np.linalg.norm(field[1], axis=1)
    assert len(points) > 1000 and apart.mean() < np.hypot(0.0623, 0.06)
    for distance in (7.0, 8.0, 10.0):
        r = cdist(site, site + [0.0, 0.0, distance])
        potential = parameters.bjerrum_length * np.exp(-parameters.kappa * r) / r
        assert ours @ potential @ ours == pytest.approx(theirs @ potential @ theirs, rel=0.1), distance


def test_cores_differ_as_their_charges_do():
    """Fitted charges of all cores are to those of their atoms as in 1KX5, within the error of the fits; screening
    leaves less of them at low salt, where counterions gather."""
    of_atoms, fitted = np.array([(one[1], one[0].sum()) for one in (bundled_charges(name, SALT)
                                                                   for name in bundled_cores())]).T
    usual = bundled_charges("xenopus", SALT)
    assert np.abs(fitted / of_atoms / (usual[0].sum() / usual[1]) - 1).max() < 0.06
    assert bundled_charges("yeast Cse4", SALT)[0].sum() < bundled_charges("yeast", SALT)[0].sum() - 2.0
    assert bundled_charges("human CENP-A", SALT)[0].sum() > bundled_charges("human", SALT)[0].sum() + 0.5
    for name in bundled_cores():
        assert np.all(np.diff([bundled_charges(name, salt)[0].sum() for salt in (0.01, 0.05, 0.15)]) < 0), name


def test_only_what_lies_in_the_fold_makes_another_core():
    marked = OctamerRecipe().with_mark("H3K27ac").with_mark("H3K56ac").with_mark("H4K16ac").with_mark("H4K91ac@2")
    core = core_recipe(replace(marked, linker_histone="H5", missing="entry", mutations=("H3:K4A", "H4:K79Q")))
    assert core == OctamerRecipe(modifications=("H3K56ac", "H4K91ac@2"), mutations=("H4:K79Q",))
    assert core_recipe(OctamerRecipe("human", variants=("H2A.Z",)).with_mark("H3K9me3")) == OctamerRecipe(
        "human", variants=("H2A.Z",))
    plain, acetylated = (core_atoms(core_recipe(recipe)) for recipe in (OctamerRecipe(), marked))
    assert acetylated.charge.sum() - plain.charge.sum() == pytest.approx(-3, abs=0.01)


def test_tails_have_the_charges_of_their_sequence():
    """Beads of H2B end with DGKK, which both sequences have; the amine of the chain counts. H3K4 and H2AK5 lie in the
    last bead of H3 and of H2A."""
    change = np.array(tail_charge_changes([OctamerRecipe("yeast"), OctamerRecipe(mutations=("H3:K4A", "H2A:K5E"))]))
    tails = template("tail_beads_1kx5.json")["tails"]
    first = np.concatenate([[0], np.cumsum([len(tail["charge"]) for tail in tails])])
    h2b = next(k for k, tail in enumerate(tails) if tail["tail"] == "H2B")
    table = json.loads((Path(__file__).parents[2] / "templates" / "histones.json").read_text())
    yeast, frog = table["yeast"]["H2B"]["sequence"], "PEPAKSAPAPKKGSKKAVTKTQKKDGKKRRKTRK"  # 1KX5 from -2 on
    formal, ours = (sum(KIND.get(letter, 0) for letter in one[:one.index("DGKK") + 4]) for one in (yeast, frog))
    assert change[0, first[h2b]:first[h2b + 1]].sum() == formal - ours
    mutated = {int(k): change[1, k] for k in np.flatnonzero(change[1])}
    assert mutated == {7: -1.0, 15: -1.0, first[4] + 3: -2.0, first[5] + 3: -2.0}


def test_without_the_program_the_nearest_core_stands_in(alone):
    told = []
    found = core_charges_of(OctamerRecipe("human", variants=("H2A.Z",)).with_mark("H3K56ac"), SALT, told.append)
    assert found.source == "those of human H2A.Z" and found.charge == tuple(
        bundled_charges("human H2A.Z", SALT)[0].tolist())
    assert len(told) == 1 and "human histones, H2A.Z, H3K56ac are not fitted" in told[0] and "install it" in told[0]
    assert core_charges_of(OctamerRecipe("human", variants=("H3.3",)), SALT).source == "those of human"
    assert core_charges_of(OctamerRecipe("mouse").with_mark("H3K27ac"), SALT, told.append).source == "bundled"
    with pytest.raises(ValueError, match="from 10 to 200 mmol/L"):
        core_charges_of(OctamerRecipe().with_mark("H3K56ac"), 0.5)


def test_fits_are_kept_by_content(alone, monkeypatch):
    """Only the solver is replaced; what it is given decides."""
    asked = []

    def optimise(atoms, salts, sites):
        asked.append((float(atoms.charge.sum()), *salts))
        return [SurfaceCharges(sites, np.full(300, atoms.charge.sum() / 300), 0.05, 0.2, 1e-5)]

    monkeypatch.setattr(surface_charges, "apbs_version", lambda: "APBS 3.4.1")
    monkeypatch.setattr(surface_charges, "optimise", optimise)
    recipe = OctamerRecipe().with_mark("H3K56ac")
    first = core_charges_of(recipe, SALT)
    assert first.atomic_charge == -236 and first.source == "fitted, APBS 3.4.1" and len(asked) == 1
    monkeypatch.setattr(surface_charges, "apbs_version", lambda: pytest.fail("the program is asked for nothing"))
    assert core_charges_of(recipe.with_mark("H3K9ac"), SALT) == first and len(asked) == 1  # a mark on a tail
    monkeypatch.setattr(surface_charges, "apbs_version", lambda: "APBS 3.4.1")
    core_charges_of(recipe, 0.1)
    assert [salt for _, salt in asked] == [SALT, 0.1]
    kept = sorted((alone / "chromabuild" / "core_charges").iterdir())
    assert len(kept) == 2
    for path in kept:
        path.write_text("{")  # what cannot be read is made anew
    assert core_charges_of(recipe, SALT) == first and len(asked) == 3


def test_a_fibre_folds_with_the_charges_of_its_own_cores(alone, tmp_path):
    (tmp_path / "marks.bed").write_text("chrI\t200\t320\tH2A.Z\nchrI\t200\t320\tH3K27ac\n")
    fibre = Fibre("ACGTTGCA" * 68, (95, 262, 440), chromosome="chrI")
    settings = Settings.model_validate({"build": {"histones": "human", "marks": str(tmp_path / "marks.bed")}})
    own, told = with_core_charges(fibre, settings)
    assert [(one["histones"], one["marks"], one["nucleosomes"], one["source"]) for one in told] == [
        ("human", "none", 2, "bundled"), ("human", "H2A.Z", 1, "bundled")]
    assert with_core_charges(fibre, Settings())[0] == fibre  # 1KX5's own
    own = replace(own, tail_charge=((0.0,) * 50, (0.0, 0.0, -1.0) + (0.0,) * 47, (0.0,) * 50))
    chain = build_chain(own, Parameters(salt=SALT))
    assert chain.forms.tolist() == [0, 1, 0] and own.key != fibre.key
    for shape, name, change in zip(chain.shapes, ("human", "human H2A.Z"), (0, -1), strict=True):
        assert np.array_equal(shape.site_charge[:300], bundled_charges(name, SALT)[0])
        assert shape.site_charge[300:].sum() == pytest.approx(tail_charge_scale(SALT) * (90 + change))
    # Flexible tails: cores alone, which begin with formal charges and one shape; of the same fibre, other energies.
    parameters = Parameters(tails="flexible", salt=SALT, confinement_radius=40.0)
    one, other = (fold(each, parameters, sweeps=2, seed=1, threads=1) for each in (own, fibre))
    assert not np.array_equal(one.origin, other.origin)
