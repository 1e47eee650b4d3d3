"""Tails and linker histones that move with their cores, and runs that are stopped and go on."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mesoscale
from mesoscale.cores import crystal_core
from mesoscale.energy import energies
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import fold, grow_tails
from mesoscale.kernels import kernel_energies
from mesoscale.model import TERMS, Parameters, build_chain, straight_conformation
from mesoscale.montecarlo import RANDOM_PER_TRIAL, SWEEPS_BEFORE_REGROWTH, CoupledTails, Walk, sample
from mesoscale.restraints import HARDEST, WIDEST, contact_report, shared_out, stiffened
from mesoscale.tails import TAIL_BEADS, Places, TailWalk, carried_beads, heads_alone, limbs_of, tails_of_fibre
from mesoscale.trajectory import Trajectory

FIBRE = Fibre("ACGT" * 150, (95, 270, 460), linker_histone=(False, True, False), acetylated=(True, False, False))
PARAMETERS = Parameters(tails="flexible")


@pytest.fixture(scope="module")
def nucleosomes():
    """A fibre of three nucleosomes with sampled tails, one with a linker histone."""
    chain = replace(build_chain(FIBRE, PARAMETERS), shape=crystal_core(rigid_tails=False))
    tails = tails_of_fibre(FIBRE, PARAMETERS)
    position, frame = straight_conformation(chain)
    left, _, right = np.linalg.svd(frame)  # crystal frames are rounded: rotations to 1e-6 only
    conformation = position, left @ right
    walk = grow_tails(tails, chain, *conformation, seed=1)
    places = Places.of(tails, 3)
    chain = replace(chain, limbs=limbs_of(tails, places, chain, *conformation, walk.beads))
    return chain, conformation, tails, places, walk


def moved(chain, position, frame, p, seed):
    """The conformation with core p shifted and turned a little."""
    random = np.random.Generator(np.random.Philox(key=seed))
    position, frame = position.copy(), frame.copy()
    position[p] += 0.3 * random.standard_normal(3)
    turn = np.linalg.qr(np.eye(3) + 0.1 * random.standard_normal((3, 3)))[0]
    frame[p] = turn * np.sign(np.diag(turn)) @ frame[p]
    return position, frame


def test_limbs_are_the_chains_of_their_cores(nucleosomes):
    chain, conformation, tails, places, walk = nucleosomes
    limbs = chain.limbs
    assert (limbs.kind > 0).sum(axis=1).tolist() == [50, 50 + 22 + 6, 50]
    beads = carried_beads(limbs, places, chain, *conformation, len(walk.beads))
    assert np.allclose(beads, walk.beads, rtol=0, atol=1e-9)
    assert limbs.charge[0].sum() == pytest.approx(tails.charge[: TAIL_BEADS].sum())


def test_kernel_and_numpy_agree_on_limbs(nucleosomes):
    chain, conformation, *_ = nucleosomes
    where = moved(chain, *conformation, chain.cores[1], seed=2)
    expected = energies(chain, *where)
    found = dict(zip(TERMS, kernel_energies(chain, *where), strict=True))
    for term in ("electrostatic", "excluded"):
        assert found[term] == pytest.approx(expected[term], rel=1e-9, abs=1e-9)
    without = kernel_energies(replace(chain, limbs=None), *where)
    assert abs(found["electrostatic"] - without[TERMS.index("electrostatic")]) > 10


@pytest.mark.parametrize("core", range(3))
def test_moving_a_core_costs_the_same_in_both_kernels(nucleosomes, core):
    """The fibre's kernel takes along what the tails' kernel regrows: for the two to sample one distribution, a core
    that moves with its chains must change the energy of limbs by what it changes all pairs of chains. Heads of linker
    histones belong to the fibre, but for their pairs with chains."""
    chain, conformation, tails, places, walk = nucleosomes
    where = moved(chain, *conformation, chain.cores[core], seed=3)
    beads = carried_beads(chain.limbs, places, chain, *where, len(walk.beads))
    after = TailWalk.begin(tails, chain, *where, beads).energy
    bare = replace(chain, limbs=heads_alone(chain.limbs))
    of_limbs = [kernel_energies(chain, *at) - kernel_energies(bare, *at) for at in (where, conformation)]
    difference = of_limbs[0] - of_limbs[1]
    # Terms of the chains: bond, bend, tether stay; electrostatic and excluded volume change.
    assert after[:3] == pytest.approx(walk.energy[:3], abs=1e-8)
    scale = np.abs(after[3:]).sum()
    assert after[3:] - walk.energy[3:] == pytest.approx(difference[3:5], abs=1e-9 * scale)
    assert np.abs(difference[3]) > 0.1


def test_running_energy_with_limbs(nucleosomes):
    """`advance` compares it with the full sum and raises when they differ by more than 1e-8."""
    chain, conformation, _, _, tail_walk = nucleosomes
    walk = Walk.begin(chain, *conformation)
    coupled = CoupledTails.begin(tail_walk, 3)
    random = np.random.Generator(np.random.Philox(key=4))
    for _ in range(3):
        walk.advance(random.random((6 * chain.n, RANDOM_PER_TRIAL)), strict=False)
        coupled.regrow(walk, random)
    assert walk.accepted.sum() > 0 and coupled.accepted > 0
    whole = coupled.whole_energy(walk)
    assert whole["stretch"] == pytest.approx(walk.energy[0])
    assert coupled.energy == pytest.approx(
        TailWalk.begin(coupled.tails, walk.chain, walk.position, walk.frame, coupled.beads).energy)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("hotter", [(), (1.1, 1.3)])
def test_a_stopped_run_goes_on_to_the_last_bit(nucleosomes, tmp_path, hotter):
    """With flexible tails, or with walks at higher temperatures."""
    chain, conformation, _, _, tail_walk = nucleosomes
    chain = replace(chain, limbs=None, contact=np.array([[0, chain.n - 1]], np.int32), contact_k=np.array([0.3]),
                    contact_distance=np.array([2.0]))  # fmt: skip

    def run(trajectory, stop_at=2.0):
        def stop(share, state):
            if share >= stop_at:
                raise StoppedError

        tails = None if hotter else CoupledTails.begin(tail_walk, 3)
        sweeps = 8 if hotter else 8 * SWEEPS_BEFORE_REGROWTH  # eight frames either way
        return sample(chain, *conformation, sweeps, 5, stop, tails, trajectory, hotter)

    whole = run(None)
    for stop_at in (0.25, 0.75):  # in the burn-in, and after it
        path = tmp_path / f"{stop_at}.h5"
        with pytest.raises(StoppedError):
            run(Trajectory(path, {"run": 1}, 9), stop_at)
        assert Trajectory(path, {"run": 2}, 9).last() == (0, {})  # another run's file is not gone on with
        again = Trajectory(path, {"run": 1}, 9)
        assert again.last()[0] == 8 * stop_at + 1
        resumed = run(again)
        assert np.array_equal(resumed.walk.position, whole.walk.position)
        assert np.array_equal(resumed.walk.frame, whole.walk.frame)
        assert hotter or np.array_equal(resumed.tails.beads, whole.tails.beads)
        assert resumed.acceptance == whole.acceptance
        assert len(resumed.snapshots) == len(whole.snapshots)
        for name, series in whole.series.items():
            assert np.array_equal(resumed.series[name], series), name
        assert np.array_equal(resumed.snapshots[0][0], whole.snapshots[0][0])
        assert Trajectory(path, {"run": 1}, 9).last() == (0, {})  # a finished one is made anew


def test_frames_of_a_killed_writer_are_gone_on_with(tmp_path):
    """And only those before one that is damaged."""
    path = tmp_path / "killed.h5"
    writer = (
        "import os, signal, sys; import numpy as np; from mesoscale.trajectory import Trajectory\n"
        "t = Trajectory(sys.argv[1], {'run': 1}, 9); t.begin(0, {'x': np.zeros(3)})\n"
        "[t.append({'x': np.full(3, k)}) for k in range(4)]\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    paths = os.pathsep.join([str(Path(mesoscale.__file__).parents[1]), *sys.path])
    killed = subprocess.run([sys.executable, "-c", writer, str(path)], env={**os.environ, "PYTHONPATH": paths})
    assert killed.returncode == -signal.SIGKILL
    trajectory = Trajectory(path, {"run": 1}, 9)
    frames, last = trajectory.last()
    assert frames == 4 and last["x"].tolist() == [3.0, 3.0, 3.0]
    trajectory.begin(frames, last)
    trajectory.append({"x": np.full(3, 7.0)})
    trajectory.close()
    assert Trajectory(path, {"run": 1}, 9).frames("x", 5)[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 7.0]
    assert [file.name for file in tmp_path.iterdir()] == ["killed.h5"]
    undisturbed = Trajectory(tmp_path / "whole.h5", {"run": 1}, 9)
    undisturbed.begin(0, last)
    for value in (0.0, 1.0, 2.0, 3.0, 7.0):
        undisturbed.append({"x": np.full(3, value)})
    undisturbed.close()
    assert path.read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_frames_behind_a_damaged_one_are_given_up(tmp_path):
    path = tmp_path / "harmed.h5"
    trajectory = Trajectory(path, {"run": 1}, 9)
    trajectory.begin(0, {"x": np.zeros(3), "empty": np.zeros((0, 2))})
    for value in range(4):
        trajectory.append({"x": np.full(3, 0.1 + value), "empty": np.zeros((0, 2))})
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(2.1).tobytes())] ^= 1
    path.write_bytes(content)
    frames, last = Trajectory(path, {"run": 1}, 9).last()
    assert frames == 2 and last["x"].tolist() == [1.1, 1.1, 1.1] and last["empty"].shape == (0, 2)


def test_impossible_temperatures(nucleosomes):
    chain, conformation, _, _, tail_walk = nucleosomes
    for hotter, tails in (((1.2, 1.1), None), ((0.9,), None), ((1.1,), CoupledTails.begin(tail_walk, 3))):
        with pytest.raises(ValueError, match="must ascend from above 1, and tails must be rigid"):
            sample(chain, *conformation, 1, 1, tails=tails, hotter=hotter)


def test_open_contacts_are_held_harder_up_to_a_limit():
    rest = np.full(4, 12.0)
    found = stiffened(np.array([0.3, 0.3, 9.9, 20.0]), np.array([WIDEST * 12 - 0.1, 16.0, 90.0, 90.0]), rest)
    assert found == pytest.approx([0.3, 0.39, HARDEST, 20.0])


def test_replicas_share_contacts_by_frequency():
    """By the published rule: of 5 replicas the strongest contact is in 5, one halfway in 3, the weakest in 1."""
    contacts = tuple(Contact((10 * k, 10 * k + 1), (500, 501), weight) for k, weight in enumerate((10.0, 6.0, 2.0)))
    shared = [shared_out(contacts, replica, 5) for replica in range(1, 6)]
    assert [sum(contact in of_one for of_one in shared) for contact in contacts] == [5, 3, 1]
    assert shared_out(contacts, 1, 1) == contacts and shared_out((), 2, 5) == ()
    alike = (contacts[0], replace(contacts[1], weight=10.0))
    assert all(shared_out(alike, replica, 4) == alike for replica in range(1, 5))


def test_a_walk_holds_an_open_contact_harder(nucleosomes):
    """Strengths, energy and report follow; the contact that is closed keeps what its weight gave it."""
    contacts = (Contact((0, 1), (598, 599), 4.0), Contact((95, 96), (460, 461), 1.0))
    chain = build_chain(replace(FIBRE, contacts=contacts), Parameters(contact_distance=14.0))
    conformation = straight_conformation(chain)
    walk = Walk.begin(chain, *conformation)
    before = walk.energy[TERMS.index("restraint")]  # all of it the open one's
    walk.stiffen()
    assert walk.chain.contact_k == pytest.approx([1.3, 0.25])
    assert walk.energy[TERMS.index("restraint")] == pytest.approx(1.3 * before)
    report = contact_report(contacts, chain.bp, conformation[0], 12.0, walk.chain.contact_k)
    assert [contact["kept"] for contact in report] == [False, True]
    assert [contact["stiffness"] for contact in report] == pytest.approx([1.3, 0.25])


def test_folding_with_marks(tmp_path):
    """Flexible tails and a linker histone from end to end; the file holds their beads on their nucleosomes."""
    scaffold = fold(FIBRE, PARAMETERS, 3, 1, trajectory=tmp_path / "trajectory.h5")
    assert scaffold.floor_violations == 0
    assert scaffold.tails.shape == (3, 50, 3) and scaffold.linker_histones.shape == (1, 28, 3)
    assert scaffold.linker_histone_core.tolist() == [1]
    head = scaffold.linker_histones[0, :6].mean(axis=0)
    assert 40 < np.linalg.norm(head - scaffold.core_origin[1]) < 80
    assert "tail regrowth" in scaffold.acceptance and (scaffold.energy["tail bond"] > 0).all()
    with pytest.raises(ValueError, match="flexible tails need fitted"):
        fold(FIBRE, replace(PARAMETERS, core_charges="formal"), 3, 1)
    with pytest.raises(ValueError, match="2 marks for 3 nucleosomes"):
        replace(FIBRE, acetylated=(True, False))


def test_magnesium_shortens_the_reach_of_linkers():
    """Two beads by hand; and both implementations agree on a fibre."""
    chain = build_chain(FIBRE, Parameters(magnesium=True))
    plain = build_chain(FIBRE, Parameters())
    assert chain.bend_k == pytest.approx(0.6 * plain.bend_k)
    conformation = straight_conformation(chain)
    found, expected = kernel_energies(chain, *conformation), energies(chain, *conformation)
    assert found[3] == pytest.approx(expected["electrostatic"], rel=1e-9)
    silent = replace(chain.shape, site_charge=np.zeros_like(chain.shape.site_charge))
    beads, without = (kernel_energies(replace(one, shape=silent), *conformation)[3] for one in (chain, plain))
    assert 0 < beads < 0.5 * without
