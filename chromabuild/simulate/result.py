"""What a run of minimisation and dynamics leaves in its folder."""

from dataclasses import dataclass, field
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.base.notebook import facts_html
from chromabuild.simulate.energy_log import EnergyLog


@dataclass(frozen=True)
class Run:
    """Files of one run, and readers of them."""

    folder: Path
    restart: str
    """Restart files of the end; ``()`` stands for the rank."""
    seconds_per_step: dict[str, float] = field(default_factory=dict, compare=False)
    """Wall-clock seconds of a step, of ``minimise`` and ``dynamics``, where this process saw them run."""

    @classmethod
    def of_chromamd(cls, folder: str | Path) -> "Run":
        """The files that chromamd is told to write."""
        return cls(Path(folder), str(Path(folder) / "restart" / "dynamics_().rst"))

    @classmethod
    def of_openmm(cls, folder: str | Path) -> "Run":
        """The files that the OpenMM engine writes."""
        return cls(Path(folder), str(Path(folder) / "dynamics.xml"))

    @classmethod
    def read(cls, folder: str | Path) -> "Run":
        """The run in a folder. Raises BadInputError when there is none."""
        found = cls.of_openmm(folder)
        if not Path(found.restart).is_file():
            found = cls.of_chromamd(folder)
        if not found.dynamics_log.is_file():
            raise BadInputError(f"{folder} holds no dynamics: run chromabuild run")
        return found

    @property
    def minimise_log(self) -> Path:
        """Energies of the minimisation."""
        return self.folder / "minimise.log"

    @property
    def dynamics_log(self) -> Path:
        """Energies of the dynamics."""
        return self.folder / "dynamics.log"

    @property
    def trajectory(self) -> Path:
        """Frames, DCD."""
        return self.folder / "trajectory.dcd"

    @property
    def energies(self) -> EnergyLog:
        """The energy table of the dynamics. Raises BadInputError when it is missing."""
        return EnergyLog.read(self.dynamics_log)

    @property
    def minimisation(self) -> EnergyLog:
        """The energy table of the minimisation. Raises BadInputError when there was none."""
        return EnergyLog.read(self.minimise_log)

    def _repr_html_(self) -> str:
        log = self.energies
        facts = {"steps": int(log["STEP"][-1]), "simulated, ps": float(log["TIME"][-1] - log["TIME"][0]),
                 "total energy, kcal/mol": float(log["TOTAL_ENE"][-1])}
        if "TEMPERATURE" in log.columns:
            facts["temperature, K"] = float(log["TEMPERATURE"][-1])
        return facts_html("Minimisation and dynamics", facts | {"trajectory": str(self.trajectory)})
