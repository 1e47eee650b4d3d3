"""Barostats: volumes against theory, the virial against the volume derivative, conserved quantities."""

from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, KB, lone_ions, make_system, minimised
from support.engine_energies import chromamd_energy
from support.molecular_systems import solvated

from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology

ATMOSPHERE = 101325 * 6.02214076e23 / 4184 * 1e-30  # kcal/mol/angstrom^3


def simulate(folder: Path, start: str, n_steps: int, ensemble: dict, ranks: int = 1, end: str = "end",
             rigid: bool = True, energy: dict | None = None, **keys: object) -> str:
    """Dynamics from a restart; returns the log."""
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": folder / f"{end}().rst"}, ENERGY=ENERGY | {"pme_max_spacing": 4} | (energy or {}),
        CONSTRAINTS={"rigid_bond": "YES" if rigid else "NO"},
        DYNAMICS={"nsteps": n_steps, "eneout_period": 1, "timestep": 0.001, **keys},
        ENSEMBLE={"temperature": 300, **ensemble})
    done = systems.run("run", inp, ranks)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.release
@pytest.mark.parametrize("ensemble", [
    {"tpcontrol": "BUSSI"}, {"tpcontrol": "NHC"}, {"tpcontrol": "LANGEVIN", "gamma_p": 10},
    {"tpcontrol": "BUSSI", "barostat": "MC"},     {"tpcontrol": "LANGEVIN", "isotropy": "XY-FIXED", "ensemble": "NPAT"},
], ids=lambda e: "-".join(str(value) for value in e.values()))
def test_volume_of_an_ideal_gas(tmp_path, ensemble):
    """N free atoms: the volume is gamma distributed with mean N kT/P and variance N (kT/P)^2, whatever axes move.

    Without collisions only Langevin's noise exchanges energy between axes, which an axis that moves alone needs.
    Pistons leave out the three degrees of freedom of the centre of mass, which is N - 1 instead of N. The run has the
    length of about 60 correlation times; its block averages tell the error of the mean.
    """
    n = 64
    start = lone_ions(tmp_path, n)
    pressure = n * KB * 300 / BOX.prod()
    log = simulate(tmp_path, start, 6000, {
        "ensemble": "NPT", "tau_t": 0.2, "gamma_t": 5, "tau_p": 0.3, "pressure": pressure / ATMOSPHERE, **ensemble},
        rigid=False, timestep=0.005, eneout_period=10, barostat_period=2 if "barostat" in ensemble else 5,
        thermostat_period=5)
    table = systems.read_table(log)
    volume = table["VOLUME"][60:] / BOX.prod()
    assert np.allclose(table["VOLUME"], table["BOXX"] * table["BOXY"] * table["BOXZ"], rtol=1e-5)
    blocks = volume[:len(volume) // 12 * 12].reshape(12, -1).mean(axis=1)
    error = blocks.std(ddof=1) / np.sqrt(12)
    assert error < 0.06
    assert abs(volume.mean() - (n - 0.5) / n) < 4 * error + 0.5 / n
    # The relative error of a standard deviation from about 60 independent values is 0.09.
    assert volume.std() == pytest.approx(1 / np.sqrt(n), rel=0.4)
    x, y, z = (table[name][60:] / length for name, length in zip(("BOXX", "BOXY", "BOXZ"), BOX, strict=True))
    isotropy = ensemble.get("isotropy", "ISO")
    assert np.allclose(x, y, rtol=1e-5)
    assert np.allclose(x, z, rtol=1e-5) == (isotropy == "ISO")
    assert np.allclose(x, 1, rtol=1e-5) == (isotropy == "XY-FIXED")


@pytest.mark.parametrize("isotropy", ["SEMI-ISO", "ANISO"])
@pytest.mark.release
def test_pistons_conserve_their_quantity(tmp_path, isotropy):
    """A drop with every kind of term, rigid waters and the tail correction, in a box that breathes by a quarter.

    Were the pressure of any term wrong, the conserved quantity would wander as the energies do, by over 10 kcal/mol.
    What is left is the error of the step, which falls with its square.
    """
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path)
    spread = []
    for timestep in (0.001, 0.0005):
        table = systems.read_table(simulate(
            tmp_path, start, int(0.15 / timestep), {"ensemble": "NPT", "tpcontrol": "NHC", "tau_t": 0.1, "tau_p": 0.3,
                                                    "pressure": 100, "isotropy": isotropy}, timestep=timestep,
            energy={"dispersion_corr": "EPRESS", "switchdist": 6, "pme_max_spacing": 1.2, "pme_alpha": 0.45}))
        assert np.ptp(table["VOLUME"]) > 0.1 * BOX.prod()
        exchanged = np.ptp(table["TOTAL_ENE"])
        assert exchanged > 10 and np.ptp(table["CONSERVED_ENE"]) < 0.04 * exchanged
        spread.append(np.std(table["CONSERVED_ENE"]))
    assert 3.0 < spread[0] / spread[1] < 5.5


