"""chromabuild: from a gene locus to a running all-atom molecular dynamics simulation."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("chromabuild")
except PackageNotFoundError:  # run from a source tree that was built in place
    __version__ = "0+source"
