"""Gaussian accelerated dynamics: boosted energies and forces against OpenMM's parts, what is learnt, what is kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import PME, relaxed_charged
from support.engine_energies import assert_agree, energy_section, reference_energy, write_input
from support.molecular_systems import solvated
from support.systems import sentence

from chromabuild.simulate.openmm_engine import NonbondedOptions

pytestmark = pytest.mark.mpi

ENERGIES = ("POT", "DIH")


def boost(energy: float, known: dict[str, float], sigma: float, upper: bool) -> tuple[float, float]:
    """Boost and factor of the forces, by equations 3 to 9 of Miao, Feher and McCammon (2015)."""
    span = known["max"] - known["min"]
    if upper:
        share = (1 - sigma / known["dev"]) * span / (known["ave"] - known["min"])
        share = share if 0 < share < 1 else 1.0
        threshold = known["min"] + span / share
    else:
        share = min(1.0, sigma / known["dev"] * span / (known["max"] - known["ave"]))
        threshold = known["max"]
    below = max(0.0, threshold - energy)
    return share / span * below**2 / 2, 1 - share / span * below


@pytest.mark.parametrize(("kind", "threshold"), [("DUAL", "LOWER"), *(
    pytest.param(*case, marks=pytest.mark.release) for case in
    [("DUAL", "UPPER"), ("DIHEDRAL", "LOWER"), ("POTENTIAL", "LOWER")])])
def test_boosted_energies_and_forces_follow_from_openmms(tmp_path, kind, threshold):
    """The parts are OpenMM's, with and without torsions. To 1e-6 in double precision, as without boosts, on one rank
    and two."""
    system, options = solvated("peptide", 26.0), NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(30, 30, 30))
    templates = list(system.topology.templates)
    without = [replace(one, dihedral_k=0 * one.dihedral_k, cmap_atoms=one.cmap_atoms[:0], cmap_map=one.cmap_map[:0])
               for one in templates]
    whole, rest = (reference_energy(replace(system, topology=replace(system.topology, templates=one)), options)
                   for one in (templates, without))
    energy = {"POT": sum((whole if kind == "POTENTIAL" else rest)[0].values()),
              "DIH": whole[0]["dihedral"] + whole[0]["cmap"]}
    keys: dict[str, float] = {}
    factor, added = {"POT": 1.0, "DIH": 1.0}, 0.0
    for name, spread in (("POT", 60.0), ("DIH", 4.0)):
        if kind not in ("DUAL", {"POT": "POTENTIAL", "DIH": "DIHEDRAL"}[name]):
            continue
        known = {"max": energy[name] + spread, "min": energy[name] - 2 * spread, "ave": energy[name] - spread / 3,
                 "dev": spread / 2}
        keys |= {f"{name.lower()}_{key}": value for key, value in known.items()}
        more, factor[name] = boost(energy[name], known, 0.4 * spread, threshold == "UPPER")
        keys[f"sigma0_{name.lower()}"] = 0.4 * spread
        added += more
    if kind == "POTENTIAL":
        factor["DIH"] = factor["POT"]
    assert added > 0.5 and min(factor.values()) < 0.95
    force = factor["POT"] * rest[1] + factor["DIH"] * (whole[1] - rest[1])
    expected = {**whole[0], "boost": added}
    inp = systems.control(
        tmp_path / "boost.inp", INPUT=write_input(system, tmp_path), OUTPUT={"forcefile": tmp_path / "force.bin"},
        ENERGY={key: value for key, value in energy_section(options).items() if value},
        GAMD={"gamd": "YES", "boost_type": kind, "thresh_type": threshold, **keys})
    for ranks in (1, 2):
        done = systems.run("energy", inp, ranks)
        assert done.returncode == 0, done.stderr
        found = systems.read_energies(done.stdout)
        assert found["POTENTIAL_GAMD"] + found["DIHEDRAL_GAMD"] == pytest.approx(added, rel=1e-4)
        assert_agree((found, systems.read_forces(tmp_path / "force.bin")), (expected, force), 1e-6, 1e-6)


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    return relaxed_charged(tmp_path_factory.mktemp("boosted"), 12)


def run(system: Path, folder: Path, ranks: int = 1, steps: int = 60, code: int = 0, output: dict | None = None,
        sections: dict | None = None, **gamd: object) -> dict[str, np.ndarray] | str:
    """The energy table of a run, or the sentence in which it ends."""
    folder.mkdir(exist_ok=True)
    files = {"logfile": folder / "run.log", "gamdfile": folder / "run.gamd", **(output or {})}
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": system / "t.h5", "rstfile": system / f"start{ranks}_().rst"},
        OUTPUT={key: name for key, name in files.items() if name}, ENERGY=PME,
        GAMD={"gamd": "YES", **gamd}, **(sections or {
            "DYNAMICS": {"nsteps": steps, "timestep": 0.0005, "eneout_period": 1}, "ENSEMBLE": {"temperature": 300}}))
    done = systems.run("run", inp, ranks, "chromamd")
    assert done.returncode == code, done.stderr
    return sentence(done) if code else systems.read_table((folder / "run.log").read_text())


def learnt(folder: Path) -> dict[str, np.ndarray]:
    head, *rows = (folder / "run.gamd").read_text().splitlines()
    return dict(zip(head.split(), np.array([row.split() for row in rows], float).T, strict=True))


def test_what_is_learnt_is_that_of_the_energies(system, tmp_path):
    table = run(system, tmp_path, boost="NO", update_period=20)
    found = learnt(tmp_path)
    assert found["STEP"].tolist() == [20, 40, 60]
    torsion = table["DIHEDRAL"] + table["CMAP"]
    seen = {"DIH": torsion, "POT": table["POTENTIAL_ENE"] - torsion}
    assert not table["POTENTIAL_GAMD"].any()
    for name, energy in seen.items():
        for k, end in enumerate((20, 40, 60)):
            last, so_far = energy[end - 19:end + 1], energy[1:end + 1]
            for key, value in (("MAX", so_far.max()), ("MIN", so_far.min()), ("AVE", last.mean()), ("DEV", last.std())):
                # Both files have four digits behind the point.
                assert found[f"{name}_{key}"][k] == pytest.approx(value, abs=3e-4), (name, key, end)


def test_a_boosted_run_conserves_its_energy_on_any_ranks(system, tmp_path):
    """With what was learnt: the total with its boost does not drift, and bits do not depend on the ranks."""
    run(system, tmp_path / "learn", boost="NO", update_period=60)
    given = {f"{name.lower()}_{key.lower()}": learnt(tmp_path / "learn")[f"{name}_{key}"][-1]
             for name in ENERGIES for key in ("MAX", "MIN", "AVE", "DEV")}
    tables = [run(system, tmp_path / f"on{ranks}", ranks, sigma0_pot=20.0, sigma0_dih=5.0, **given) for ranks in (1, 2)]
    one = tables[0]
    assert one["POTENTIAL_GAMD"][5:].mean() > 0.1 and one["DIHEDRAL_GAMD"][5:].mean() > 0.01
    # The boost moves by far more than what verlet steps of 0.5 fs leave of the total energy.
    assert np.ptp(one["TOTAL_ENE"][1:]) < 0.1 * np.ptp(one["POTENTIAL_GAMD"] + one["DIHEDRAL_GAMD"])
    for column, values in one.items():
        assert np.array_equal(values, tables[1][column]), column


@pytest.mark.parametrize(("gamd", "more", "told"), [
    ({}, {}, "is missing or below pot_min"),
    ({"boost": "NO"}, {}, "which needs an update_period"),
    ({"pot_max": 9, "pot_min": 1, "pot_ave": 10, "pot_dev": 1}, {}, "must lie between pot_min and pot_max"),
    ({"update_period": 5}, {"output": {"gamdfile": None}}, "needs gamdfile"),
    ({"update_period": 5}, {"sections": {"MINIMIZE": {"nsteps": 1}}}, "remove [GAMD] from a minimisation"),
])
def test_contradictions_get_a_sentence(system, tmp_path, gamd, more, told):
    assert told in run(system, tmp_path, code=3, **more, **gamd)