@pytest.mark.slow
def test_virial_is_the_derivative_of_openmms_energy(tmp_path):
    """All terms of a solvated peptide under a strain that differs by axis: -sum of w_a W_aa is dU/ds where the edges
    grow by exp(w_a s), by fourth-order differences of OpenMM Reference, the tail of Lennard-Jones included. alpha is
    large, so that no energy jumps at the cutoff."""
    system = solvated("peptide", 26.0)
    options = NonbondedOptions(cutoff=9.0, alpha=0.5, grid=(48, 48, 48), switch_distance=7.5, tail=True)
    chromamd_energy(system, tmp_path, "double", options)
    line = next(line for line in (tmp_path / "energy_double_1.out").read_text().splitlines() if "VIRIAL" in line)
    virial = np.array(line.split("=")[1].split(), dtype=float).reshape(3, 3)
    assert np.allclose(virial, virial.T, atol=1e-6 * np.abs(virial).max())
    step, weight = 2e-4, np.array([1.0, -0.5, 2.0])
    energy = []
    for k in (-2, -1, 1, 2):
        factor = np.exp(k * step * weight)
        terms, _ = energies_by_term(system_from_topology(system.topology, system.box * factor, options),
                                    system.position * factor)
        energy.append(sum(terms.values()))
    slope = (energy[0] - 8 * energy[1] + 8 * energy[2] - energy[3]) / (12 * step)
    assert weight @ np.diag(virial) == pytest.approx(-slope, rel=2e-5, abs=0.05)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("ensemble", [
    {"tpcontrol": "BUSSI", "isotropy": "ANISO"}, {"tpcontrol": "BERENDSEN"}, {"tpcontrol": "NHC", "barostat": "MC"}],
    ids=["pistons", "weak", "monte-carlo"])
def test_continued_barostat_is_bitwise_the_same(tmp_path, ensemble):
    ranks = 2
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path, ranks)
    ensemble = {"ensemble": "NPT", "tau_t": 0.1, "tau_p": 0.1, "pressure": 300, **ensemble}
    keys = {"thermostat_period": 2, "barostat_period": 4, "eneout_period": 10}
    log_whole = simulate(tmp_path, start, 60, ensemble, ranks, "whole", rstout_period=30, **keys)
    simulate(tmp_path, start, 30, ensemble, ranks, "half", **keys)
    log_rest = simulate(tmp_path, str(tmp_path / "half().rst"), 30, ensemble, ranks, "rest", **keys)
    for rank in range(ranks):
        assert (tmp_path / f"whole{rank}.rst").read_bytes() == (tmp_path / f"rest{rank}.rst").read_bytes()
    last = [[line for line in log.splitlines() if line.startswith("INFO:")][-1] for log in (log_whole, log_rest)]
    assert last[0] == last[1]
    assert systems.read_table(log_rest)["VOLUME"][-1] != pytest.approx(BOX.prod(), rel=1e-6)


@pytest.mark.parametrize(("before", "after"), [("ANISO", "ISO"), ("ISO", "XY-FIXED"), ("ANISO", "SEMI-ISO")])
@pytest.mark.parametrize("barostat", ["MTK", "BERENDSEN"])
def test_other_pistons_than_those_of_the_restart(tmp_path, before, after, barostat):
    """Rates of strain of a restart act on the axes as the new pistons hold them: what keeps shape or area does so."""
    start = lone_ions(tmp_path, 64)
    ensemble = {"tpcontrol": "BUSSI", "tau_t": 0.2, "tau_p": 0.3, "pressure": 120, "barostat": barostat}
    first = systems.read_table(simulate(tmp_path, start, 40, ensemble | {"ensemble": "NPT", "isotropy": before},
                                        end="one", rigid=False, timestep=0.005))
    edges = np.stack([first[name] for name in ("BOXX", "BOXY", "BOXZ")], axis=1)
    assert np.ptp(edges[-1] / edges[0]) > 1e-4 or before == "ISO"
    kind = "NPAT" if after == "XY-FIXED" else "NPT"
    second = systems.read_table(simulate(tmp_path, str(tmp_path / "one().rst"), 20,
                                         ensemble | {"ensemble": kind, "isotropy": after}, 1, "two", rigid=False,
                                         timestep=0.005))
    growth = np.stack([second[name] for name in ("BOXX", "BOXY", "BOXZ")], axis=1) / edges[-1]
    # The log has four digits behind the point of edges of 20 angstrom.
    tolerance = 1e-5
    if after == "XY-FIXED":
        np.testing.assert_allclose(growth[:, :2], 1.0, atol=tolerance)
    else:
        np.testing.assert_allclose(growth[:, 0], growth[:, 1], atol=tolerance)
    if after == "ISO":
        np.testing.assert_allclose(growth[:, 0], growth[:, 2], atol=tolerance)
    assert np.abs(growth[-1] - 1).max() > 3 * tolerance
