"""Runs of chromaqm: ranks and threads, dynamics, restarts, and what is refused."""

import signal
import subprocess

import numpy as np
import pytest
from support import systems
from support.plane_waves import HYDROGEN, WATER, Case, compute, rows_of_dynamics, run, write_case

SMALL = Case(WATER, 7.5, 25.0, "BLYP")
DIMER = Case(HYDROGEN, 6.0, 30.0, "PZ")
ION_BATH = {"thermostat": "NOSE_HOOVER", "ion_period": 10, "temperature": 300}
BATHS = ION_BATH | {"state_energy": 5e-4, "state_period": 20}


def test_energies_do_not_depend_on_ranks_and_threads(tmp_path):
    """Also where states on the grid are not kept."""
    alone = compute(tmp_path, SMALL)
    for ranks, threads, memory in ((2, 1, 2048), (3, 1, 0), (4, 1, 2048), (8, 1, 2048)):
        other = compute(tmp_path, SMALL, ranks, threads, ELECTRONS={"memory": memory})
        assert other["total"] == pytest.approx(alone["total"], abs=1e-9)
        np.testing.assert_allclose(other["forces"], alone["forces"], atol=1e-7)
    assert compute(tmp_path, SMALL, 1, 2) == alone, "threads change bits"


def dynamics(folder, case, **keys) -> np.ndarray:
    done = run(folder, write_case(folder, case, DYNAMICS=keys))
    assert done.returncode == 0, done.stderr
    return rows_of_dynamics(done.stdout)


@pytest.mark.parametrize(("method", "baths", "least"), [
    ("RATTLE", {}, (12, 6.0)), ("NONORTHOGONAL", {}, (12, 6.0)), ("RATTLE", BATHS, (12, 6.0)),
    ("BORN_OPPENHEIMER", ION_BATH, (6, 12.0))], ids=["rattle", "nonorthogonal", "baths", "Born-Oppenheimer"])
def test_the_conserved_quantity_is_one_of_second_order(tmp_path, method, baths, least):
    """Velocity Verlet: half the step, a quarter of the error, while a strained water gives its ions energy. With baths
    the sum of the energies of the water is not conserved."""
    spans = []
    steps, time_step = least
    tolerance = {"overlap_tolerance": 1e-4} if method == "NONORTHOGONAL" else {}
    for more in (1, 2):
        rows = dynamics(tmp_path, SMALL, method=method, nsteps=more * steps, timestep=time_step / more, **tolerance,
                        **baths)
        assert len(rows) == more * steps + 1
        conserved = rows[:, 5]
        alone = rows[:, 2] + rows[:, 3] + rows[:, 4]
        if baths:
            assert np.ptp(alone) > 5 * np.ptp(conserved)
        elif method == "RATTLE":  # else what was taken along when states were made orthonormal counts too
            assert conserved == pytest.approx(alone, abs=1e-8)
        spans.append(np.ptp(conserved))
    assert rows[-1, 3] > 1e-3
    assert spans[0] < (5e-5 if method != "BORN_OPPENHEIMER" else 2e-4)
    assert 3.2 < spans[0] / spans[1] < 5.0


def test_baths_hold_the_kinetic_energies(tmp_path):
    """A hydrogen molecule whose states have 5e-4 Ha and whose ions have 150 K alone. Over 75 fs, means of a chain come
    near to what it keeps: the difference falls with 1/time."""
    done = run(tmp_path, write_case(tmp_path, DIMER, DYNAMICS={
        "nsteps": 1300, "timestep": 2.5, "temperature": 300, "thermostat": "NOSE_HOOVER", "ion_period": 10,
        "state_energy": 7e-4, "state_period": 1.5}))
    assert done.returncode == 0, done.stderr
    rows = rows_of_dynamics(done.stdout)
    assert rows[100:, 4].mean() == pytest.approx(7e-4, rel=0.12)
    assert rows[100:, 6].mean() == pytest.approx(300, abs=60)
    assert np.ptp(rows[:, 5]) < 1e-4


def test_free_and_constrained_states_carry_the_ions_alike(tmp_path):
    """They are different dynamics of the states about the same minimum, so ions move alike to the small part that the
    fictitious energy has of theirs."""
    constrained, free = (dynamics(tmp_path, SMALL, method=method, nsteps=10)
                         for method in ("RATTLE", "NONORTHOGONAL"))
    assert free[-1, 3] == pytest.approx(constrained[-1, 3], rel=2e-2)
    assert free[-1, 3] != constrained[-1, 3]


@pytest.mark.parametrize(("method", "more"), [
    ("RATTLE", BATHS), ("NONORTHOGONAL", BATHS | {"overlap_tolerance": 1e-6}), ("BORN_OPPENHEIMER", ION_BATH)])
