"""What goes wrong is told in one sentence, with the exit code of its kind and without a traceback."""

import errno
import itertools
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import pytest
from typer.testing import CliRunner

from chromabuild.base.errors import (
    BadInputError,
    ClashesRemainError,
    IntegrityError,
    InterruptedRunError,
    ResourceError,
)
from chromabuild.base.in_use import in_use
from chromabuild.base.settings import INPUT_FILE_KEYS, Settings, load_config, parse_override
from chromabuild.base.stop_signals import STOPS
from chromabuild.cli import app
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.template_file import read_template
from chromabuild.pipeline import chain, inspect, validation
from chromabuild.pipeline.stages import Stage


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_sentence(result, code):
    assert result.exit_code == code, result.output
    lines = result.stderr.strip().splitlines()
    assert len([line for line in lines if line.startswith("chromabuild: ")]) == 1
    assert "Traceback" not in result.stderr and result.stdout == ""
    return lines[-1]


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "locus.yaml"
    path.write_text("seed: 3\noutput: out\n")
    return path


@pytest.mark.parametrize(("text", "told"), [
    ("locus: [\n", "line 2"),
    ("locus: {fasta: 'a\n", "not valid YAML"),
    ("just words\n", "holds no settings"),
    ("clash: {treshold: 1}\n", "unknown setting clash.treshold"),
    ("solvate: {box: [100, -3, 100]}\n", "solvate.box"),
    ("solvate: {box: [100, 100]}\n", "solvate.box"),
    ("solvate: {padding: wide}\n", "solvate.padding = 'wide'"),
    ("simulate: {phases: [{name: a, steps: 0}]}\n", "simulate.phases.0.steps = 0"),
    ("dynamics: {steps: 5}\n", "dynamics.steps has moved: give it to a phase of simulate.phases"),
    ("dynamics: {temperature: 5}\n", "dynamics.temperature has moved: set simulate.temperature"),
    ("dynamics: 3\n", "dynamics = 3"),
    ("dynamics: {launcher: mpirum}\n", "dynamics.launcher = 'mpirum' is neither auto, mpirun, srun or flux nor"),
    ("dynamics: {launcher: 'srun {program}'}\n", "with {ranks} and {program}: write e.g. srun -n {ranks} {program}"),
    ("dynamics: {launcher: 'srun -n {rank} {program}'}\n", "has {rank}, which stands for nothing"),
    ("dynamics: {launcher: 'sh -c \"{ranks} {program}'}\n", "cannot be split into words (no closing quotation)"),
    ("dynamics: {launcher: '{program} -n {ranks}'}\n", "begins with {program}: put the command that starts it first"),
    ("dynamics: {launcher: ''}\n", "dynamics.launcher = '' is neither"),
    ("seed: -1\n", "seed = -1"),
    ("\xff\xfe", "not valid YAML"),
])
def test_bad_settings(tmp_path, text, told):
    path = tmp_path / "locus.yaml"
    path.write_bytes(text.encode("latin-1"))
    line = one_sentence(invoke("validate", "--config", path), 3)
    assert told in line and "locus.yaml" in line


