"""What a launcher of MPI programs may be in the settings: a name, or a command of the user's own."""

import re
import shlex

LAUNCHERS = ("auto", "mpirun", "srun", "flux")
PLACEHOLDERS = ("ranks", "threads", "program")
"""What stands in braces in a command of the user's own."""


def launcher_problem(launcher: str) -> str | None:
    """What is wrong with a launcher, as the rest of a sentence; None where nothing is.

    >>> launcher_problem("srun -n {ranks} -c {threads} {program}") is None
    True
    >>> launcher_problem("aprun -n {ranks} {programme}")
    'has {programme}, which stands for nothing: only {ranks}, {threads} and {program} do'
    """
    if launcher in LAUNCHERS:
        return None
    named = re.findall(r"(?<!\$)\{(\w*)\}", launcher)
    unknown = next((name for name in named if name not in PLACEHOLDERS), None)
    if unknown is not None:
        return f"has {{{unknown}}}, which stands for nothing: only {{ranks}}, {{threads}} and {{program}} do"
    if not {"ranks", "program"} <= set(named):
        return (f"is neither {', '.join(LAUNCHERS[:-1])} or {LAUNCHERS[-1]} nor a command with {{ranks}} and "
                "{program}: write e.g. srun -n {ranks} {program}")
    try:
        words = shlex.split(launcher)
    except ValueError as error:
        return f"cannot be split into words ({str(error).lower()}): close its quotes"
    if "{program}" in words[0]:
        return "begins with {program}: put the command that starts it first"
    return None
