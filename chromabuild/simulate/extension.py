"""A phase that has been made longer than the settings say: ``md/extended.json`` tells every later command."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from chromabuild.base.errors import IntegrityError
from chromabuild.base.files import atomic_path

FILE_NAME = "extended.json"
FORMAT = "chromabuild-extension"


@dataclass(frozen=True)
class Lengthening:
    """What was asked for once."""

    length: str
    """As it was given, e.g. ``10 ns``."""
    start: int
    """Steps of the phase before."""
    end: int
    """Steps of the phase with it."""


@dataclass(frozen=True)
class Extension:
    """The phase of a folder that is longer than in the settings."""

    phase: str
    of: str
    """Checksum of all that the phase depends on but its length: for another phase the extension does not hold."""
    lengthenings: tuple[Lengthening, ...]
    """In order; each but the last has been done."""

    @property
    def steps(self) -> int:
        """Steps of the phase, unless the settings have more."""
        return self.lengthenings[-1].end

    def longer(self, length: str, start: int, steps: int) -> "Extension":
        """With another length, which takes the place of one that begins at the same step."""
        kept = tuple(one for one in self.lengthenings if one.start < start)
        return replace(self, lengthenings=(*kept, Lengthening(length, start, start + steps)))

    def write(self, folder: Path) -> None:
        """Note it in a folder."""
        with atomic_path(folder / FILE_NAME) as part:
            part.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", encoding="utf-8")


def read_extension(folder: Path) -> Extension | None:
    """The extension of the run in a folder, None without. Raises IntegrityError when the file is damaged."""
    path = folder / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise ValueError(FORMAT)
        made = tuple(Lengthening(**one) for one in data.pop("lengthenings"))
        return Extension(**data, lengthenings=made) if made else None
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise IntegrityError(f"{path} is damaged: delete it to run the phases as long as the settings say") from None


def forget_extension(folder: Path, phase: str, of: str) -> None:
    """Remove the extension of an earlier run of a phase, which now depends on something else."""
    found = read_extension(folder)
    if found is not None and found.phase == phase and found.of != of:
        (folder / FILE_NAME).unlink()