@pytest.mark.parametrize(("phases", "told"), [
    ("[{name: a, temperature: [10, 310], ensemble: NVE, steps: 3}]", "phase 1 (a): a ramp of the temperature needs a "
     "thermostat: set ensemble to NVT or NPT"),
    ("[{name: a, steps: 3}, {name: b, steps: 3}, {name: a, steps: 3}]", "phase 3 (a): the name is that of phase 1 too"),
    ("[{name: a, length: -3 ps}]", "phase 1 (a): length '-3 ps' is not a positive number"),
    ("[{name: a, length: 3}]", "length"),
    ("[{name: a, length: 3 weeks}]", "with the unit fs, ps, ns or us"),
    ("[{name: a}]", "dynamics needs a length such as '50 ps', or steps"),
    ("[{name: a, length: 3 ps, steps: 4}]", "length and steps are both given: remove one"),
    ("[{name: a, steps: 3, timestep: 4}]", "a timestep of 4 fs is too long for hydrogen_mass_factor 1: set that to 3"),
    ("[{name: a, steps: 3, timestep: 5, hydrogen_mass_factor: 4}]", "too long for any masses: 4 fs is the longest"),
    ("[{name: a, steps: 3, pressure: 2}]", "only the ensemble NPT has a pressure"),
    ("[{name: a, kind: minimise, steps: 3, temperature: 3}]", "a minimisation has no temperature"),
    ("[{name: a, kind: minimise}]", "a minimisation needs steps"),
    ("[{name: a, kind: minimise, steps: 3, restraints: [{group: dna, constant: [1, 0]}]}]", "cannot release"),
    ("[{name: a, steps: 3, restraints: [{group: dna, constant: [1, -1]}]}]", "a restraint has the constant -1"),
    ("[{name: a, steps: 3, restraints: [{group: cats, constant: 1}]}]", "restraints.0.group = 'cats'"),
    ("[{name: a b, steps: 3}]", "phases.0.name = 'a b'"),
    ("[{name: a, steps: 3, exchange: {temperatures: [300]}}]", "exchange.temperatures has fewer than two"),
    ("[{name: a, steps: 3, exchange: {temperatures: [310, 300]}}]", "exchange.temperatures must ascend"),
    ("[{name: a, steps: 3, temperature: 3, exchange: {temperatures: [3, 4]}}]", "are both given: remove temperature"),
    ("[{name: a, steps: 3, ensemble: NVE, exchange: {temperatures: [3, 4]}}]", "needs a thermostat"),
    ("[{name: a, steps: 3, exchange: {temperatures: [3, 4]}}, {name: b, steps: 3}]", "phase 1 (a): a phase with "
     "exchange leaves one state for each temperature: make it the last"),
    ("[{name: a, steps: 3, exchange: {temperatures: [3, 4]}}]", "dynamics.ranks = 1 cannot be shared out evenly among "
     "the 2 temperatures of phase a: give a multiple of 2"),
    ("[{name: a, steps: 3, exchange: {temperatures: [3, 4]}}]\ndynamics: {engine: openmm, ranks: 2}", "which "
     "dynamics.engine openmm does not: set dynamics.engine to chromamd"),
    ("[{name: a, steps: 3, boost: {mode: watch}}]", "boost.period is 50000 steps and the phase has 3"),
    ("[{name: a, steps: 3, boost: {mode: hold}}]", "begins with what an earlier phase has learnt"),
    ("[{name: a, steps: 3, boost: {mode: watch, period: 3}}, "
     "{name: b, steps: 3, boost: {mode: hold, energies: torsions}}]", "what was learnt is of other energies"),
    ("[{name: a, steps: 3, boost: {mode: watch, period: 3}, exchange: {temperatures: [3, 4]}}]\ndynamics: {ranks: 2}",
     "does not go with exchange"),
    ("[{name: a, kind: minimise, steps: 3, boost: {mode: watch}}]", "a minimisation has no boost"),
    ("[{name: a, steps: 3, boost: {mode: watch, period: 3}}]\ndynamics: {engine: openmm}", "has a boost, which "
     "dynamics.engine openmm does not know"),
    ("[]", "simulate has neither protocol nor phases"),
])
def test_phases_that_contradict_themselves(tmp_path, phases, told):
    path = tmp_path / "locus.yaml"
    path.write_text(f"simulate:\n  protocol:\n  phases: {phases}\n")
    line = one_sentence(invoke("validate", "--config", path), 3)
    assert told in line and "locus.yaml" in line


def test_protocol_and_phases_take_each_other_s_place(tmp_path):
    path = tmp_path / "locus.yaml"
    path.write_text("simulate: {protocol: demo, phases: [{name: a, steps: 3}]}\n")
    line = one_sentence(invoke("validate", "--config", path), 3)
    assert "simulate.protocol and simulate.phases are both given" in line
    for replacement, names in (("simulate.protocol=demo", ["minimise", "dynamics"]),
                               ("simulate.phases=[{name: b, steps: 1}]", ["b"])):
        config = load_config(path, dict([parse_override(replacement)]))
        assert [phase.name for phase in config.simulate.chosen()] == names


def test_restraints_on_histones_need_nucleosomes():
    held = {"name": "a", "steps": 1, "restraints": [{"group": "tails", "constant": 1}]}
    config = Settings(simulate={"phases": [held]})
    validation.check_restraints(config, 1)
    with pytest.raises(BadInputError, match="phase a of simulate restrains tails, and the locus has no nucleosome"):
        validation.check_restraints(config, 0)


def test_settings_with_carriage_returns_are_read(tmp_path):
    path = tmp_path / "locus.yaml"
    path.write_bytes(b"seed: 3\r\nlocus:\r\n  fasta: nowhere.fa\r\n")
    assert "nowhere.fa" in one_sentence(invoke("scaffold", "--config", path), 3)


