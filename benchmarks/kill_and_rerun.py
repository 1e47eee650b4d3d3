"""Shards survive kill -9: killed at random moments, started again, compared byte by byte.

    python benchmarks/kill_and_rerun.py [trials [seed]]      (default 200 1)

Every trial starts from nothing with two processes, kills the parent at a random moment, looks for torn files under
final names, runs again and compares with an undisturbed run: same bytes, nothing done twice, nothing left over.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chromabuild.config import SolvateSection
from chromabuild.shards import verify_shards
from chromabuild.solute import Solute
from chromabuild.solvate import solvate

SOLUTE = Path(__file__).parents[1] / "tests" / "solvate" / "data" / "solute.h5"
SECTION = {"brick_edge": 17.0}
SCRIPT = """
import sys
from chromabuild.config import SolvateSection
from chromabuild.solute import Solute
from chromabuild.solvate import solvate
if __name__ == "__main__":
    solute = Solute.read(sys.argv[1])
    print("ready", flush=True)
    solvate(solute, SolvateSection(brick_edge=17.0), 1, 2, sys.argv[2])
"""


def files_of(folder):
    """Content and time of every finished file."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("brick_*")}


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.py").write_text(SCRIPT)
        solute = Solute.read(SOLUTE)
        solvate(solute, SolvateSection(**SECTION), 1, 1, root / "reference")
        reference = {name: content for name, (content, _) in files_of(root / "reference").items()}
        command = [sys.executable, str(root / "run.py"), str(SOLUTE)]
        start = time.monotonic()
        subprocess.run([*command, str(root / "timed")], env=environment, stdout=subprocess.DEVNULL, check=True)
        longest = time.monotonic() - start
        killed = finished = torn = twice = left = different = 0
        for trial in range(trials):
            folder = root / f"trial{trial}"
            process = subprocess.Popen([*command, str(folder)], env=environment, stdout=subprocess.PIPE)
            process.stdout.readline()
            time.sleep(rng.uniform(0, longest))
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            process.stdout.close()
            time.sleep(0.05)  # the kernel ends the workers with their parent
            before = files_of(folder) if folder.exists() else {}
            torn += sum(content != reference[name] for name, (content, _) in before.items())
            recorded = {path.stem for path in (folder / "records").glob("brick_*.json")}
            finished += len(recorded)
            solvate(solute, SolvateSection(**SECTION), 1, 1, folder)
            after = files_of(folder)
            twice += sum(after[name][1] != before[name][1] for name in before if name.split(".")[0] in recorded)
            different += {name: content for name, (content, _) in after.items()} != reference
            left += len([*folder.rglob("*.part")])
            verify_shards(folder)
            subprocess.run(["rm", "-rf", str(folder)], check=True)
    print(f"{trials} trials, {killed} killed while running with {finished} of {trials * len(reference) // 3} bricks "
          f"finished: {torn} torn files, {twice} finished files written again, {left} left over, {different} sets that "
          "differ")
    sys.exit(bool(torn or twice or left or different))


if __name__ == "__main__":
    main()
