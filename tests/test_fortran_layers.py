"""Rooms of the Fortran code: `use` goes one way, MPI stays where messages are, files and argument lists stay short."""

import re
from functools import cache
from pathlib import Path

import pytest

FORTRAN = Path(__file__).resolve().parents[1] / "fortran"
# Each may use those above it. What shares a row knows nothing of its neighbours.
ROOMS = (
    ("base",),
    ("comm", "kernels"),
    ("fft",),
    ("planewave",),
    ("planewave/input",),
    ("planewave/run",),
    ("engine/input",),
    ("engine/system",),
    ("engine/forces",),
    ("engine/forces/pairs",),
    ("engine/forces/mesh", "engine/forces/bonded", "engine/forces/restraints", "engine/forces/material"),
    ("engine/motion",),
    ("engine/output",),
    ("engine/run",),
)
LEVEL = {room: k for k, row in enumerate(ROOMS) for room in row}
MPI_ROOMS = ("comm", "fft", "planewave")
USES_MPI = {
    "engine/forces/mesh/brick_exchange.f90": "takes the communicator that it hands to the exchanges of fft",
}
LONGEST_FILE = 600
MOST_ARGUMENTS = 15
KERNELS = "bare arrays let the compiler vectorise one loop for every variant"
# Procedures with more, by file.
LONG_LISTS = {
    "engine/forces/pairs/exact_loop.f90": ({"exact_loop_over_pairs"}, KERNELS),
    "engine/forces/pairs/pair_loop.F90.in": ({"pair_loop"}, KERNELS),
}
# Asking a control file for a key, which only the reading of settings does.
LOOK_UP = re.compile(r"%\s*(text|integer|real|yes|choice|given|numbered|entries|require)\s*\(\s*[\"']", re.IGNORECASE)


@cache
def sources() -> dict[str, str]:
    """The code of each file, without comments, continued lines joined; in capitals and small letters as written."""
    code = {}
    for path in sorted([*FORTRAN.rglob("*.f90"), *FORTRAN.rglob("*.F90"), *FORTRAN.rglob("*.F90.in")]):
        lines = [re.sub(r"!(?![^\"]*\"[^\"]*$).*", "", line) for line in path.read_text().splitlines()]
        code[path.relative_to(FORTRAN).as_posix()] = re.sub(r"&\s*\n\s*&?", " ", "\n".join(lines))
    return code


def room_of(file: str) -> str:
    return max((room for room in LEVEL if file.startswith(room + "/")), key=len)


def names(code: str, pattern: str) -> list[str]:
    return [name.lower() for name in re.findall(pattern, code, re.IGNORECASE | re.MULTILINE)]


def defined_modules(code: str) -> list[str]:
    return [name for name in names(code, r"^\s*module\s+(\w+)\s*$") if name != "procedure"]


def used_modules(code: str) -> set[str]:
    return set(names(code, r"^\s*use\s*(?:,\s*(?:non_)?intrinsic\s*)?(?:::)?\s*(\w+)"))


def test_every_file_has_a_room():
    assert {room_of(file) for file in sources()} == LEVEL.keys()


def test_module_names_are_unique():
    home: dict[str, str] = {}
    for file, code in sources().items():
        for module in defined_modules(code):
            assert module not in home or "@" in module, f"{file} and {home[module]} both define module {module}"
            home[module] = file


def test_no_module_of_a_later_room_is_used():
    home = {module: room_of(file) for file, code in sources().items() for module in defined_modules(code)}
    for file, code in sources().items():
        own = room_of(file)
        for module in used_modules(code) & home.keys():
            room = home[module]
            assert room == own or LEVEL[room] < LEVEL[own], f"{file} uses {module}, which lives in {room}"


def test_mpi_stays_where_messages_are():
    callers = {file for file, code in sources().items() if used_modules(code) & {"mpi", "mpi_f08"}}
    assert {file for file in callers if room_of(file) not in MPI_ROOMS} == USES_MPI.keys()


def test_files_are_short():
    length = {path.relative_to(FORTRAN).as_posix(): len(path.read_text().splitlines())
              for path in FORTRAN.rglob("*.[fF]90*")}
    assert not {file for file, lines in length.items() if lines > LONGEST_FILE}


def test_argument_lists_are_short():
    long_lists: dict[str, set[str]] = {}
    for file, code in sources().items():
        for name, arguments in re.findall(r"^[^\n\"']*\b(?:subroutine|function)\s+(\w+)\s*\(([^)]*)\)", code,
                                          re.IGNORECASE | re.MULTILINE):
            if arguments.count(",") + 1 > MOST_ARGUMENTS:
                long_lists.setdefault(file, set()).add(name)
    assert long_lists == {file: procedures for file, (procedures, _) in LONG_LISTS.items()}


@pytest.mark.parametrize("line", ['x = control%real("ENERGY", "cutoffdist")', 'if (c%yes("A", "b")) return'])
def test_a_look_up_is_recognised(line):
    assert LOOK_UP.search(line)


def test_keys_are_looked_up_where_settings_are_read():
    for file, code in sources().items():
        if room_of(file) not in ("engine/input", "planewave/input"):
            assert not LOOK_UP.search(code), f"{file} asks the control file for a key; add it to the settings instead"
