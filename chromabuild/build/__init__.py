"""All atoms of a fibre from its scaffold: duplex, octamers, assembly."""

from chromabuild.build.fibre import build_solute

__all__ = ["build_solute"]
