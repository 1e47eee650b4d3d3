"""Killed, harmed, full and crowded builds in small numbers; benchmarks/faults.py tries the same at length."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from io import TextIOWrapper
from pathlib import Path

import pytest

from chromabuild.base.checked_json import checked_text, is_unharmed
from chromabuild.base.errors import BusyError, ResourceError
from chromabuild.base.files import atomic_path, open_growing, remove_leftovers
from chromabuild.base.hdf5_file import written_hdf5
from chromabuild.base.stop_signals import stops_go_to
from chromabuild.base.whole_folder import whole_folder

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "faults.py"
UNDER_OTHER_NAMES = ("part", "image", "buffer", "packed")
"""Words in the names of variables: what a process writes until it is whole, or memory."""
WRITTEN_IN_PLACE = {
    "base/files.py": "a lock", "simulate/openmm_platform.py": "the null device",
    "quantum/points.py": "a log", "simulate/chromamd.py": "a log",
    "nucleosome/protonation.py": "in a temporary folder", "forcefield/prmtop_file.py": "in a temporary folder",
    "forcefield/psf_file.py": "in a temporary folder", "shards/bag.py": "in the part of a folder",
    "export/amber.py": "a part that is handed in", "shards/binary_cif_blocks.py": "a part that is handed in"}
"""Modules, and what they write that need not appear whole, or does."""


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.skipif(shutil.which("cc") is None, reason="the failing disk is made by a C compiler")
def test_nothing_is_lost():
    """The script compares bytes with an undisturbed build and ends with 1 for anything torn, left or lost."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, str(SCRIPT), "--quick"], env=environment, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    disks = re.findall(r"^  stage: (\w+)  calls that change files: ([\d,]+)  tried: (\d+)  exit code 6: (\d+)  "
                       r"exit code 0: (\d+)", done.stdout, re.MULTILINE)
    assert [stage for stage, *_ in disks] == ["scaffold", "build", "clash", "solvate"]
    # A run may end before the call at which the disk was to fail: it makes fewer calls the faster it is.
    assert all(int(calls.replace(",", "")) > 10 and tried == "2" and int(failed) + int(ended) == 2
               for _, calls, tried, failed, ended in disks), done.stdout
    assert sum(int(failed) for *_, failed, _ in disks) >= 6
    walked = re.findall(r"^  command: ([\w ]+?)  calls that change files: \d+  tried: 6 ", done.stdout, re.MULTILINE)
    assert walked == ["export structure cif", "export scene cxc", "shards merge", "shards bag", "clash fix",
                      "clash check", "qm map"]
    assert re.search(r"flips: 8  noticed by verify: 8", done.stdout)
    assert re.search(r"processes: 10  rounds: 1  ended well: [1-9]", done.stdout)