def test_missing_files(tmp_path, settings):
    assert "chromabuild init" in one_sentence(invoke("all", "--config", tmp_path / "none.yaml"), 3)
    assert "cannot be read" in one_sentence(invoke("all", "--config", tmp_path), 3)
    assert "locus.fa" in one_sentence(invoke("scaffold", "--config", settings), 3)
    assert "run `chromabuild scaffold` first" in one_sentence(invoke("build", "--config", settings), 3)
    assert "no results" in one_sentence(invoke("verify", "--config", settings), 3)


@pytest.mark.parametrize(("override", "told"), [
    ("dynamics.ranks", "section.key=value"), ("nonsense.key=1", "nonsense"), ("seed.x=1", "seed"),
    ("dynamics.ranks=[", "section.key=value"), ("dynamics.ranks=many", "dynamics.ranks"),
])
def test_bad_overrides(settings, override, told):
    assert told in one_sentence(invoke("validate", "--config", settings, "--set", override), 3)


def failing(error):
    def run(*_):
        raise error
    return run


def test_an_interruption_is_one_whatever_becomes_of_it(settings, monkeypatch):
    """Python makes a RuntimeError of what comes while it names the members of a class, readers a damaged file."""
    for told in (RuntimeError("Error calling __set_name__"), IntegrityError("damaged")):
        told.__cause__ = KeyboardInterrupt()
        monkeypatch.setattr("chromabuild.pipeline.validation.check_all", failing(told))
        monkeypatch.setattr(chain, "describe", failing(told))
        assert "interrupted" in one_sentence(invoke("scaffold", "--config", settings), 7)


