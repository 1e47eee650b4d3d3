"""Errors that a user can act on. The command line prints them as one sentence and exits with their code."""


class ChromabuildError(Exception):
    """Base class: the message names the file, the line or value, and the remedy."""

    exit_code = 1
    told = "a fault in chromabuild"
    """What the exit code means, in the help of the command line."""


class BadInputError(ChromabuildError):
    """Something the user gave cannot be used."""

    exit_code = 3
    told = "bad input"


class ClashesRemainError(ChromabuildError):
    """Steric clashes stand after correction, or were found by a check."""

    exit_code = 4
    told = "clashes remain"


class IntegrityError(ChromabuildError):
    """A file does not match its manifest or its format."""

    exit_code = 5
    told = "a file is damaged"


class ResourceError(ChromabuildError):
    """Disk, memory or permission."""

    exit_code = 6
    told = "out of disk or memory"


class InterruptedRunError(ChromabuildError):
    """Stopped before the end; the same command continues."""

    exit_code = 7
    told = "interrupted (the same command continues)"


class BusyError(ChromabuildError):
    """Another process is at work where this one would write."""

    exit_code = 9
    told = "another process is at work there"


class UnstableRunError(ChromabuildError):
    """A simulation left the bands in which it is sound."""

    exit_code = 8
    told = "the simulation became unstable"


class NotConvergedError(ChromabuildError):
    """A minimisation ended before its minimum."""

    exit_code = 10
    told = "no convergence"