def test_a_restart_goes_on_bit_for_bit(tmp_path, method, more):
    keys = {"method": method, "nsteps": 4} | more

    def on_two_ranks(name, **sections):
        done = run(tmp_path, write_case(tmp_path, DIMER, name, **sections), 2)
        assert done.returncode == 0, done.stderr

    on_two_ranks("whole", DYNAMICS=keys, OUTPUT={"restartfile": "whole().rst"})
    on_two_ranks("first", DYNAMICS=keys | {"nsteps": 2}, OUTPUT={"restartfile": "half().rst", "xyzfile": "path.xyz"})
    on_two_ranks("second", DYNAMICS=keys | {"nsteps": 2}, INPUT={"restartfile": "half().rst"},
                 OUTPUT={"restartfile": "end().rst", "xyzfile": "path.xyz"})
    for rank in range(2):
        assert (tmp_path / f"whole{rank}.rst").read_bytes() == (tmp_path / f"end{rank}.rst").read_bytes()
    frames = (tmp_path / "path.xyz").read_text().splitlines()
    assert [int(line.split("step=")[1].split()[0]) for line in frames if "step=" in line] == [0, 1, 2, 3, 4]

    control = write_case(tmp_path, DIMER, "second", DYNAMICS=keys, INPUT={"restartfile": "half().rst"})
    done = run(tmp_path, control, 1)
    assert done.returncode == 3
    assert "written by 2 ranks" in done.stderr
    (tmp_path / "half1.rst").write_bytes((tmp_path / "half1.rst").read_bytes()[:-9])
    done = run(tmp_path, control, 2)
    assert done.returncode == 5
    assert "half1.rst: is damaged" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL])
