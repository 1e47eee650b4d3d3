"""Which engine is the sensible one for a build on this machine, and why."""

from dataclasses import asdict, dataclass

from chromabuild.base.machine import memory_here
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.pipeline.needs import OPENMM_BYTES_PER_ATOM
from chromabuild.pipeline.plan import Estimate
from chromabuild.simulate.openmm_platform import ON_GPUS, chosen_platform


@dataclass(frozen=True)
class EngineChoice:
    """An engine, as ``dynamics.engine`` has it."""

    engine: str
    reason: str

    def as_dict(self) -> dict[str, str]:
        """Plain data for JSON."""
        return asdict(self)

    def line(self, config: Settings) -> str:
        """For people, with what to set where the settings say otherwise."""
        advice = "" if config.dynamics.engine == self.engine else f": set dynamics.engine: {self.engine}"
        return f"engine for this machine: {self.engine}, because {self.reason}{advice}"


def sensible_engine(build: Estimate) -> EngineChoice:
    """OpenMM where it finds a GPU and the system fits into one process of this machine, chromamd elsewhere.

    On processors chromamd takes a fifth of OpenMM's time a step (benchmarks/engine_step.py).
    """
    platform = chosen_platform(DynamicsSection(platform="auto")).name
    if platform not in ON_GPUS:
        return EngineChoice("chromamd", "OpenMM finds no GPU here, and on processors chromamd is faster")
    needed, here = OPENMM_BYTES_PER_ATOM * build.atoms / 1e9, memory_here() / 1e9
    if needed > here:
        return EngineChoice("chromamd", "OpenMM holds the system in one process, which takes about "
                            f"{needed:.3g} GB, and this machine has {here:.3g} GB")
    return EngineChoice("openmm", f"OpenMM finds a GPU ({platform}) here and holds the system in about {needed:.2g} GB")
