"""Spheres that hold a droplet together ([BOUNDARY] spherical_pot): against OpenMM, differences, and what stays."""

from dataclasses import replace

import numpy as np
import openmm
import pytest
from support import systems as written
from support.engine_energies import write_input

from chromabuild.base.errors import BadInputError
from chromabuild.simulate import chromamd

pytestmark = pytest.mark.mpi
CUTOFF = {"electrostatic": "CUTOFF", "switchdist": 9.0, "cutoffdist": 9.0, "pairlistdist": 10.5}
KCAL, ANGSTROM = 4.184, 0.1  # kJ, nm
GIVEN = {"nfunctions": 2, "center1": "28.0, 30.0, 31.0", "radius1": 9.0, "center2": "33 29.5 30", "radius2": 8.0}
BY_ATOMS = {"nindex": 2, "center_select_index1": 1, "radius1": 9.0, "center_select_index2": 2, "radius2": 7.5}
CENTRES = {"group1": "ai:5-6", "group2": "ai:10"}
NO = {"fixatom": "NO"}


@pytest.fixture(scope="module")
def droplet(systems):
    """The peptide, its ions and the water within 11 angstrom of its middle, in a box twice as wide."""
    whole = systems["peptide"]
    return replace(whole, position=whole.position + 15.0, box=np.full(3, 60.0))


def control(folder, name: str, entries: dict, boundary: dict, **sections: dict):
    path = folder / f"{name}.inp"
    chromamd.write_control(path, {"INPUT": entries, "ENERGY": CUTOFF, "SELECTION": CENTRES, **sections,
                                  "BOUNDARY": {"type": "NOBC", "spherical_pot": "YES", **boundary}})
    return path


def judge(position: np.ndarray, spheres: list, constant: float, exponent: int) -> tuple[float, np.ndarray]:
    """OpenMM's energy (kcal/mol) and forces of an expression; positions and spheres (x, y, z, radius) in angstrom."""
    excess = [f"sqrt((x-{x * ANGSTROM!r})^2+(y-{y * ANGSTROM!r})^2+(z-{z * ANGSTROM!r})^2)-{r * ANGSTROM!r}"
              for x, y, z, r in np.array(spheres).tolist()]
    least = excess[0]
    for more in excess[1:]:
        least = f"min({least},{more})"
    force = openmm.CustomExternalForce(f"{constant * KCAL / ANGSTROM**exponent!r}*max(0,{least})^{exponent}")
    system = openmm.System()
    for i in range(len(position)):
        system.addParticle(1.0)
        force.addParticle(i, [])
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position * ANGSTROM)
    state = context.getState(getEnergy=True, getForces=True)
    return (state.getPotentialEnergy()._value / KCAL,
            np.array(state.getForces(asNumpy=True)._value) / KCAL * ANGSTROM)


def spheres_of(droplet, keys: dict) -> list:
    """Centres and radii that the keys mean."""
    if "nfunctions" in keys:
        return [[*map(float, keys[f"center{k}"].replace(",", " ").split()), keys[f"radius{k}"]] for k in (1, 2)]
    return [[*droplet.position[i].round(3), radius] for i, radius in ((4, 9.0), (5, 9.0), (9, 7.5))]


@pytest.mark.parametrize(("keys", "constant", "exponent", "ranks"), [
    (GIVEN, 10.0, 2, 1), (BY_ATOMS, 10.0, 2, 2), (GIVEN, 0.7, 3, 2), (BY_ATOMS, 3.0, 4, 1)])
def test_against_openmm(droplet, tmp_path, keys, constant, exponent, ranks):
    entries = write_input(droplet, tmp_path)
    results = []
    for on in ("NO", "YES"):
        path = control(tmp_path, "e", entries, {**keys, "constant": constant, "exponent": exponent,
                                                "spherical_pot": on}, OUTPUT={"forcefile": tmp_path / "f"})
        chromamd.launch("energy", path, ranks, "double")
        results.append((chromamd.read_energies(path)["RESTRAINT_TOTAL"], chromamd.read_forces(tmp_path / "f")))
    # Bricks hold thousandths of an angstrom.
    energy, force = judge(droplet.position.round(3), spheres_of(droplet, keys), constant, exponent)
    assert energy > 1 and results[0][0] == 0
    assert results[1][0] == pytest.approx(energy, rel=1e-6)
    ours = results[1][1] - results[0][1]
    assert np.abs(ours - force).max() < 1e-6 * np.abs(force).max()


def test_forces_are_the_slope_of_the_energy(droplet, tmp_path):
    """Central differences over 0.004 angstrom of an atom outside; a cubic potential errs by k (0.002)^2."""
    entries = write_input(droplet, tmp_path)
    keys = {**GIVEN, "constant": 2.0, "exponent": 3, "spherical_pot": "YES"}
    path = control(tmp_path, "e", entries, keys, OUTPUT={"forcefile": tmp_path / "f"})
    chromamd.launch("energy", path, 1, "double")
    with_it = chromamd.read_forces(tmp_path / "f")
    path = control(tmp_path, "e", entries, {**keys, "spherical_pot": "NO"}, OUTPUT={"forcefile": tmp_path / "f"})
    chromamd.launch("energy", path, 1, "double")
    force = with_it - chromamd.read_forces(tmp_path / "f")
    atom = int(np.linalg.norm(force, axis=1).argmax())
    for axis in range(3):
        energy = []
        for step in (-0.002, 0.002):
            moved = droplet.position.round(3)
            moved[atom, axis] += step
            (tmp_path / "m").mkdir(exist_ok=True)
            path = control(tmp_path, "m", write_input(replace(droplet, position=moved), tmp_path / "m"), keys)
            chromamd.launch("energy", path, 1, "double")
            energy.append(chromamd.read_energies(path)["RESTRAINT_TOTAL"])
        assert (energy[0] - energy[1]) / 0.004 == pytest.approx(force[atom, axis], abs=1e-5 + 3 * 2.0 * 0.002**2)


