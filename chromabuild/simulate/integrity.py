"""Are the files that a simulation left in its folder as they were written?"""

import json
import subprocess
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from chromabuild.base.checked_json import is_unharmed
from chromabuild.base.files import file_hash
from chromabuild.simulate.executable import executable

AT_ONCE = 1000
"""Files that one process of the engine looks at."""


def file_states(folder: Path, known: Collection[Path] = ()) -> Iterator[tuple[Path, str]]:
    """Every file in ``md/`` that something vouches for but those ``known``, and ``ok`` or what is wrong with it.

    Logs, trajectories, control files and notes have their checksums in the record of their phase; records, notes,
    restart files and checkpoints carry their own. What a phase that is not done has written is its own affair but for
    the latter.
    """
    vouched: dict[str, str] = {}
    for record in sorted(folder.glob("[0-9][0-9]*-*.json")):
        whole = is_unharmed(record)
        yield record, "ok" if whole else "damaged"
        if whole:
            content = json.loads(record.read_bytes())
            vouched |= content["outputs"] | content.get("companions", {})
    for name, digest in sorted(vouched.items()):
        if folder / name not in known:
            yield folder / name, state_of(folder / name, digest)
    for note in sorted({*folder.glob("tuning.json"), *folder.glob("restart/*_begun.json")} - {*known}):
        yield note, "ok" if is_unharmed(note) else "damaged"
    marks = [path for path in folder.glob("restart/*_whole.txt") if str(path.relative_to(folder)) not in vouched]
    yield from engine_states(sorted([*folder.glob("restart/**/*.rst"), *marks]))


def state_of(path: Path, digest: str) -> str:
    """Of a file whose blake3 is known."""
    if not path.is_file():
        return "missing"
    return "ok" if file_hash(path) == digest else "damaged"


def engine_states(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Restart files and marks of checkpoints, with ``ok`` or what the engine finds wrong with each."""
    rest = iter(paths)
    while some := list(islice(rest, AT_ONCE)):
        done = subprocess.run([executable(), "verify", *some], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if len(lines) != len(some):
            raise RuntimeError(f"chromamd verify ended with code {done.returncode}: {done.stderr}")
        yield from ((path, line.rpartition(": ")[2]) for path, line in zip(some, lines, strict=True))
