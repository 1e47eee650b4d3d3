"""GENESIS with a file a rank: control files of prst_setup, and of the phases that start from what it makes.

prst_setup cuts coordinates and force field into one restart file a domain, in which restraints, rigid bonds and masses
are fixed; a phase that changes them gets a set of its own, with the places and velocities of the set before. Keys:
GENESIS user guide, "Parallel I/O", and `prst_setup -h ctrl`.
"""

from collections.abc import Callable, Sequence

from chromabuild.simulate.chromamd import Sections, control_text
from chromabuild.simulate.protocol import PlannedPhase

FOLDER = "parallel"
DOMAINS = 8
"""Unless DOMAINS of the environment says otherwise; run.sh puts it into the control files."""
_SCRIPT = """\
#!/usr/bin/env bash
# The phases in turn, with a restart file and a trajectory a rank; one that is done is left out. DOMAINS: ranks of
# spdyn, the same for all phases. PRST_SETUP and SPDYN name the programs, with their launchers.
set -euo pipefail
cd "$(dirname "$0")"
DOMAINS="${DOMAINS:-%d}"
PRST_SETUP="${PRST_SETUP:-prst_setup}"
SPDYN="${SPDYN:-mpirun -np $DOMAINS spdyn}"

cut() {  # phase: its set of restart files, unless it is there
  compgen -G "$1_start_[0-9]*.rst" >/dev/null && return
  mkdir -p cache
  sed "s/^domain_xyz .*/domain_xyz       = $DOMAINS/" "$1_prst.inp" >"$1_prst.run"
  $PRST_SETUP "$1_prst.run" >"$1_prst.log"
}
run() {  # phase
  compgen -G "$1_[0-9]*.rst" >/dev/null || $SPDYN "$1.inp" >"$1.log"
}

"""


def parallel_files(phases: Sequence[PlannedPhase], sections_of: Callable[[PlannedPhase], Sections],
                   structure_of: Callable[[PlannedPhase], dict[str, object]],
                   reference: dict[str, object]) -> dict[str, str]:
    """Control files and ``run.sh`` by name, for a folder beside that of the whole system.

    ``sections_of``: the control file of a phase that starts from files of the whole system; ``structure_of``: these
    files, with the masses of the phase; ``reference``: those of restraints. Names are as seen from the folder above.
    """
    texts, lines = {}, []
    before: PlannedPhase | None = None
    selection: str | None = None
    for phase in phases:
        sections = sections_of(phase)
        is_held = "RESTRAINTS" in sections
        starts = f"{before.stem}_().rst" if before else None
        if before is None or _fixed(phase) != _fixed(before):
            texts[f"{phase.stem}_prst.inp"] = control_text(_prst(phase, sections, structure_of(phase), reference,
                                                                 starts, before))
            lines.append(f"cut {phase.stem}\n")
            starts = f"{phase.stem}_start_().rst"
            selection = f"{phase.stem}.sel" if is_held else None
        frames = sections["OUTPUT"]["dcdfile"]
        texts[f"{phase.stem}.inp"] = control_text({
            **sections, "INPUT": {"rstfile": starts, "selfile": selection},
            "OUTPUT": {"dcdfile": frames and f"{phase.stem}_().dcd", "rstfile": f"{phase.stem}_().rst"},
            **({"DYNAMICS": {key: value for key, value in sections["DYNAMICS"].items()
                             if key not in ("hydrogen_mr", "hmr_ratio", "hmr_ratio_xh1", "hmr_target")}}
               if "DYNAMICS" in sections else {})})
        lines.append(f"run {phase.stem}\n")
        before = phase
    if texts:
        texts["run.sh"] = _SCRIPT % DOMAINS + "".join(lines)
    return texts


def _fixed(phase: PlannedPhase) -> tuple:
    """What the restart files of a set fix."""
    held = tuple((one.group, one.ends()) for one in phase.restraints)
    return phase.kind, held, phase.end_pairs, phase.hydrogen_mass_factor


def _prst(phase: PlannedPhase, sections: Sections, structure: dict[str, object], reference: dict[str, object],
          starts: str | None, before: PlannedPhase | None) -> Sections:
    """The control file of prst_setup."""
    is_held = "RESTRAINTS" in sections
    names = {**structure, **(reference if phase.restraints else {})}
    energy = {key: sections["ENERGY"][key] for key in ("forcefield", "switchdist", "cutoffdist", "pairlistdist")}
    made: Sections = {
        "INPUT": {**{key: f"../{name}" for key, name in names.items()}, "rstfile": starts},
        "OUTPUT": {"rstfile": f"{phase.stem}_start_().rst", "selfile": f"{phase.stem}.sel" if is_held else None,
                   "cachepath": "./cache", "restart": True if before and before.kind == "dynamics" else None},
        "ENERGY": energy,
        "DYNAMICS": {"iseed": sections["DYNAMICS"]["iseed"]} if "DYNAMICS" in sections else {},
        **{name: sections[name] for name in ("CONSTRAINTS", "ENSEMBLE", "SELECTION", "RESTRAINTS") if name in sections},
        "BOUNDARY": {**{key: value for key, value in sections["BOUNDARY"].items() if key != "type"},
                     "domain_xyz": DOMAINS}}
    return {name: entries for name, entries in made.items() if entries}
