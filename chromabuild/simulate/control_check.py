"""Whether the engine takes the settings: its own check, of the control files of every phase, before the build."""

import subprocess
import tempfile
from pathlib import Path

from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.settings import Settings
from chromabuild.simulate.bead_refinement import bead_dynamics, refinement_phases, water_with_salt
from chromabuild.simulate.chromamd import settings_sections, write_control
from chromabuild.simulate.executable import executable
from chromabuild.simulate.protocol import PlannedPhase, Solvent, Task, plan_phases
from chromabuild.simulate.relaxation import dry_dynamics, relax_phases
from chromabuild.solvate.ions import ionic_strength


def check_controls(config: Settings) -> None:
    """Raises BadInputError, with the engine's sentence, for settings that its control file refuses.

    Without an engine nothing is checked: stages that need one say that it is missing.
    """
    try:
        program = executable()
    except ResourceError:
        return
    dynamics, relax = config.dynamics, config.relax
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nowhere = {"topology": folder / "topology.h5", "bricks": folder / "bricks.txt", "folder": folder}
        if relax.enabled:
            dry = Task(dry_dynamics(relax, dynamics), config.seed, **nowhere,
                       solvent=Solvent(relax.dielectric, relax.dielectric_form, 1.0))
            _check(program, dry, plan_phases(relax_phases(relax, config.simulate.temperature)), "relax")
        if config.refine.enabled:
            beads = Task(bead_dynamics(config.refine, dynamics), config.seed, **nowhere,
                         solvent=water_with_salt(config.simulate.temperature, ionic_strength(config.solvate)))
            _check(program, beads, plan_phases(refinement_phases(config.refine, config.simulate.temperature)), "refine")
        if dynamics.engine == "chromamd":
            _check(program, Task(dynamics, config.seed, **nowhere), plan_phases(config.simulate), "phase")


def _check(program: Path, task: Task, phases: tuple[PlannedPhase, ...], what: str) -> None:
    files = [task.folder / f"{what} {phase.name}.inp" for phase in phases]
    for file, phase in zip(files, phases, strict=True):
        sections = settings_sections(task, phase)
        sections["INPUT"] |= {"rstfile": task.folder / "start_().rst"}
        write_control(file, sections)
    done = subprocess.run([program, "check", *files], capture_output=True, text=True, check=False)
    if done.returncode != BadInputError.exit_code:
        return
    refused = next(line for line in done.stdout.splitlines() if ": ok" not in line)
    raise BadInputError(f"the engine refuses {Path(refused.partition('.inp')[0]).name}{refused.partition('.inp')[2]}")
