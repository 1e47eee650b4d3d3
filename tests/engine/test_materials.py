"""Lennard-Jones crystals and embedded atoms against double precision, finite differences and LAMMPS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import embedded_atoms, lattices, systems

EV = lattices.ELECTRON_VOLT
LJ = lattices.ARGON
CELLS = (5, 4, 4)
CUTOFF = {"lj": 2.5 * LJ["sigma"], "eam": embedded_atoms.CUTOFF}
SKIN = {"lj": 0.3 * LJ["sigma"], "eam": 1.0}


def make_system(folder: Path, kind: str, jitter: float) -> tuple[np.ndarray, np.ndarray]:
    """Files of a perturbed crystal at rest; its positions and box."""
    constant = (4 / 0.8442) ** (1 / 3) * LJ["sigma"] if kind == "lj" else 3.615
    position, box = lattices.fcc(CELLS, constant)
    position += np.random.default_rng(5).normal(scale=jitter, size=position.shape)
    lattices.write_topology(folder / "t.h5", len(position), **(LJ if kind == "lj" else {"mass": 63.55}))
    lattices.write_restart(folder / "s0.rst", position, np.zeros_like(position), box)
    embedded_atoms.write_funcfl(folder / "cu.eam")
    return position, box


def energy_keys(kind: str, **more) -> dict:
    return {"forcefield": kind.upper(), "cutoffdist": CUTOFF[kind], "pairlistdist": CUTOFF[kind] + SKIN[kind]} | more


def inputs(kind: str, folder: Path, start: str = "s().rst") -> dict:
    files = {"topologyfile": folder / "t.h5", "rstfile": folder / start}
    return files | {"eamfile": folder / "cu.eam"} if kind == "eam" else files


def evaluate(folder: Path, kind: str, program: str = "chromamd-double", ranks: int = 1, threads: int = 1,
             start: str = "s().rst", comm: dict | None = None, files: dict | None = None) -> tuple[dict, np.ndarray]:
    """Energies (kcal/mol) and forces (n, 3; kcal/mol/angstrom) of a restart."""
    control = systems.control(folder / "e.inp", INPUT=files or inputs(kind, folder, start), ENERGY=energy_keys(kind),
                              OUTPUT={"forcefile": folder / "f.bin"}, COMM=comm or {"planner": "MODEL"})
    result = systems.run("energy", control, ranks=ranks, program=program, threads=threads)
    assert result.returncode == 0, result.stderr
    virial = next(line for line in result.stdout.splitlines() if line.startswith("VIRIAL")).split("=")[1].split()
    return systems.read_energies(result.stdout) | {"TRACE": sum(map(float, virial[::4]))}, \
        systems.read_forces(folder / "f.bin")


def reference(kind: str, position: np.ndarray, box: np.ndarray) -> tuple[float, np.ndarray, float]:
    if kind == "lj":
        return embedded_atoms.lennard_jones(position, box, LJ["sigma"], LJ["epsilon"], CUTOFF["lj"])
    energy, force, virial = embedded_atoms.energy_forces_virial(position, box)
    return EV * energy, EV * force, EV * virial


# Tables of 0.0025 angstrom: the fifth derivatives of the exponentials leave some 1e-8 of the force. The mixed program
# rounds to 6e-8 some ten times a pair.
@pytest.mark.parametrize(("kind", "program", "tolerance"), [
    ("lj", "chromamd-double", 1e-12), ("lj", "chromamd", 2e-6),
    ("eam", "chromamd-double", 1e-7), ("eam", "chromamd", 1e-5)])
def test_forces_energy_and_virial_against_double_precision(tmp_path, kind, program, tolerance):
    position, box = make_system(tmp_path, kind, jitter=0.15)
    energy, force, virial = reference(kind, position, box)
    found, ours = evaluate(tmp_path, kind, program)
    assert np.linalg.norm(ours - force) < tolerance * np.linalg.norm(force)
    assert found["POTENTIAL_ENE"] == pytest.approx(energy, rel=tolerance)
    # The virial is a small difference of large terms.
    assert abs(found["TRACE"] - virial) < tolerance * len(position) * np.abs(force).max() * CUTOFF[kind]


@pytest.mark.parametrize("kind", ["lj", "eam"])
def test_forces_are_the_slope_of_the_energy(tmp_path, kind):
    """Fourth-order differences along one direction of all coordinates."""
    position, box = make_system(tmp_path, kind, jitter=0.1)
    direction = np.random.default_rng(6).normal(size=position.shape)
    # So small that no pair crosses the cutoff, where the Lennard-Jones energy jumps.
    step = 1e-5
    energy = []
    for k in (-2, -1, 1, 2):
        lattices.write_restart(tmp_path / "s0.rst", position + k * step * direction, 0 * position, box)
        energy.append(evaluate(tmp_path, kind)[0]["POTENTIAL_ENE"])
    lattices.write_restart(tmp_path / "s0.rst", position, 0 * position, box)
    slope = (energy[0] - 8 * energy[1] + 8 * energy[2] - energy[3]) / (12 * step)
    force = evaluate(tmp_path, kind)[1]
    assert slope == pytest.approx(-(force * direction).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", [pytest.param("lj", marks=pytest.mark.release), "eam"])
def test_ranks_patterns_and_transports_give_the_same_forces(tmp_path, kind):
    make_system(tmp_path, kind, jitter=0.15)
    one = evaluate(tmp_path, kind)
    two_threads = evaluate(tmp_path, kind, threads=2)
    assert np.array_equal(one[1], two_threads[1])
    for ranks in (2, 3, 8):
        control = systems.control(tmp_path / "s.inp", INPUT=inputs("lj", tmp_path),
                                  ENERGY={"pairlistdist": CUTOFF[kind] + SKIN[kind], "cutoffdist": CUTOFF[kind],
                                          "switchdist": 0.0},
                                  OUTPUT={"rstfile": tmp_path / f"r{ranks}-().rst"})
        result = systems.run("setup", control, ranks=ranks)
        assert result.returncode == 0, result.stderr
        force = {}
        for pattern, transport in [("HALF", "PERSISTENT"), ("FULL", "NEIGHBOURHOOD"), ("HALF", "SHARED"),
                                   ("STAGED", "PERSISTENT")][:4 if ranks == 2 else 2]:
            found, force[pattern, transport] = evaluate(
                tmp_path, kind, ranks=ranks, start=f"r{ranks}-().rst",
                comm={"planner": "MODEL", "pattern": pattern, "transport": transport})
            assert found["POTENTIAL_ENE"] == pytest.approx(one[0]["POTENTIAL_ENE"], rel=1e-12)
            assert np.abs(force[pattern, transport] - one[1]).max() < 1e-11 * np.abs(one[1]).max()
        for key, value in force.items():
            if key[0] != "STAGED":
                assert np.array_equal(value, force["HALF", "PERSISTENT"])


LAMMPS = {
    "lj": [[-2167.4777770411, 689.04, -5.0234681700856], [-1819.3393629592, 338.37483149871, 0.5798194133129],
           [-1849.0811653719, 367.23115718742, 0.0023339486740945]],
    "eam": [[-1106.296410257, 65.974299277512, -8718.4729162012], [-1073.5144197876, 33.39115377395, 45924.563360755],
            [-1074.8851340062, 34.750870838281, 43602.30928339]]}
"""Potential energy, kinetic energy and pressure of LAMMPS (22 July 2025) at steps 0, 50 and 100 from the same start
and, for copper, the same funcfl file; reduced units, and eV and bar."""


# The log has four decimals, 1e-6 of the smallest of these numbers. LAMMPS' constants differ by some 1e-7 from those of
# today, and what differs grows along the way; reduced units need none. The mixed program starts 1e-6 off, in the
# pressure, a difference of terms some ten times as large, 1e-5.
@pytest.mark.parametrize(("kind", "program", "tolerance"), [
    ("lj", "chromamd-double", 1e-6), ("eam", "chromamd-double", 1e-5), ("lj", "chromamd", 1e-4),
    ("eam", "chromamd", 1e-4)])
def test_a_run_is_that_of_lammps(tmp_path, kind, program, tolerance):
    position, box = make_system(tmp_path, kind, jitter=0.0)
    mass, kt, timestep = (LJ["mass"], 1.44 * LJ["epsilon"], 0.005 * lattices.reduced_time(**LJ)) if kind == "lj" else \
        (63.55, 1600 * lattices.BOLTZMANN, 0.005)
    velocity = lattices.thermal_velocities(len(position), mass, kt, seed=11)
    lattices.write_restart(tmp_path / "s0.rst", position, velocity, box)
    control = systems.control(
        tmp_path / "r.inp", INPUT=inputs(kind, tmp_path), ENERGY=energy_keys(kind), COMM={"planner": "MODEL"},
        DYNAMICS={"nsteps": 100, "timestep": f"{timestep:.15g}", "eneout_period": 50, "stoptr_period": 0})
    result = systems.run("run", control, program=program)
    assert result.returncode == 0, result.stderr
    table = systems.read_table(result.stdout)
    energy, pressure = (LJ["epsilon"], LJ["epsilon"] / LJ["sigma"] ** 3 / lattices.ATMOSPHERE) if kind == "lj" else \
        (EV, 1 / 1.01325)
    expected = np.array(LAMMPS[kind]) * [energy, energy, pressure]
    # LAMMPS takes the pressure by the kinetic energy of whole steps.
    unseen = 4 / 9 * table["HALF_KICK_ENE"] / table["VOLUME"] / lattices.ATMOSPHERE
    found = np.array([table["POTENTIAL_ENE"], table["KINETIC_ENE"], table["PRESSURE"] - unseen]).T
    scale = np.abs(expected).max(axis=0)
    assert np.all(np.abs(found - expected) < tolerance * scale), (found - expected) / scale


def test_setfl_and_funcfl_mean_the_same(tmp_path):
    make_system(tmp_path, "eam", jitter=0.15)
    funcfl = evaluate(tmp_path, "eam")
    embedded_atoms.write_setfl(tmp_path / "cu.eam")
    setfl = evaluate(tmp_path, "eam")
    # Squared charges and products of distance and energy agree at the points of the tables.
    assert setfl[0]["POTENTIAL_ENE"] == pytest.approx(funcfl[0]["POTENTIAL_ENE"], rel=1e-12)
    assert np.abs(setfl[1] - funcfl[1]).max() < 1e-11 * np.abs(setfl[1]).max()


def test_an_element_of_an_alloy_file_is_chosen_by_name(tmp_path):
    make_system(tmp_path, "eam", jitter=0.15)
    alone = evaluate(tmp_path, "eam")
    embedded_atoms.write_setfl(tmp_path / "cu.eam", names=("Ni", "Cu"))
    control = systems.control(tmp_path / "e.inp", INPUT=inputs("eam", tmp_path), ENERGY=energy_keys("eam"))
    result = systems.run("energy", control)
    assert result.returncode == 3
    assert "give eam_element as one of: Ni Cu" in result.stderr
    control = systems.control(tmp_path / "e.inp", INPUT=inputs("eam", tmp_path),
                              ENERGY=energy_keys("eam", eam_element="Cu"))
    result = systems.run("energy", control)
    assert result.returncode == 0, result.stderr
    assert systems.read_energies(result.stdout)["POTENTIAL_ENE"] == pytest.approx(alone[0]["POTENTIAL_ENE"], rel=1e-12)


def test_a_run_conserves_energy_and_continues_bit_by_bit(tmp_path):
    """Copper at 1000 K: 40 steps, and 20 with 20 more from the restart, on two domains."""
    position, box = make_system(tmp_path, "eam", jitter=0.0)
    velocity = lattices.thermal_velocities(len(position), 63.55, 1000 * lattices.BOLTZMANN, seed=4)
    lattices.write_restart(tmp_path / "s0.rst", position, velocity, box)

    def run(start: str, end: str, steps: int) -> dict:
        control = systems.control(
            tmp_path / "r.inp", INPUT=inputs("eam", tmp_path, start), ENERGY=energy_keys("eam"),
            OUTPUT={"rstfile": tmp_path / end}, COMM={"planner": "MODEL"},
            DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 1, "rstout_period": 20, "stoptr_period": 0})
        result = systems.run("run", control, program="chromamd")
        assert result.returncode == 0, result.stderr
        return systems.read_table(result.stdout)

    table = run("s().rst", "whole().rst", 40)
    run("s().rst", "half().rst", 20)
    run("half().rst", "end().rst", 20)
    whole, end = (systems.read_restarts(str(tmp_path / name), 1) for name in ("whole().rst", "end().rst"))
    assert np.array_equal(whole.position, end.position)
    assert np.array_equal(whole.velocity, end.velocity)
    # From the perfect crystal about half of the kinetic energy becomes potential energy; the sum is kept.
    total, kinetic = table["TOTAL_ENE"], table["KINETIC_ENE"]
    assert np.ptp(kinetic) > 100 * np.ptp(total)


@pytest.mark.parametrize("kind", ["lj", "eam"])
def test_the_pressure_is_the_slope_of_the_energy_in_the_volume(tmp_path, kind):
    position, box = make_system(tmp_path, kind, jitter=0.1)
    trace = evaluate(tmp_path, kind)[0]["TRACE"]
    step = 1e-6
    energy = []
    for k in (-2, -1, 1, 2):
        lattices.write_restart(tmp_path / "s0.rst", (1 + k * step) * position, 0 * position, (1 + k * step) * box)
        energy.append(evaluate(tmp_path, kind)[0]["POTENTIAL_ENE"])
    # dE/d ln L = - sum of r f.
    slope = (energy[0] - 8 * energy[1] + 8 * energy[2] - energy[3]) / (12 * step)
    assert slope == pytest.approx(-trace, rel=1e-6)


def test_pressure_coupling_changes_the_box(tmp_path):
    position, box = make_system(tmp_path, "eam", jitter=0.0)
    velocity = lattices.thermal_velocities(len(position), 63.55, 600 * lattices.BOLTZMANN, seed=4)
    lattices.write_restart(tmp_path / "s0.rst", position, velocity, box)
    control = systems.control(
        tmp_path / "r.inp", INPUT=inputs("eam", tmp_path), ENERGY=energy_keys("eam"), COMM={"planner": "MODEL"},
        DYNAMICS={"nsteps": 30, "timestep": 0.002, "eneout_period": 10},
        ENSEMBLE={"ensemble": "NPT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1, "tau_p": 0.5})
    result = systems.run("run", control)
    assert result.returncode == 0, result.stderr
    table = systems.read_table(result.stdout)
    assert table["VOLUME"][-1] != table["VOLUME"][0]
    drift = np.ptp(table["CONSERVED_ENE"])
    assert drift < 0.01 * table["KINETIC_ENE"][0]


@pytest.mark.parametrize(("section", "keys", "words"), [
    ("INPUT", {"eamfile": "nowhere.eam"}, "nowhere.eam: this potential cannot be opened"),
    ("ENERGY", {"cutoffdist": 4.5}, "must be that of"),
    ("ENERGY", {"forcefield": "LJ"}, "eamfile = "),
    ("ENERGY", {"pme_nspline": 6}, "does not go with forcefield = EAM"),
    ("ENERGY", {"deterministic": "YES"}, "does not go with forcefield = EAM"),
    ("DYNAMICS", {"integrator": "VRES"}, "needs reciprocal space"),
])
def test_what_does_not_go_together_is_refused(tmp_path, section, keys, words):
    make_system(tmp_path, "eam", jitter=0.0)
    sections = {"INPUT": inputs("eam", tmp_path), "ENERGY": energy_keys("eam")}
    sections[section] = sections.get(section, {}) | keys
    result = systems.run("energy", systems.control(tmp_path / "e.inp", **sections))
    assert result.returncode == 3
    assert words in result.stderr


def test_a_damaged_potential_is_refused(tmp_path):
    make_system(tmp_path, "eam", jitter=0.0)
    text = (tmp_path / "cu.eam").read_text()
    for content, words in [(text[:5000], "numbers behind its third line; the file is damaged"),
                           ("some\nother\nfile\n", "line 4: expected the number of elements")]:
        (tmp_path / "cu.eam").write_text(content)
        control = systems.control(tmp_path / "e.inp", INPUT=inputs("eam", tmp_path), ENERGY=energy_keys("eam"))
        result = systems.run("energy", control)
        assert result.returncode == 3
        assert words in result.stderr


def test_molecules_are_no_material(tmp_path):
    position, box = make_system(tmp_path, "lj", jitter=0.0)
    systems.write_topology(tmp_path / "t.h5", [(systems.ion(), len(position))])
    control = systems.control(tmp_path / "e.inp", INPUT=inputs("lj", tmp_path), ENERGY=energy_keys("lj"))
    result = systems.run("energy", control)
    assert result.returncode == 3
    assert "uncharged atoms of one kind" in result.stderr