def test_an_interruption_waits_for_an_import(settings, monkeypatch, tmp_path):
    """A module in C++ that meets one while it is loaded ends the process."""
    (tmp_path / "slow_to_load.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nloaded = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def load(*_):
        import slow_to_load
        assert slow_to_load.loaded
        time.sleep(10)

    monkeypatch.setattr(chain, "describe", load)
    assert "interrupted" in one_sentence(invoke("scaffold", "--config", settings), 7)
    assert sys.modules.pop("slow_to_load").loaded


def test_a_stage_is_refused_beside_the_dynamics(settings):
    """In another thread, as in another process; a report reads what is there."""
    folder = settings.parent / "out" / "md"
    with in_use(folder), ThreadPoolExecutor(1) as pool:
        (settings.parent / "out" / "solute.h5").write_bytes(b"x")
        line = one_sentence(pool.submit(invoke, "clash", "--config", settings).result(), 9)
    assert f"process {os.getpid()}" in line and str(folder) in line


@pytest.mark.parametrize(("error", "code"), [
    (BadInputError("x"), 3), (ClashesRemainError("x"), 4), (IntegrityError("x"), 5), (ResourceError("x"), 6),
    (InterruptedRunError("x"), 7), (KeyboardInterrupt(), 7), (MemoryError(), 6), (OSError(errno.ENOMEM, "x"), 6),
    (RuntimeError("can't start new thread"), 6), (ImportError("lib.so: failed to map segment from shared object"), 6),
    (OSError(errno.ENOSPC, "No space left on device", "file"), 6), (PermissionError(errno.EACCES, "denied", "f"), 6),
    (RuntimeError("odd\nthing"), 1), (ValueError("odd"), 1),
])
def test_exit_codes(settings, monkeypatch, error, code):
    (settings.parent / "out").mkdir()
    (settings.parent / "out" / "solute.h5").write_bytes(b"x")
    stage = chain.stage_named("clash")
    broken = Stage(**(vars(stage) | {"run": failing(error)}))
    monkeypatch.setattr(chain, "STAGES", tuple(broken if s.name == "clash" else s for s in chain.STAGES))
    line = one_sentence(invoke("clash", "--config", settings), code)
    assert ("please report" in line) == (code == 1)


@pytest.mark.parametrize("number", STOPS)
def test_signals_that_ask_to_stop_end_any_command_alike(settings, monkeypatch, number):
    if signal.getsignal(number) is signal.SIG_IGN:  # tests that were started under nohup
        signal.signal(number, signal.SIG_DFL)
    before = signal.getsignal(number)
    monkeypatch.setattr(inspect, "locus_summary", lambda *_: os.kill(os.getpid(), number))
    assert "the same command continues" in one_sentence(invoke("validate", "--config", settings), 7)
    assert signal.getsignal(number) is before


def test_a_fault_shows_its_traceback_when_asked_for(settings, monkeypatch):
    monkeypatch.setenv("CHROMABUILD_DEBUG", "1")
    monkeypatch.setattr(inspect, "locus_summary", failing(RuntimeError("odd")))
    assert isinstance(invoke("validate", "--config", settings).exception, RuntimeError)


def test_complaints_of_mesoscale_are_bad_input(settings, monkeypatch):
    """mesoscale knows nothing of chromabuild's errors: its ValueErrors are about what the user gave."""
    namespace = {"__name__": "mesoscale.montecarlo"}
    exec("def sample(*_):\n    raise ValueError('salt must be positive: give mol/L')", namespace)
    monkeypatch.setattr(inspect, "locus_summary", namespace["sample"])
    assert "salt must be positive" in one_sentence(invoke("validate", "--config", settings), 3)


def test_init_writes_settings_that_load(tmp_path):
    (tmp_path / "my.fa").write_text(">x\nACGT\n")
    result = invoke("init", tmp_path / "build", "--fasta", tmp_path / "my.fa", "--seed", 9, "--json",
                    "--set", "clash.threshold=0.8")
    written = json.loads(result.stdout)["written"]
    assert result.exit_code == 0 and written == [str(tmp_path / "build" / "locus.yaml")]
    from chromabuild.base.settings import Settings, load_config

    config = load_config(written[0])
    assert (config.seed, config.clash.threshold, config.locus.fasta) == (9, 0.8, str(tmp_path / "my.fa"))
    assert config.dynamics == Settings().dynamics
    assert "already there" in one_sentence(invoke("init", tmp_path / "build"), 3)
    assert invoke("init", tmp_path / "build", "--force").exit_code == 0
    assert "--contacts" in one_sentence(invoke("init", tmp_path / "b", "--contacts", tmp_path / "no.bed"), 3)


def test_init_names_only_files_that_are_there(tmp_path, monkeypatch):
    """In settings too: seen from the new folder, or, as options are, from here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.fa").write_text(">x\nACGT\n")
    (tmp_path / "reads.bed").touch()
    init = ["init", "build", "--fasta", "my.fa"]
    for key in INPUT_FILE_KEYS:
        name = ".".join(key)
        setting = f"{name}={'[no.such]' if key[1] == 'force_field_files' else 'no.such'}"
        assert f"no.such does not exist: correct --set {name}" in one_sentence(invoke(*init, "--set", setting), 3)
    assert not (tmp_path / "build").exists()
    assert invoke("init", "other", *init[2:], "--set", "build.methylation=../reads.bed").exit_code == 0
    assert load_config(tmp_path / "other" / "locus.yaml").build.methylation == str(tmp_path / "reads.bed")
    assert invoke(*init, "--set", "build.methylation=reads.bed").exit_code == 0
    assert load_config(tmp_path / "build" / "locus.yaml").build.methylation == str(tmp_path / "reads.bed")
    (tmp_path / "build" / "reads.bed").touch()
    assert invoke(*init, "--set", "build.marks=[reads.bed]", "--force").exit_code == 0
    assert load_config(tmp_path / "build" / "locus.yaml").build.marks == (str(tmp_path / "build" / "reads.bed"),)


def test_init_that_cannot_write_leaves_nothing(tmp_path, monkeypatch):
    """A second trial must not find files of the first already there."""
    monkeypatch.setattr("os.fsync", fails_at(2))
    assert "cannot write" in one_sentence(invoke("init", tmp_path / "a" / "b", "--array", "2x601:197"), 6)
    assert not list(tmp_path.iterdir())


def fails_at(call: int):
    """A function of which this call and all later ones find a full disk."""
    calls = itertools.count(1)

    def fsync(_: int) -> None:
        if next(calls) >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fsync


@pytest.mark.parametrize(("read", "needed"), [(Solute.read, "solute"), (Topology.read, "topology"),
                                              (read_template, "nucleosome template")])
def test_files_of_another_kind_are_named_for_what_they_are(tmp_path, read, needed):
    for kind, words in (("chromabuild-scaffold", "is a scaffold, and"), ("x", "is an HDF5 file of another origin, and"),
                        (f"chromabuild-{needed.split()[0]}", f"is a {needed} of another version, and")):
        path = tmp_path / f"{kind}.h5"
        with h5py.File(path, "w") as file:
            file.attrs["format"], file.attrs["version"] = kind, 0
        with pytest.raises(BadInputError, match=f"{words} a {needed} of version [0-9] is needed: "):
            read(path)
