"""Folding from a fibre to a scaffold: forces against energies, floors that hold, small boxes, one seed one result."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.bead_frames import carried
from support.mixed_fibre import mixed_fibre

import mesoscale.folding
from chromabuild.base.errors import BadInputError, ClashesRemainError
from chromabuild.base.progress import silent
from chromabuild.base.settings import load_config
from chromabuild.genome.locus import load_locus
from chromabuild.pipeline import stages
from mesoscale.contact_energies import Wells
from mesoscale.core_charges import template
from mesoscale.energy import mechanical_energies, overlaps
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import ACCEPTABLE, _gathered, fold, smallest_box
from mesoscale.kernels import kernel_energies, kernel_of
from mesoscale.model import TERMS, Parameters, build_chain, straight_conformation
from mesoscale.relaxation import (
    CHARGE_INTERVAL,
    FINE_TIME_STEP,
    Conformation,
    advance,
    energy_of,
    settle,
    squeeze,
    thermal_velocities,
)
from mesoscale.scaffold import Scaffold, body_points, box_volume

pytestmark = pytest.mark.release

ROOT = Path(__file__).resolve().parents[2]
DEMO_LIKE = Fibre("ACGTTGCA" * 68, (95, 262, 440), contacts=(Contact((0, 20), (5, 40)), Contact((30, 60), (500, 540))))


@pytest.mark.parametrize(("fibre", "charged"), [(DEMO_LIKE, False), (DEMO_LIKE, True), (mixed_fibre(), True)])
def test_forces_are_the_gradient_of_the_energy(fibre, charged):
    """Central differences of the NumPy-checked kernel energy; the step of 1e-5 leaves some 1e-8 of relative error,
    the series for the exponential below 1e-9."""
    parameters = Parameters(confinement_radius=4.0, container=(12.0, 10.0, 8.0), contact_distance=2.0, excluded_k=1.0)
    chain = build_chain(fibre, parameters)
    wells = Wells(np.array([[0, chain.n - 1], [2, 7]], np.int32), np.array([-40.0, 25.0]), 2.0, 90.0)
    chain = replace(chain, wells=wells)
    random = np.random.Generator(np.random.Philox(key=1))
    position, frame = straight_conformation(chain)
    position = position + 0.3 * random.standard_normal(position.shape)
    turn = Rotation.from_rotvec(0.3 * random.standard_normal((chain.n, 3))).as_matrix()
    frame = carried(chain, position, np.where((chain.core > 0)[:, None, None], turn @ frame, frame))
    force, energy = kernel_of(chain).place(position, frame).forces(charged)
    terms = ("stretch", "bend", "twist", "floor", "restraint", "confinement")
    if charged:
        terms += ("electrostatic", "excluded")
    index = [TERMS.index(term) for term in terms]

    def total(freedom, p, by):
        moved, turned = position.copy(), frame.copy()
        vector = by * np.eye(3)[freedom % 3]
        if freedom < 3:
            moved[p] += vector
        else:
            turned[p] = Rotation.from_rotvec(vector if freedom < 6 else by * frame[p, :, 0]).as_matrix() @ frame[p]
        return kernel_energies(chain, moved, carried(chain, moved, turned))[index].sum()

    assert energy.sum() == pytest.approx(kernel_energies(chain, position, frame)[index].sum(), rel=1e-9)
    assert abs(kernel_energies(chain, position, frame)[index]).min() > 1  # every term takes part
    for p in range(chain.n):
        freedoms = [0, 1, 2, *([3, 4, 5] if chain.core[p] else [6] if p < chain.n - 1 else [])]
        for k in freedoms:
            slope = (total(k, p, 1e-5) - total(k, p, -1e-5)) / 2e-5
            assert force[k, p] == pytest.approx(-slope, rel=1e-6, abs=1e-4), (k, p)


def test_dynamics_in_the_whole_energy_have_their_temperature():
    """Equipartition: kBT/2 in every stretch and in every twist, each of which has a freedom of its own.

    130 records of 36 terms leave a standard error of sqrt(2/(36 x 130)) = 2 %, or 4 % when every fourth is independent;
    floors of 1000 kBT/nm^2 on a mass of 4 turn at a rate of 16 per unit of time, and steps of 0.02 heat what touches
    them by (16 x 0.02 / 2)^2 = 3 %.
    """
    chain = build_chain(Fibre("ACGT" * 100, (200,)), Parameters())
    random = np.random.Generator(np.random.Philox(key=7))
    now = Conformation.boxed(chain, *straight_conformation(chain))
    found = []
    for _ in range(150):
        velocity = thermal_velocities(chain, random, 1.0)
        now, _ = advance(chain, now, 60, velocity, minimise=False, time_step=FINE_TIME_STEP, friction=0.0,
                         charge_interval=CHARGE_INTERVAL)  # fmt: skip
        found.append(mechanical_energies(chain, now.position, now.frame))
    stretch, twist = (np.mean([one[term] for one in found[20:]]) for term in ("stretch", "twist"))
    assert stretch == pytest.approx((chain.n - 1) / 2, rel=0.15)
    assert twist == pytest.approx(np.count_nonzero(chain.twist_k) / 2, rel=0.15)


@pytest.mark.parametrize("seed", range(1, 3))
def test_squeezing_makes_a_small_box_without_overlaps(seed):
    chain = build_chain(replace(DEMO_LIKE, contacts=()), Parameters())
    start = Conformation.boxed(chain, *straight_conformation(chain))
    before = box_volume(body_points(chain, start.position, start.frame))
    found = squeeze(chain, start, np.random.Generator(np.random.Philox(key=seed)))
    assert len(overlaps(chain, found.position, found.frame)) == 0
    # Three cores of 11 x 11 x 6 nm with 2 nm of rim: about 4,600 nm^3 when they lie well, 6,000 side by side.
    assert box_volume(body_points(chain, found.position, found.frame)) < min(6500, 0.7 * before)


def test_the_smallest_box_is_one_of_acceptable_energy(monkeypatch):
    """Sites of cores that touch lie in each other after squeezing alone, thousands of kBT and more deep."""
    squeezed = []

    def kept(chain, start, random):
        squeezed.append(squeeze(chain, start, random))
        return squeezed[-1]

    monkeypatch.setattr(mesoscale.folding, "squeeze", kept)
    monkeypatch.setattr(mesoscale.folding, "SQUEEZES", 2)
    chain = build_chain(replace(DEMO_LIKE, contacts=()), Parameters())
    start = Conformation.boxed(chain, *straight_conformation(chain))
    best, above = smallest_box(chain, [(start.position, start.frame)], 1, lambda share, state: None)
    assert len(overlaps(chain, best.position, best.frame)) == 0
    assert max(energy_of(chain, one) for one in squeezed) > 1e3
    assert 0 < above <= ACCEPTABLE and energy_of(chain, best) <= energy_of(chain, start) + ACCEPTABLE * chain.n
    before, after = (box_volume(body_points(chain, one.position, one.frame)) for one in (start, best))
    assert after < min(7000, 0.75 * before)


def test_a_fibre_that_cannot_be_squeezed_stays_as_it_was_sampled(monkeypatch):
    """Squeezing that ends in cores lying in each other is not built, however small its box."""
    chain = build_chain(Fibre("ACGT" * 90, (75, 75 + 167)), Parameters())
    position, frame = straight_conformation(chain)
    monkeypatch.setattr(mesoscale.folding, "relieve", lambda chain, start: start)
    monkeypatch.setattr(mesoscale.folding, "squeeze", lambda chain, start, random: Conformation.boxed(
        chain, 0.3 * start.position, start.frame))
    best, above = smallest_box(chain, [(position, frame)], 1, lambda share, state: None)
    assert above == 0.0 and np.array_equal(best.position, position)


def test_settling_pushes_two_cores_apart_that_lie_in_each_other():
    chain = build_chain(Fibre("ACGT" * 90, (75, 75 + 167)), Parameters())
    position, frame = straight_conformation(chain)
    position[chain.cores[1]] = position[chain.cores[0]] + [3.0, 1.0, 0.5]
    assert overlaps(chain, position, frame).max() > 1.0
    found = settle(chain, Conformation.boxed(chain, position, frame))
    assert len(overlaps(chain, found.position, found.frame)) == 0


def test_a_fibre_caught_in_itself_is_gathered_anew(monkeypatch):
    """A linker that stays 3 nm too long is wound around something that no later move gets it off."""
    chain = build_chain(DEMO_LIKE, Parameters())
    free = Conformation.boxed(chain, *straight_conformation(chain))
    caught = replace(free, position=free.position.copy())
    caught.position[chain.cores[1] :] += 3.0 * free.frame[chain.cores[1] - 1][:, 0]
    gathered = [caught, caught, free]
    monkeypatch.setattr(mesoscale.folding, "gather", lambda chain, random, show: gathered.pop(0))
    monkeypatch.setattr(mesoscale.folding, "settle", lambda chain, start: start)
    assert _gathered(chain, 1, lambda share, state: None) is free and not gathered


@pytest.fixture(scope="module")
def demo():
    return fold(DEMO_LIKE, Parameters(container=(22.0, 14.0, 10.0)), sweeps=600, seed=4)


def test_sampling_leaves_no_floor_violation(demo):
    assert demo.floor_violations == 0 and demo.deepest_violation == 0.0
    assert all(0.02 < rate < 0.9 for rate in demo.acceptance.values()), demo.acceptance
    elastic = sum(demo.energy[term][-30:].mean() for term in ("stretch", "bend", "twist"))
    assert elastic < 150  # kBT; about 50 degrees of freedom and what the container bends
    assert demo.energy["floor"].max() == 0
    assert 600 <= demo.energy["sweep"][-1] <= 1200  # until the energy is at rest, at most twice as many


def test_contacts_that_cannot_restrain_are_reported(demo):
    near, far = demo.contacts
    assert near["distance"] is None and near["kept"] is None
    assert far["distance"] > 0


@pytest.mark.slow
def test_same_seed_same_bytes(demo, tmp_path):
    again = fold(DEMO_LIKE, Parameters(container=(22.0, 14.0, 10.0)), sweeps=600, seed=4)
    demo.write(tmp_path / "a.h5")
    again.write(tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    other = fold(DEMO_LIKE, Parameters(container=(22.0, 14.0, 10.0)), sweeps=20, seed=5)
    assert not np.allclose(other.origin, demo.origin)


def test_a_strong_contact_pulls_its_partners_together():
    fibre = Fibre("ACGT" * 100, (100,), contacts=(Contact((0, 3), (397, 400)),))
    result = fold(fibre, Parameters(contact_k=20.0, contact_distance=8.0), sweeps=400, seed=1)
    assert result.contacts[0]["kept"] and result.contacts[0]["distance"] < 9.5
    free = fold(replace(fibre, contacts=()), Parameters(), sweeps=400, seed=1)
    assert np.linalg.norm(free.origin[0] - free.origin[-1]) > 120


def test_a_lone_core_needs_no_sampling():
    scaffold = fold(Fibre("ACG" * 49, (73,)), Parameters(), sweeps=10, seed=1)
    assert scaffold.origin.shape == (147, 3) and (scaffold.nucleosome == 0).all()


def test_progress_is_told():
    told = []
    fold(DEMO_LIKE, Parameters(), sweeps=5, seed=1, progress=lambda share, text: told.append((share, text)))
    assert told[-1][0] == pytest.approx(1.0) and "kBT" in told[-1][1]
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] == 0.0


def test_overlaps_that_remain_are_told(monkeypatch, tmp_path):
    """The stage writes what it has and ends as other stages do when clashes remain (exit code 4)."""
    found = fold(Fibre("ACG" * 49, (73,)), Parameters(), sweeps=1, seed=1)
    found.floor_violations, found.deepest_violation = 3, 0.25
    monkeypatch.setattr(mesoscale.folding, "fold", lambda *_: found)
    config = load_config(ROOT / "workflows/config/demo.yaml", {"output": str(tmp_path)})
    with pytest.raises(ClashesRemainError, match="3 pairs of DNA and cores overlap .* by up to 0.250 nm: try another"):
        stages.scaffold.run(stages.Job(config, 1, silent, {}))
    assert (tmp_path / "scaffold.h5").exists()


@pytest.mark.slow
def test_a_piece_of_the_yeast_locus_is_gathered_without_overlaps():
    """Sixteen nucleosomes with linkers from 10 bp on, in a sphere a third as wide as they are long; their ends meet."""
    whole = load_locus(load_config(ROOT / "workflows/config/chrXIII.yaml").locus).fibre()
    end = whole.last_bp[15] + 30
    fibre = replace(whole, sequence=whole.sequence[:end], dyads=whole.dyads[:16],
                    contacts=(Contact((0, 200), (end - 200, end)), Contact((600, 800), (1800, 2000))))  # fmt: skip
    found = fold(fibre, Parameters(confinement_radius=16.0, core_charges="formal"), sweeps=60, seed=2)
    assert all(contact["kept"] for contact in found.contacts)
    # Dynamics leave Monte Carlo charges at rest: 35 kBT with a deviation of 2. Without them sampling begins at 356 kBT
    # and is at 149 kBT after these sweeps.
    charges = found.energy["electrostatic"]
    assert charges[0] == pytest.approx(charges[30:].mean(), abs=15)
    assert found.floor_violations == 0
    assert np.linalg.norm(found.core_origin - found.core_origin.mean(axis=0), axis=1).max() < 250
    assert found.contact_map.sum() > 0


def test_tails_hang_on_their_cores_outside_the_dna(demo, tmp_path):
    assert demo.tails.shape == (3, 50, 3)
    local = np.einsum("mki,mij->mkj", demo.tails - demo.core_origin[:, None], demo.core_frame)
    tails = template("tail_beads_1kx5.json")["tails"]
    first = np.cumsum([0, *(len(tail["charge"]) for tail in tails)])[:-1]
    off = np.linalg.norm(local[:, first] - [tail["anchor"] for tail in tails], axis=2)
    assert 1.0 < off.mean() < 8.0 and off.max() < 20.0  # springs of 11 kBT/nm^2: 5 angstrom
    free = np.setdiff1d(np.arange(50), first)
    apart = np.linalg.norm(demo.tails[:, free].reshape(-1, 1, 3) - demo.origin, axis=2).min(axis=1)
    # Axis of the DNA, whose radius is 10; a tail may pass between beads of a linker, which are 30 apart.
    assert np.quantile(apart, 0.2) > 9.0
    demo.write(tmp_path / "a.h5")
    assert np.array_equal(Scaffold.read(tmp_path / "a.h5").tails, demo.tails)


@pytest.mark.parametrize(("settings", "words"), [
    ({"scaffold.tails": "flexible", "scaffold.core_charges": "formal"}, "set it to fitted, or scaffold.tails to rigid"),
    ({"scaffold.hotter": [1.2, 1.1]}, "scaffold.hotter: temperatures must ascend"),
    ({"scaffold.replicas": 2, "scaffold.replica": 3}, "scaffold.replica: 3 is beyond scaffold.replicas: 2"),
    ({"scaffold.acetylated": "far.bed"}, "holds no nucleosome of chrXIII"),
    ({"scaffold.acetylated": "bad.bed"}, r"bad\.bed, line 1: .*needs 3"),
])  # fmt: skip
def test_settings_that_cannot_be_folded(tmp_path, settings, words):
    (tmp_path / "far.bed").write_text("chrXIII\t1\t2\n")
    (tmp_path / "bad.bed").write_text("chrXIII\t1\n")
    settings = {key: str(tmp_path / value) if str(value).endswith(".bed") else value for key, value in settings.items()}
    config = load_config(ROOT / "workflows/config/demo.yaml", {**settings, "output": str(tmp_path / "out")})
    with pytest.raises(BadInputError, match=words):
        stages.scaffold.run(stages.Job(config, 1, silent, {}))
    assert not (tmp_path / "out").exists()


def test_marks_reach_the_fold(tmp_path):
    """Linker histones by the build's settings and acetylation by place, from the settings to the file."""
    (tmp_path / "peaks.bed").write_text("chrXIII\t0\t1000000\tpeak\t5\n")
    config = load_config(ROOT / "workflows/config/demo.yaml", {
        "output": str(tmp_path), "scaffold.sweeps": 2, "scaffold.tails": "flexible", "scaffold.choose": "last",
        "scaffold.core_charges": "fitted", "scaffold.magnesium": True,
        "scaffold.acetylated": str(tmp_path / "peaks.bed"), "build.linker_histone": "H1.4",
    })  # fmt: skip
    summary = stages.scaffold.run(stages.Job(config, 1, silent, {}))
    scaffold = Scaffold.read(tmp_path / "scaffold.h5")
    cores = len(scaffold.dyad)
    assert summary["linker_histones"] == summary["acetylated_nucleosomes"] == cores
    assert scaffold.linker_histones.shape == (cores, 28, 3)
    assert scaffold.linker_histone_core.tolist() == list(range(cores))