def test_leftovers_of_the_dead_are_removed(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    kept = [f".solute.h5.{os.getppid()}.part", ".other.h5.part", "solute.h5"]
    for name in (*kept, f".solute.h5.{dead.pid}.part", f".plan.json.{dead.pid}.part"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, ["sol*.h5"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, f".plan.json.{dead.pid}.part"])
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    remove_leftovers(tmp_path / "nowhere")


def test_the_next_writing_removes_what_the_dead_left_of_its_file(tmp_path):
    """Also in folders that are no project's, such as that of --output; other files stay."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in ("a.pdb", "b.pdb"):
        (tmp_path / f".{name}.{dead.pid}.part").touch()
    (tmp_path / f".bag.{dead.pid}.part").mkdir()
    (tmp_path / f".bag.{dead.pid}.part" / "data").touch()
    with atomic_path(tmp_path / "a.pdb") as part:
        part.touch()
    assert sorted(path.name for path in tmp_path.glob("*a.pdb*")) == ["a.pdb"]
    assert (tmp_path / f".b.pdb.{dead.pid}.part").exists()
    remove_leftovers(tmp_path, ["bag"])
    assert not (tmp_path / f".bag.{dead.pid}.part").exists()


def written_by(call: ast.Call) -> str:
    """What a call writes into, as it stands in the source; empty where it writes nothing."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("write_text", "write_bytes"):
        return ast.unparse(call.func.value)
    if name in ("copy2", "copyfile"):
        return ast.unparse(call.args[1])
    modes = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    is_opened = name in ("open", "File") and any(re.fullmatch("[wax][bt+]*", mode) for mode in modes)
    return ast.unparse(call.args[0]) if is_opened else ""


def test_every_file_is_written_under_another_name_until_it_is_whole():
    """A killed process or a full disk then leaves the old file. Tools of the developers write as they like."""
    found = {}
    for path in sorted((ROOT / "chromabuild").rglob("*.py")):
        name = str(path.relative_to(ROOT / "chromabuild"))
        targets = [written_by(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        bare = [target for target in targets if target and not any(word in target for word in UNDER_OTHER_NAMES)]
        if bare and not name.startswith("scaling/published/"):
            found[name] = bare
    assert sorted(found) == sorted(WRITTEN_IN_PLACE), {name: found[name] for name in found.keys() - WRITTEN_IN_PLACE}


def test_sentences_of_the_engines_about_resources_say_what_to_do():
    remedies = re.compile(r"\b(check|use|choose|free|give|make|take|raise|lower|fewer|more)\b")
    found = []
    for path in sorted((ROOT / "fortran").rglob("*.f90")):
        text = re.sub(r"&\s*\n\s*&?", "", path.read_text())
        found += [(path.name, call) for call in re.findall(r"call fail\(\w+, exit_resources, (.*)", text)]
    assert len(found) > 30
    assert not [one for one in found if not remedies.search("".join(re.findall('"([^"]*)"', one[1])))
                and not one[1].endswith("//what)")]  # what its callers say


def test_files_of_one_result_appear_together(tmp_path):
    """A full disk at the last of them leaves those that were there; the message names no temporary folder."""
    folder = tmp_path / "out"
    with pytest.raises(ResourceError, match=rf"cannot write {folder}/run.sh: No space left on device; free some"), \
         whole_folder(folder, ["system.top"]) as made:
        (made / "system.top").touch()
        with atomic_path(made / "run.sh"):
            raise OSError(28, "No space left on device")
    assert not folder.exists()
    with whole_folder(folder, ["system.top"]) as made:
        (made / "toppar").mkdir()
        for name in ("system.top", "toppar/dna.itp"):
            (made / name).write_text("new")
        with pytest.raises(BusyError, match=f"process {os.getpid()}"):
            in_other_thread(lambda: whole_folder(folder, ["system.top"]).__enter__())
        assert not (folder / "system.top").exists()
    assert sorted(path.name for path in folder.rglob("*")) == ["dna.itp", "system.top", "toppar"]


def in_other_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


LIMITED = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from chromabuild.base.checked_json import checked_text, is_unharmed
from chromabuild.base.errors import ResourceError
from chromabuild.base.hdf5_file import written_hdf5
from mesoscale.trajectory import Trajectory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
folder = Path(sys.argv[1])
try:
    with written_hdf5(folder / "a.h5") as file:
        file["x"] = np.arange(10**5)
except ResourceError as error:
    print(error)
try:
    Trajectory(folder / "t.h5", {}, 10).begin(0, {"x": np.zeros(10**4)})
except OSError as error:
    print(error)
"""


def test_files_that_do_not_fit_leave_nothing_behind(tmp_path):
    """HDF5 crashes when a file cannot grow while it closes it: none is open then. The old file is kept."""
    with written_hdf5(tmp_path / "a.h5") as file:
        file["x"] = [1]
    before = (tmp_path / "a.h5").read_bytes()
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == (f"cannot write {tmp_path / 'a.h5'}: File too large; raise the limit on sizes of files "
                     "(`ulimit -f`) or choose another output folder")
    assert "File too large" in second and str(tmp_path / "t.h5") in second
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"] and (tmp_path / "a.h5").read_bytes() == before


def test_a_write_that_fails_names_its_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="cannot write .*/file/a.txt"), atomic_path(tmp_path / "file" / "a.txt"):
        pass


def test_a_file_that_grows_names_itself_whenever_it_cannot():
    """A log, of which a row is flushed, and what is left of it at the end."""
    file = TextIOWrapper(open_growing("/dev/full", "w"))
    file.write("row")
    said = "cannot write /dev/full: No space left on device; free some disk space or choose another output folder"
    for fail in (file.flush, file.close):
        with pytest.raises(ResourceError, match=said):
            fail()


def test_forked_processes_end_by_signals_that_their_parent_handles():
    came = []
    ready, go = os.pipe()
    with stops_go_to(came.append):
        os.kill(os.getpid(), signal.SIGTERM)
        pid = os.fork()
        if not pid:
            os.write(go, b"x")  # a fork forgets signals that come before it is complete
            time.sleep(60)
            os._exit(0)
        os.read(ready, 1)
        os.kill(pid, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    assert came == [signal.SIGTERM]


def test_nohup_is_respected():
    code = ("import os, signal\nfrom chromabuild.base.stop_signals import stops_go_to\ncame = []\n"
            "with stops_go_to(came.append):\n    os.kill(os.getpid(), signal.SIGHUP)\nprint(came)")
    done = subprocess.run(["nohup", sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.stdout == "[]\n"


def test_every_flipped_bit_of_a_record_is_noticed(tmp_path):
    """Also in the name of its checksum, without which it would be a record of version 0.2.0."""
    path = tmp_path / "record.json"
    whole = checked_text({"inputs": {"box": [58417, 31542], "version": 1}, "file": {"bytes": 23478}}).encode()
    path.write_bytes(whole)
    assert is_unharmed(path)
    for at in range(len(whole.rstrip())):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1:])
            assert not is_unharmed(path), (at, bit)
    path.write_text('{"inputs": {"version": 1}}')
    assert is_unharmed(path)
