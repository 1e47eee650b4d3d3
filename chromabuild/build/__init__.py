"""All atoms of a fibre from its scaffold: duplex, octamers, assembly; and the import of a structure as a template."""

from chromabuild.build.fibre import build_solute

__all__ = ["build_solute"]
