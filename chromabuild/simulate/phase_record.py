"""Which phases of a run (setup, minimise, dynamics) are finished, and which of them go on from a checkpoint."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from chromabuild.base.files import atomic_path

NAME = "phases.json"
_FREE = {("DYNAMICS", "nsteps"), ("INPUT", "continue"), ("OUTPUT", "checkpoint_interval")}
"""Keys of a control file that a phase may go on with other values of: a longer run is the same run."""


class PhaseRecord:
    """``phases.json`` in the folder of a run: of each phase what it was made from, and its steps once it is finished.

    What a phase is made from is a checksum of its settings and of what the phase before it was made from.
    """

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / NAME
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}  # no run yet, or a record that cannot be read: everything starts anew
        self._phases: dict[str, dict] = found if isinstance(found, dict) else {}

    def forget(self) -> None:
        """All phases start anew."""
        self._phases = {}
        self._write()

    def is_begun(self, name: str, source: str) -> bool:
        """Whether the phase was begun before from the same source, so that it may have a checkpoint."""
        return self._phases.get(name, {}).get("source") == source

    def is_finished(self, name: str, source: str, steps: int) -> bool:
        """Whether the phase was finished with so many steps."""
        return self.is_begun(name, source) and self._phases[name].get("steps") == steps

    def begin(self, name: str, source: str) -> None:
        """Note that a phase runs; it is not finished."""
        self._phases[name] = {"source": source}
        self._write()

    def finish(self, name: str, steps: int) -> None:
        """Note that the phase has done all of its steps."""
        self._phases[name]["steps"] = steps
        self._write()

    def _write(self) -> None:
        with atomic_path(self._path) as part:
            part.write_text(json.dumps(self._phases, indent=1), encoding="utf-8")


def source_of_files(paths: Iterable[str | Path]) -> str:
    """Checksum of the contents of files; one that is missing counts as empty."""
    digest = hashlib.sha256()
    for path in paths:
        if Path(path).is_file():
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        digest.update(b"/")
    return digest.hexdigest()


def source_of_phase(before: str, sections: Mapping[str, Mapping[str, object]]) -> str:
    """What a phase is made from: ``before``, the source of the phase before it, and its control file's sections."""
    kept = [(section, key, str(value)) for section, entries in sections.items() for key, value in entries.items()
            if value is not None and (section, key) not in _FREE]
    return hashlib.sha256(json.dumps([before, kept]).encode()).hexdigest()