def start(droplet, folder, ranks: int = 1) -> dict:
    entries = write_input(droplet, folder)
    path = folder / f"setup{ranks}.inp"
    chromamd.write_control(path, {"INPUT": entries, "ENERGY": CUTOFF, "BOUNDARY": {"type": "NOBC"},
                                  "OUTPUT": {"rstfile": folder / f"start{ranks}_().rst"}})
    chromamd.launch("setup", path, ranks)
    return {"topologyfile": entries["topologyfile"], "shardfile": entries["shardfile"],
            "rstfile": folder / f"start{ranks}_().rst"}


@pytest.mark.parametrize("ranks", [1, 2])
def test_atoms_near_the_surface_are_fixed(droplet, tmp_path, ranks):
    entries = start(droplet, tmp_path, ranks)
    path = control(tmp_path, "min", entries, {"nindex": 1, "center_select_index1": 2, "radius1": 10.0,
                                              "fix_layer": 1.5},
                   OUTPUT={"rstfile": tmp_path / "min_().rst", "logfile": tmp_path / "min.log"},
                   MINIMIZE={"nsteps": 20})
    chromamd.launch("run", path, ranks, "double")
    fixed = np.linalg.norm(droplet.position.round(3) - droplet.position[9].round(3), axis=1) > 8.5
    before, after = (written.read_restarts(str(tmp_path / f"{name}_().rst"), ranks).position
                     for name in (f"start{ranks}", "min"))
    assert 0 < fixed.sum() < len(fixed)
    moved = np.linalg.norm(after - before, axis=1)
    assert not moved[fixed].any() and moved[~fixed].min() > 0
    assert f"{fixed.sum()} atoms are fixed" in (tmp_path / "min.log").read_text()


def test_dynamics_keeps_the_energy_and_its_bits(droplet, tmp_path):
    """The work of the spheres is that of their potential: velocity Verlet errs by a small share of the kinetic energy,
    while the potential of the spheres changes by more. One rank and two have the same bits in deterministic mode."""
    ends = []
    for ranks in (1, 2):
        entries = start(droplet, tmp_path, ranks)
        keys = {"nindex": 1, "center_select_index1": 2, "radius1": 9.0, "constant": 1.0, **NO}
        energy = CUTOFF | {"deterministic": "YES"}
        for name, section in (("min", {"MINIMIZE": {"nsteps": 50}}),
                              ("run", {"DYNAMICS": {"nsteps": 100, "timestep": 0.0005, "eneout_period": 5},
                                       "ENSEMBLE": {"temperature": 300}})):
            path = control(tmp_path, f"{name}{ranks}", entries, keys, **section,
                           OUTPUT={"rstfile": tmp_path / f"{name}{ranks}_().rst",
                                   "logfile": tmp_path / f"{name}{ranks}.log"}, ENERGY=energy)
            chromamd.launch("run", path, ranks, "double")
            entries = {**entries, "rstfile": tmp_path / f"{name}{ranks}_().rst"}
        ends.append(written.read_restarts(str(entries["rstfile"]), ranks))
    table = written.read_table((tmp_path / "run1.log").read_text())
    drift = np.abs(table["TOTAL_ENE"] - table["TOTAL_ENE"][0]).max()
    assert drift < 5e-3 * table["KINETIC_ENE"].mean()
    assert np.ptp(table["RESTRAINT_TOTAL"]) > 2 * drift
    assert np.array_equal(ends[0].position, ends[1].position)
    assert np.array_equal(ends[0].velocity, ends[1].velocity)


@pytest.mark.parametrize(("boundary", "words"), [
    ({"type": "PBC", **GIVEN}, "give type = NOBC"),
    ({}, "needs either nindex"),
    ({**GIVEN, **BY_ATOMS}, "needs either nindex"),
    ({"nfunctions": 1, "center1": "1 2 3"}, "radius1 in [BOUNDARY] must be given"),
    ({"nfunctions": 1, "center1": "1 2", "radius1": 5}, "center1 = 1 2 must be x, y and z"),
    ({"nindex": 1, "radius1": 5}, "center_select_index1 in [BOUNDARY] is missing"),
    ({"nindex": 1, "center_select_index1": 7, "radius1": 5}, "group7 in [SELECTION] is missing"),
    ({"nfunctions": 1, "center1": "900 2 3", "radius1": 5}, "leaves no atom that moves"),
])
def test_what_cannot_be_is_refused(droplet, tmp_path, boundary, words):
    path = control(tmp_path, "r", start(droplet, tmp_path), boundary, MINIMIZE={"nsteps": 1})
    with pytest.raises(BadInputError) as caught:
        chromamd.launch("run", path, 1, "double")
    assert words in str(caught.value)
