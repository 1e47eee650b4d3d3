"""What a simulation leaves in its folder."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.notebook import facts_html
from chromabuild.simulate.energy_log import EnergyLog

FILE_NAME = "phases.json"
FORMAT = "chromabuild-phases"


@dataclass(frozen=True)
class PhaseFiles:
    """Files of one phase."""

    name: str
    kind: str
    """``minimise`` or ``dynamics``."""
    log: Path
    trajectory: Path | None
    """DCD; None where no frames were asked for."""
    restart: str
    """Restart files of the end; ``()`` stands for the rank."""
    seconds_per_step: float | None = field(default=None, compare=False)
    """Wall-clock seconds of a step."""

    @property
    def energies(self) -> EnergyLog:
        """The energy table. Raises BadInputError when it is missing."""
        return EnergyLog.read(self.log)

    def frame_times(self, frames: int) -> np.ndarray:
        """(frames,) ps, of all frames of the trajectory.

        They are written at whole multiples of a period, and the last at the end of the phase or within it before that.
        """
        time = self.energies["TIME"]
        return time[0] + np.arange(1, frames + 1) * (time[-1] - time[0]) / frames


@dataclass(frozen=True)
class Run:
    """Phases of a simulation, and readers of their files."""

    folder: Path
    phases: tuple[PhaseFiles, ...]

    @classmethod
    def read(cls, folder: str | Path) -> "Run":
        """The run in a folder. Raises BadInputError when there is none, IntegrityError when its list is damaged."""
        folder = Path(folder)
        path = folder / FILE_NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise BadInputError(f"{folder} holds no dynamics: run chromabuild run") from None
        except ValueError:
            data = None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise IntegrityError(f"{path} is damaged: run chromabuild run again")
        return cls(folder, tuple(
            PhaseFiles(entry["name"], entry["kind"], folder / entry["log"],
                       folder / entry["trajectory"] if entry["trajectory"] else None, str(folder / entry["restart"]),
                       entry["seconds_per_step"]) for entry in data["phases"]))

    @property
    def dynamics(self) -> tuple[PhaseFiles, ...]:
        """The phases of dynamics."""
        return tuple(phase for phase in self.phases if phase.kind == "dynamics")

    @property
    def trajectories(self) -> tuple[Path, ...]:
        """Frames of all phases that wrote any, in order; DCD."""
        return tuple(phase.trajectory for phase in self.phases if phase.trajectory)

    @property
    def trajectory(self) -> Path:
        """Frames of the last phase that wrote any, DCD. Raises BadInputError when none did."""
        if not self.trajectories:
            raise BadInputError(f"{self.folder} holds no trajectory: give a phase of simulate a trajectory_period")
        return self.trajectories[-1]

    @property
    def restart(self) -> str:
        """Restart files of the end; ``()`` stands for the rank."""
        return self.phases[-1].restart

    @property
    def seconds_per_step(self) -> dict[str, float]:
        """Wall-clock seconds of a step of the last phase of each kind, ``minimise`` and ``dynamics``."""
        return {phase.kind: phase.seconds_per_step for phase in self.phases if phase.seconds_per_step}

    @cached_property
    def energies(self) -> EnergyLog:
        """The energy tables of all dynamics, joined. Raises BadInputError when one is missing or there was none."""
        return self._joined("dynamics")

    @cached_property
    def minimisation(self) -> EnergyLog:
        """The energy tables of all minimisations, joined. Raises BadInputError as ``energies`` does."""
        return self._joined("minimise")

    def _joined(self, kind: str) -> EnergyLog:
        logs = [phase.energies for phase in self.phases if phase.kind == kind]
        if not logs:
            raise BadInputError(f"{self.folder} holds no phase of kind {kind}: add one to simulate.phases")
        return EnergyLog.joined(logs)

    def _repr_html_(self) -> str:
        facts = {"phases": ", ".join(phase.name for phase in self.phases)}
        if self.dynamics:
            log = self.energies
            facts |= {"simulated, ps": float(log["TIME"][-1] - log["TIME"][0]),
                      "total energy, kcal/mol": float(log["TOTAL_ENE"][-1])}
            if "TEMPERATURE" in log.columns:
                facts["temperature, K"] = float(log["TEMPERATURE"][-1])
        return facts_html("Minimisation and dynamics", facts | {"trajectories": ", ".join(map(str, self.trajectories))})
