"""One fold: made, found done before, or given up because its parts overlap."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chromabuild.base.checked_json import agrees, checked_text
from chromabuild.base.errors import ClashesRemainError
from chromabuild.base.files import atomic_path
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings
from chromabuild.pipeline import chain

STAGE = chain.stage_named("scaffold")
FAILED_FILE = "failed.json"
DONE, FAILED = "done", "failed"
_DECIDING = ("seed", "settings", "inputs")


class _Reporter:
    """Hands the progress of the one stage on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @contextmanager
    def stage(self, title: str) -> Iterator[Progress]:
        """The stage runs."""
        yield self._progress

    def skipped(self, title: str) -> None:
        """Nothing was to be done."""


def state_of(config: Settings) -> str | None:
    """DONE, FAILED, or None where the fold of these settings is still to be made, or made again."""
    if chain.is_current(STAGE, config):
        return DONE
    try:
        found = json.loads((Path(config.output) / FAILED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    same = isinstance(found, dict) and agrees(found) and found.get("decided_by") == _decided_by(config)
    return FAILED if same else None


def why_failed(config: Settings) -> str:
    """The sentence with which a fold was given up."""
    return json.loads((Path(config.output) / FAILED_FILE).read_text(encoding="utf-8"))["said"]


def make_fold(config: Settings, threads: int, progress: Progress = silent) -> str:
    """Make a fold, or go on with it; its state then.

    What cannot be used for building, because DNA and cores overlap, is FAILED and not tried again: with the same seed
    it would come out the same. Raises what the stage raises otherwise, BusyError while another process makes it.
    """
    with in_use(config.output):
        state = state_of(config)
        if state is not None:
            return state
        folder = Path(config.output)
        (folder / FAILED_FILE).unlink(missing_ok=True)
        try:
            chain.run_stage(STAGE, config, threads, _Reporter(progress))
        except ClashesRemainError as error:
            with atomic_path(folder / FAILED_FILE) as part:
                part.write_text(checked_text({"decided_by": _decided_by(config), "said": str(error)}), encoding="utf-8")
            return FAILED
        return DONE


def _decided_by(config: Settings) -> dict:
    """What the result follows from, as JSON gives it back."""
    description = chain.describe(STAGE, config)
    return json.loads(json.dumps({key: description[key] for key in _DECIDING}))