def test_a_run_that_is_stopped_can_go_on(tmp_path, number):
    """Asked to end, it writes restart files and ends with code 7; killed, it leaves those of an even step behind."""
    control = write_case(tmp_path, DIMER, DYNAMICS={"nsteps": 100000},
                         OUTPUT={"restartfile": "stopped.rst", "restart_period": 2})
    with subprocess.Popen([systems.BIN / "chromaqm", "run", control.name], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            if "# dynamics" in line:
                break
        for line in process.stdout:
            if line.split()[0] == "5":
                process.send_signal(number)
                break
        _, complaint = process.communicate(timeout=120)
    more = run(tmp_path, write_case(tmp_path, DIMER, DYNAMICS={"nsteps": 1}, INPUT={"restartfile": "stopped.rst"}))
    step = int(rows_of_dynamics(more.stdout)[0, 0])
    assert 4 <= step < 100000
    if number == signal.SIGKILL:
        assert step % 2 == 0
    else:
        assert process.returncode == 7
        assert f"interrupted at step {step};" in complaint


def test_steepest_descent_finds_the_same_minimum(tmp_path):
    """With the same preconditioner, on another way."""
    case = Case(HYDROGEN, 6.0, 30.0, "PZ", tolerance=1e-9)
    found = [compute(tmp_path, case, MINIMIZE={"method": name}) for name in ("CG", "SD")]
    assert found[1]["total"] == pytest.approx(found[0]["total"], abs=2e-9)
    assert found[1]["steps"] != found[0]["steps"]


def test_a_run_that_does_not_converge_says_how_far_it_came(tmp_path):
    done = run(tmp_path, write_case(tmp_path, DIMER, MINIMIZE={"nsteps": 3}))
    assert done.returncode == 10
    assert "not reached in 3 steps" in done.stderr
    assert "can still be gained" in done.stderr
    assert '"converged": false' in (tmp_path / "case.json").read_text()


@pytest.mark.parametrize(("case", "sections", "words"), [
    (Case((("Xe", 0, 0, 0), ("Xe", 4, 0, 0)), 9, 40, "PZ"), {}, ["no LDA potential of Xe", "UPF"]),
    (Case(WATER, 9, 40, "PBE"), {}, ["no PBE potential of O"]),
    (Case(WATER, 9, 40, "PZ", 1), {}, ["odd number of electrons, 7"]),
    (Case(WATER, 9, 40, "PZ", 8), {}, ["leaves 0 electrons"]),
    (Case(WATER, 3.5, 40, "PZ"), {}, ["box", "too small", "4.00"]),
    (Case((*WATER, ("H", 0.4, 0.2, 0.3)), 9, 40, "PZ"), {}, ["overlapping", "O (atom 1)", "H (atom 4)", "0.159"]),
    (Case((("Mg", 0, 0, 0),), 9, 40, "PZ", 2), {"INPUT": {"gth1": "Mg 10"}}, ["cutoff", "Mg", "90 Ry"]),
    (Case(WATER, 9, 40, "PZ"), {"INPUT": {"upf1": "O none.upf"}}, ["none.upf", "cannot be read"]),
    (Case(WATER, 9, 40, "PZ"), {"INPUT": {"atomfile": "none.xyz"}}, ["none.xyz", "cannot be opened"]),
    (Case(WATER, 9, 40, "PZ"), {"SYSTEM": {"box": "a b c"}}, ["box", "one length or three"]),
    (Case(WATER, 9, 40, "PZ"), {"ELECTRONS": {"cutof": 3}}, ["line", "'cutof'", "nearest is 'cutoff'"]),
    (Case(WATER, 9, 40, "PZ"), {"ELECTRONS": {"local_sums": "SPLINE", "spline_order": 7}}, ["spline_order = 7 is odd"]),
    (Case(WATER, 9, 40, "PZ"), {"ELECTRONS": {"spline_order": 26, "local_sums": "SPLINE"}}, ["must be from 4 to 24"]),
    (Case(WATER, 9, 40, "PZ"), {"INPUT": {"restartfile": "a", "statesfile": "b"}, "DYNAMICS": {}},
     ["statesfile = b has no effect beside restartfile", "leave one of them out"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"INPUT": {"upf1": "O none.upf"}}, ["line 4", "upf1", "no such atom in case.xyz"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"INPUT": {"gth1": "O 6"}}, ["line 4", "gth1", "no such atom in case.xyz"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"INPUT": {"gth1": "H 1", "gth2": "H 1"}}, ["line 5", "second potential of H"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"INPUT": {"gth1": "H 1 2"}}, ["line 4", "not an element and a charge"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"SYSTEM": {"box": "6 7"}}, ["box = 6 7", "one length or three"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"MINIMIZE": {"nsteps": 3000000000}}, ["nsteps", "from 0 to 1e9"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"DYNAMICS": {"chain_links": 1000}}, ["chain_links", "from 1 to 100"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"PARALLEL": {"layer": "OBJECTS", "numchunks": 1000000}}, ["numchunks", "waves"]),
    (Case(HYDROGEN, 6, 1e5, "PZ"), {}, ["cutoff", "GB of memory", "lower it"]),
    (Case(HYDROGEN, 6, 30, "PZ"), {"ELECTRONS": {"local_sums": "SPLINE", "spline_scale": 1e9}}, ["from 1.0 to 10.0"]),
])
def test_bad_input_ends_in_a_sentence(tmp_path, case, sections, words):
    done = run(tmp_path, write_case(tmp_path, case, **sections))
    assert done.returncode == 3
    lines = [line for line in done.stderr.splitlines() if line.startswith("chromaqm: ")]
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines[0]
    assert not (tmp_path / "case.json").exists()


def test_atoms_that_are_none(tmp_path):
    control = write_case(tmp_path, DIMER)
    for text, words in (("two\n", "line 1: the number of atoms"), ("2\n\nH 0 0 0\nH 0 0\n", "line 4"),
                        ("3\n\nH 0 0 0\nH 0 0 1.4\n", "atom 3 of 3")):
        (tmp_path / "case.xyz").write_text(text)
        done = run(tmp_path, control)
        assert done.returncode == 3
        assert words in done.stderr


def test_help_is_a_control_file():
    done = systems.run("help", "ELECTRONS", program="chromaqm")
    assert done.returncode == 0
    assert done.stdout.startswith("[ELECTRONS]")
    assert "[Ry]" in done.stdout
    wrong = systems.run("help", "ELECTRON", program="chromaqm")
    assert wrong.returncode == 2
    assert "nearest is [ELECTRONS]" in wrong.stderr


@pytest.mark.parametrize(("text", "words"), [
    ("2\n\nH 1 2 3\nH 2 3 4\nH 3 4 5\n", ["line 5", "more lines than the 2 atoms", "correct the number"]),
    ("2\n\nH 1 2 3\nH 2 3 4\n\n# the end\n", ["line 5", "more lines than the 2 atoms"]),
    ("2000000000\n\nH 1 2 3\nH 2 3 4\n", ["line 5", "the file ends", "atom 3 of 2000000000"]),
    ("2\n", ["line 3", "atom 1 of 2"]),
    ("2\n\nH 1 2 3\nH / 3 4\n", ["line 4", "is not an atom"]),
])
def test_a_file_of_atoms_holds_what_it_counts(tmp_path, text, words):
    control = write_case(tmp_path, DIMER)
    (tmp_path / "case.xyz").write_text(text)
    done = run(tmp_path, control)
    assert done.returncode == 3
    for word in words:
        assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_blank_lines_after_the_atoms_say_nothing(tmp_path):
    control = write_case(tmp_path, DIMER)
    with open(tmp_path / "case.xyz", "a") as file:
        file.write("\n  \n")
    assert run(tmp_path, control).returncode == 0
