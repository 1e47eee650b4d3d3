"""Which engine is the sensible one for a build on this machine, or on one with a GPU of a given memory, and why."""

from dataclasses import asdict, dataclass

from chromabuild.base.gpus import gpu_memory_here
from chromabuild.base.machine import memory_here
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.pipeline.needs import OPENMM_BYTES_PER_ATOM, gpu_bytes
from chromabuild.pipeline.plan import Estimate
from chromabuild.simulate.openmm_platform import ON_GPUS, chosen_platform


@dataclass(frozen=True)
class EngineChoice:
    """An engine, as ``dynamics.engine`` has it."""

    engine: str
    reason: str
    gpu_gb: float
    """Memory that the build takes on a GPU, GB."""
    gpu_has_gb: float | None = None
    """Memory of the GPU, GB; None: there is none, or its driver does not tell."""

    def as_dict(self) -> dict[str, str | float | None]:
        """Plain data for JSON."""
        return asdict(self)

    def line(self, config: Settings) -> str:
        """For people, with what to set where the settings say otherwise."""
        advice = "" if config.dynamics.engine == self.engine else f": set dynamics.engine: {self.engine}"
        return f"engine for this machine: {self.engine}, because {self.reason}{advice}"


def sensible_engine(build: Estimate, config: Settings, gpu_gb: float | None = None) -> EngineChoice:
    """OpenMM where there is a GPU whose memory holds the system, and one process of this machine too; chromamd
    elsewhere.

    ``gpu_gb``: memory of a GPU that the dynamics will have, GB; None: what is here. On processors chromamd takes a
    fifth of OpenMM's time a step (benchmarks/engine_step.py).
    """
    dynamics = config.dynamics
    needed = gpu_bytes(build.atoms, dynamics.platform_precision) / 1e9
    if gpu_gb is not None:
        platform, here, what = "GPU", gpu_gb, f"a GPU of {gpu_gb:.3g} GB"
    else:
        platform = chosen_platform(DynamicsSection(platform="auto")).name
        if platform not in ON_GPUS:
            return EngineChoice("chromamd", "OpenMM finds no GPU here, and on processors chromamd is faster (of a GPU "
                                f"OpenMM would take about {needed:.2g} GB; --gpu-memory GB plans for one)", needed)
        memory = gpu_memory_here(dynamics.devices)
        here = None if memory is None else memory / 1e9
        what = f"a GPU ({platform}) here" if here is None else f"a GPU ({platform}, {here:.3g} GB) here"
    if here is not None and needed > here:
        fits = here / needed * build.atoms
        return EngineChoice("chromamd", f"OpenMM would take about {needed:.3g} GB of the memory of {what}, which holds "
                            f"about {fits:.2g} atoms, and chromamd spreads them over ranks", needed, here)
    process, machine = OPENMM_BYTES_PER_ATOM * build.atoms / 1e9, memory_here() / 1e9
    if gpu_gb is None and process > machine:
        return EngineChoice("chromamd", f"OpenMM holds the system in one process, which takes about {process:.3g} GB, "
                            f"and this machine has {machine:.3g} GB", needed, here)
    unknown = "; its driver does not tell how much it has" if here is None else ""
    found = "it runs on" if gpu_gb is not None else "OpenMM finds"
    return EngineChoice("openmm", f"{found} {what} and takes about {needed:.2g} GB of it{unknown}, and "
                        f"{process:.2g} GB of the machine", needed, here)
