"""`chromabuild contact-energies`."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    app,
    command,
    load,
    show,
)
from chromabuild.cli.progress import make_reporter
from chromabuild.cli.stage_command import summary_lines


@app.command(name="contact-energies")
@command
def contact_energies(
    contact_map: Annotated[Path, typer.Argument(
        metavar="MAP", help=".cool, .mcool, .hic, or BEDPE of pairs of bins with counts in column 8.")],
    output: Annotated[Path, typer.Option(
        "--output", "-o", metavar="FILE", help="The table of energies.")] = Path("contact_energies.bedpe"),
    config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
    threads: ThreadsOption = None, json: JsonOption = False,
) -> None:
    """Fit energies of contacts to a contact map.

    Folds with them have each contact as often as the map.

    Takes the counts of the bins of 1 to 5 kb within the locus, divides the visibilities of the bins out, and finds by
    maximum entropy the energies with which a polymer has the contacts of the map, in the sphere of
    `scaffold.confinement_radius`. Name the table in `scaffold.contact_energies`; every seed then folds another member
    of the ensemble.

    \b
    Example:
      chromabuild contact-energies map.cool --set scaffold.confinement_radius=190
      chromabuild scaffold --set scaffold.confinement_radius=190 --set scaffold.contact_energies=contact_energies.bedpe
    """
    from chromabuild.api import fit_contact_energies

    with make_reporter().stage("contact energies") as progress:
        result = fit_contact_energies(load(config, overrides, seed), contact_map, output, threads, progress)
    show(result, json, [*summary_lines(result), str(output)])
