"""Which of OpenMM's platforms a simulation runs on: CUDA, HIP, OpenCL or CPU."""

import ctypes
import locale
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import openmm

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection

ON_GPUS = ("CUDA", "HIP", "OpenCL")
_OPENCL_ON_CPUS = ("Portable Computing Language", "Intel(R) CPU", "Intel(R) OpenCL")
_INSTALL = {"CUDA": "pip install 'chromabuild[cuda13]' (drivers before 580: cuda12)",
            "HIP": "pip install 'chromabuild[hip7]' (ROCm 6: hip6)",
            "OpenCL": "install the OpenCL driver of the device"}


@dataclass(frozen=True)
class ChosenPlatform:
    """A platform and what its contexts are made with."""

    name: str
    properties: dict[str, str] = field(default_factory=dict)


def platform_names() -> list[str]:
    """Those that this installation of OpenMM can load, the fastest first."""
    platforms = [openmm.Platform.getPlatform(k) for k in range(openmm.Platform.getNumPlatforms())]
    return [platform.getName() for platform in sorted(platforms, key=lambda one: -one.getSpeed())]


def chosen_platform(dynamics: DynamicsSection, threads: int | None = None) -> ChosenPlatform:
    """The platform of the settings; of ``auto`` the fastest that is here and finds a device.

    Raises BadInputError when the one that is named is not here.
    """
    here = platform_names()
    if dynamics.platform == "auto":
        name = next(name for name in here if name not in ON_GPUS or _works(_on(name, dynamics, threads)))
        return _on(name, dynamics, threads)
    if dynamics.platform not in here:
        remedy = _INSTALL.get(dynamics.platform, "install openmm again")
        raise BadInputError(f"dynamics.platform is {dynamics.platform}, and OpenMM has {', '.join(here)} here: "
                            f"{remedy}, or set it to auto")
    return _on(dynamics.platform, dynamics, threads)


def check_platform(dynamics: DynamicsSection) -> None:
    """Raise BadInputError where the platform of the settings is not here, or its device does not work."""
    platform = chosen_platform(dynamics)
    if dynamics.platform in ON_GPUS:
        _context_of_one(platform)


def context_on(platform: ChosenPlatform, system: openmm.System, integrator: openmm.Integrator,
               printed_to: int = 2) -> openmm.Context:
    """A context on the platform; what OpenMM prints goes to a file descriptor, by default that of standard error.

    Raises BadInputError with OpenMM's reason when its device does not do it.
    """
    try:
        with _standard_output_to(printed_to), _locale_kept():
            return openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform.name),
                                  platform.properties)
    except openmm.OpenMMException as error:
        if platform.name not in ON_GPUS:
            raise
        raise BadInputError(f"OpenMM cannot use {platform.name} with {platform.properties} ({error}): change "
                            "dynamics.devices or dynamics.platform_precision, or set dynamics.platform to CPU"
                            ) from None


@contextmanager
def _standard_output_to(descriptor: int) -> Iterator[None]:
    """Send what libraries print elsewhere: OpenMM warns of some OpenCL drivers where our results go."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def _locale_kept() -> Iterator[None]:
    """Set the locale as it was: OpenMM's OpenCL leaves that of C, in which Python reads files as ASCII."""
    saved = locale.setlocale(locale.LC_ALL)
    try:
        yield
    finally:
        locale.setlocale(locale.LC_ALL, saved)


def _on(name: str, dynamics: DynamicsSection, threads: int | None) -> ChosenPlatform:
    if name not in ("CPU", *ON_GPUS):
        return ChosenPlatform(name)
    properties = {"DeterministicForces": "true"} if dynamics.deterministic else {}
    if name == "CPU":
        # OpenMM 8.6 keeps its promise of deterministic forces on one thread only.
        threads = 1 if dynamics.deterministic else threads
        return ChosenPlatform(name, properties | ({"Threads": str(threads)} if threads else {}))
    devices = {"DeviceIndex": dynamics.devices} if dynamics.devices else {}
    return ChosenPlatform(name, {"Precision": dynamics.platform_precision, **properties, **devices})


def _works(platform: ChosenPlatform) -> bool:
    """Whether the platform finds a device that is no CPU: what OpenCL makes of one is slower than OpenMM's own."""
    try:
        context = _context_of_one(platform)
    except BadInputError:
        return False
    return platform.name != "OpenCL" or not any(
        word in context.getPlatform().getPropertyValue(context, "OpenCLPlatformName") for word in _OPENCL_ON_CPUS)


def _context_of_one(platform: ChosenPlatform) -> openmm.Context:
    """A context of one particle. Raises BadInputError."""
    system = openmm.System()
    system.addParticle(1.0)
    with open(os.devnull, "wb") as nowhere:
        return context_on(platform, system, openmm.VerletIntegrator(0.001), nowhere.fileno())


def device_of(context: openmm.Context) -> str:
    """Platform, device and precision of a context, as far as the platform tells them."""
    platform = context.getPlatform()
    told = {name: platform.getPropertyValue(context, name) for name in platform.getPropertyNames()
            if name in ("DeviceName", "Precision", "Threads")}
    return ", ".join([platform.getName(), *(f"{value} {name.lower()}" if name != "DeviceName" else value
                                            for name, value in sorted(told.items()))])
