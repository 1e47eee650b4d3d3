"""Write billion.json: what a pass over a billion atoms knows and five of its bricks cannot know of themselves.

    python tests/solvate/data/make_billion.py FOLDER

The solute is copies of nucleosome_177bp.h5 in the box of the source's model (Jung et al. 2019). The layout of the whole
box is made; of its shards the five bricks are written, which are those of a full run (test_scale.py), and left
in the folder, 0.6 GB with the solute.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from support import lone_bricks
from support.spread_nucleosomes import write_spread

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import prepare, solvate

BOX = (1907.0, 2252.0, 2485.0)
NUCLEOSOMES, SEED, THREADS = 469, 1, 2
BRICKS = (0, 1234, 5462, 8888, 10924)


def main(folder: Path) -> None:
    """Make the layout and the five bricks, then the record beside this script."""
    folder.mkdir(parents=True, exist_ok=True)
    write_spread(folder / "solute.h5", BOX, NUCLEOSOMES)
    solute, section = Solute.open(folder / "solute.h5"), SolvateSection(box=BOX)
    system = prepare(solute, section, SEED, THREADS, folder / "shards")
    manifest = solvate(solute, section, SEED, THREADS, folder / "shards", only=BRICKS)
    shards = {int(shard.name.removeprefix("brick_")): shard for shard in manifest.shards}
    last_ion, before = lone_bricks.record(system.layout, system.grid, SEED, BRICKS)
    record = {
        "source": "the layout of the whole box over copies of nucleosome_177bp.h5, written by make_billion.py",
        "nucleosomes": NUCLEOSOMES, "seed": SEED, "solute": manifest.inputs["solute"], "box": manifest.box,
        "counts": manifest.counts, "last_ion": last_ion,
        "bricks": {str(k): {"cbb": shards[k].files["cbb"]["blake3"], "before": before[k]} for k in BRICKS}}
    Path(__file__).with_name("billion.json").write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
