"""`dynamics.tune`: what is tried, what is kept, and that the choice changes no bit of a deterministic run."""

from types import SimpleNamespace

import pytest
from support.chain_in_water import BOX, make_system

from chromabuild.api import run_dynamics
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.pipeline.plan import likely_job
from chromabuild.scaling.machine import find_machine
from chromabuild.simulate import tuning
from chromabuild.simulate.choice import Choice
from chromabuild.simulate.integrity import file_states
from chromabuild.simulate.tuning import Trial, best_of, candidates, nothing_to_choose, read_tuning

CHOICES = [(Choice(ranks, 8 // ranks), 0.01) for ranks in (8, 4, 2)]


def measure(seconds, reciprocal=0.25, tried=None):
    """A measurement that a function of the choice tells; ``tried`` notes choices."""
    def of(choice: Choice, steps: int, seconds_at_most: float) -> Trial:
        if tried is not None:
            tried.append(choice)
        found = seconds(choice)
        return Trial(choice, found, reciprocal, "" if found else "refused")
    return of


def test_the_fastest_is_taken_and_what_is_hardly_faster_is_not():
    def seconds(choice):
        return {8: 0.0099, 4: 0.0098, 2: 0.02}[choice.ranks] * (0.8 if choice.fft == "PENCIL" else 0.98 - 0.01 * (
            choice.load_balance + choice.overlap))

    found = best_of(CHOICES, 10**6, measure(seconds))
    # Four ranks are faster than eight by less than the noise, and so are load balance and overlap.
    assert found.choice == Choice(8, 1, fft="PENCIL")
    assert "the fastest of" in str(found) and str(found).startswith("tune: 8 ranks of 1 thread, FFT pencil")


def test_ranks_for_reciprocal_space_follow_from_its_share():
    tried: list[Choice] = []
    found = best_of(CHOICES, 10**6, measure(lambda choice: 0.01 - 0.002 * (choice.pme_ranks == 2), 0.25, tried))
    assert found.choice.pme_ranks == 2 and found.choice.domains == 6
    assert {choice.pme_ranks for choice in tried} <= {0, 2} | set(range(4))
    assert all(choice.pme_ranks <= choice.ranks // 2 for choice in tried)


def test_what_the_engine_refuses_is_left_out():
    found = best_of(CHOICES, 10**6, measure(lambda choice: None if choice.ranks == 8 else 0.01 * choice.threads))
    assert found.choice == Choice(4, 2) and found.trials[0].problem == "refused"
    with pytest.raises(BadInputError, match="none of the trials ran: refused"):
        best_of(CHOICES, 10**6, measure(lambda choice: None))


def test_trials_that_would_not_pay_are_not_made():
    tried: list[Choice] = []
    found = best_of([(choice, 20.0) for choice, _ in CHOICES], 500, measure(lambda choice: 20.0, tried=tried))
    assert (found.choice, tried) == (Choice(8, 1), [])
    assert "trials would take more than 100 s, which is 1 % of the run or 30 s" in str(found)


@pytest.mark.parametrize(("dynamics", "cores", "why"), [
    ({"engine": "openmm"}, 8, "dynamics.engine openmm chooses by itself"),
    ({}, 1, "on one core there is one way to run"),
    ({"ranks": 1}, 8, None), ({}, 2, None), ({"ranks": 4}, 8, None)])
def test_a_sentence_where_there_is_nothing_to_choose(dynamics, cores, why):
    found = nothing_to_choose(DynamicsSection(tune=True, **dynamics), Settings().simulate, cores)
    assert found is None if why is None else why in found


def test_several_ranks_that_are_given_stay():
    box, atoms = (200.0, 200.0, 200.0), 800_000
    assert candidates(DynamicsSection(ranks=6), box, atoms, 16)[0][0] == Choice(6, 2)
    assert {choice.ranks for choice, _ in candidates(DynamicsSection(ranks=1), box, atoms, 16)} == {1, 2, 4, 8, 16}


def test_a_plan_for_a_machine_takes_whole_nodes():
    build = SimpleNamespace(box=(450.0, 450.0, 450.0), atoms=9_112_500)
    machine = find_machine("infiniband")
    job = likely_job(machine, 4, Settings.model_validate({"dynamics": {"tune": True}}), build)
    assert job.nodes == 4 and job.ranks_per_node * job.threads == machine.node.cores


@pytest.mark.mpi
@pytest.mark.release
def test_the_choice_is_kept_and_changes_no_bit(tmp_path, monkeypatch):
    atoms = sum(len(molecule.charge) * number for molecule, number in make_system(tmp_path, 100, neutral=False))
    monkeypatch.setattr(tuning, "MOST_STEPS", 6)
    monkeypatch.setattr(tuning, "LEAST_SECONDS", 600.0)
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    shards = SimpleNamespace(bricks=tmp_path / "bricks.txt", box=tuple(BOX), atoms=atoms)
    told: list[str] = []

    def run(place: str, threads: int = 2, **dynamics: object):
        config = Settings.model_validate({
            "dynamics": {"cutoff": 8, "pairlist_buffer": 1, "deterministic": True, **dynamics},
            "simulate": {"protocol": None, "output_period": 10, "phases": [
                {"name": "minimise", "kind": "minimise", "steps": 30},
                {"name": "produce", "steps": 20, "timestep": 1}]}})
        told.clear()
        return run_dynamics(tmp_path / "t.h5", shards, tmp_path / place, config, threads=threads,
                            progress=lambda text, share=None: told.append(text))

    found = run("md", tune=True)
    choice = read_tuning(tmp_path / "md").choice
    assert sum("trying" in text for text in told) >= 2 and choice.ranks * choice.threads == 2
    assert len(list((tmp_path / "md/restart").glob("02-produce_[0-9].rst"))) == choice.domains
    assert not (tmp_path / "md/tuning").exists()
    plain = run("alone", threads=1)
    for name, column in plain.energies.columns.items():
        assert (found.energies[name] == column).all(), name
    # Another number of threads, or a run that goes on, chooses nothing anew.
    run("md", threads=1, tune=True)
    assert told[0].startswith(f"tune: {choice} (") and told[1:] == ["minimise: done before", "produce: done before"]
    run("alone", tune=True)
    assert "tune: nothing to choose: the run was begun without" in told[0]

    record = tmp_path / "md" / tuning.FILE_NAME
    assert (record, "ok") in list(file_states(tmp_path / "md"))
    record.write_text(record.read_text().replace('"ranks"', '"rnaks"'))
    with pytest.raises(IntegrityError, match="tuning.json is damaged: delete it"):
        run("md", tune=True)
    assert (record, "damaged") in list(file_states(tmp_path / "md"))
