"""Nucleosome structures of a user: what is found in them, what is completed, what is refused."""

import gzip
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread

import gemmi
import numpy as np
import pytest
from Bio.PDB.PDBList import PDBList
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from support.synthetic_scaffold import synthetic_scaffold
from typer.testing import CliRunner

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, load_config
from chromabuild.build import build_solute
from chromabuild.build.duplex import build_dna
from chromabuild.cli import app
from chromabuild.dna.helix import crystal_path
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.homology import chains_of
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.template_file import read_template
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.template_import.template import add_template, fetch_template

TURN = Rotation.from_euler("xyz", [40.0, -100.0, 25.0], degrees=True).as_matrix()
SHIFT = np.array([31.0, -8.0, 120.0])
NAMES = "QRSTUVWX"  # chains in the file, in the order E..H, A..D of 1KX5


def structure(chains, dna=147):
    """A gemmi structure of histone chains (lists of residues) and ``dna`` base pairs, somewhere in space."""
    model = gemmi.Model(1)

    def add(name, residues):
        chain = gemmi.Chain(name)
        for title, number, atoms in residues:
            residue = gemmi.Residue()
            residue.name, residue.seqid, residue.het_flag = title, gemmi.SeqId(str(number)), "A"
            for atom_name, position in atoms.items():
                atom = gemmi.Atom()
                atom.name, atom.element = atom_name, gemmi.Element(atom_name[0])
                atom.pos = gemmi.Position(*(TURN @ position + SHIFT))
                residue.add_atom(atom)
            chain.add_residue(residue)
        model.add_chain(chain)

    for name, residues in zip(NAMES, chains, strict=False):
        add(name, [(residue_library()[r.name].pdb_name, r.number, r.atoms) for r in residues])
    first = (147 - dna) // 2
    position, kinds, _ = build_dna(np.arange(dna) % 4, *(x[first:first + dna] for x in crystal_path()))
    library = list(residue_library().values())
    start = np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in kinds])])
    for strand, name in enumerate("YZ"):
        add(name, [(library[kinds[r]].pdb_name, r % dna + 1,
                    {a: position[start[r] + i] for i, a in enumerate(library[kinds[r]].atoms)
                     if library[kinds[r]].elements[i] != "H"}) for r in range(strand * dna, (strand + 1) * dna)])
    result = gemmi.Structure()
    result.add_model(model)
    result.setup_entities()
    return result


def write(path, made):
    """As mmCIF."""
    made.make_mmcif_document().write_file(str(path))
    return path


def sequence(chain):
    """One letter a residue."""
    return "".join(r.letter for r in chain)


@pytest.fixture(scope="module")
def crystal():
    return chains_of(octamer("crystal"))


@pytest.fixture(scope="module")
def added(tmp_path_factory, crystal):
    """1KX5 as a user may have it: other names, order and place; a tail, a loop and a side chain are not there."""
    folder = tmp_path_factory.mktemp("template")
    h3, h4, *others = (list(chain) for chain in (*crystal[4:], *crystal[:4]))
    h3 = h3[38:]
    h4 = h4[:75] + h4[78:]
    truncated = others[0][60]
    assert truncated.letter == "E"
    others[0][60] = type(truncated)(truncated.name, truncated.number,
                                    {a: truncated.atoms[a] for a in ("N", "CA", "C", "O", "CB")})
    write(folder / "my.cif", structure([h3, h4, *others], dna=145))
    report = add_template(folder / "my.cif", folder / "my.nucleosome.h5")
    return folder, report


@pytest.mark.slow
def test_what_was_found_is_said(added):
    _, report = added
    assert report["fold_deviation"] < 0.01 and report["base_pairs"] == 145 and report["base_pairs_completed"] == 2
    assert report["dyad"] in ("Y73", "Z73")  # the middle of 145, of the strand that is strand I in the own frame
    chains = {chain["chain"]: chain for chain in report["chains"]}
    # Both halves are told apart, since those of 1KX5 differ by more than an angstrom.
    assert [chains[name]["becomes"] for name in NAMES] == list("EFGHABCD")
    assert [chains[name]["histone"] for name in "QRST"] == [f"xenopus {name}" for name in ("H3", "H4", "H2A", "H2B")]
    assert chains["Q"]["completed"] == "1-38" and chains["R"]["completed"] == "76-78"
    assert chains["U"]["side_chains_completed"] == 0 and not chains["U"]["completed"]
    assert chains["S"]["side_chains_completed"] == 1 and not chains["S"]["completed"]
    assert all(after <= before and after == 0 for before, after in report["heavy_pairs_below_2"].values())


@pytest.mark.slow
def test_the_template_is_the_structure_in_the_own_frame(added, crystal):
    folder, _ = added
    template = read_template(folder / "my.nucleosome.h5")
    # Bases that overlap are turned a little when DNA is built, and two of the base pairs are completed.
    origin, frame = crystal_path()
    assert np.sqrt(np.mean(np.sum((template.origin - origin) ** 2, axis=1))) < 0.2
    assert np.degrees(Rotation.from_matrix(np.swapaxes(frame, 1, 2) @ template.frame).magnitude()).max() < 10.0
    chains = chains_of(template.octamers["crystal"])
    assert [sequence(c) for c in chains] == [sequence(c) for c in crystal]
    assert [[r.number for r in c] for c in chains] == [[r.number for r in c] for c in crystal]
    # What the file holds is kept to its three decimals; clash correction turns side chains only.
    kept = [(chains[k][i].atoms["CA"], other[i].atoms["CA"]) for k, other in enumerate(crystal)
            for i in range(45, 95) if not (k == 5 and 70 < i < 82)]
    here, there = (np.array(x) for x in zip(*kept, strict=True))
    assert np.linalg.norm(here - there, axis=1).max() < 0.01


@pytest.mark.slow
def test_builds_from_a_template_are_sound(added):
    """Two nucleosomes with a locus' own sequence: chains as they must be, no fatal contact with DNA."""
    folder, _ = added
    (folder / "locus.yaml").write_text("build:\n  template: my.nucleosome.h5\n")
    config = load_config(folder / "locus.yaml")
    solute = build_solute(synthetic_scaffold(2, 20, 5), config)
    assert solute.molecule_name[2:] == ["H3", "H4", "H2A", "H2B"] * 4
    found = audit(Atoms.from_solute(solute))
    assert not found.chirality_errors and not found.cis_peptides and not found.piercings
    a, b = solute.bonds().T
    heavy = solute.elements() != "H"
    length = np.linalg.norm((solute.position[a] - solute.position[b]).astype(float), axis=1)[heavy[a] & heavy[b]]
    assert 1.15 < length.min() and length.max() < 1.95
    protein = np.arange(solute.n_atoms) >= solute.molecule_first_atom[2]
    distance = cKDTree(solute.position[heavy & ~protein]).query(solute.position[heavy & protein])[0]
    # Other bases than those it was corrected with: contacts are left for the clash stage, none of them fatal, about as
    # many as the octamer of 1KX5 has on bases that are not its own (4 to 6 a nucleosome).
    assert distance.min() > 0.9 and np.sum(distance < 2.0) <= 16


def test_what_is_no_nucleosome_is_refused(tmp_path, crystal):
    with pytest.raises(BadInputError, match="cannot be read as PDB or mmCIF"):
        add_template(tmp_path / "missing.cif")
    half = write(tmp_path / "half.cif", structure(crystal[:4]))
    with pytest.raises(BadInputError, match="holds 1 H3, 1 H4, 1 H2A, 1 H2B, a nucleosome has two of each: give"):
        add_template(half)
    with pytest.raises(BadInputError, match="has no chain K; it has Q, R"):
        add_template(half, chains=["K"])
    short = write(tmp_path / "short.cif", structure(crystal, dna=61))
    with pytest.raises(BadInputError, match="has 61 base pairs without a break, a template needs 101"):
        add_template(short)
    config = Settings.model_validate({"build": {"template": str(half)}})
    with pytest.raises(BadInputError, match="cannot be read as a nucleosome template"):
        build_solute(synthetic_scaffold(1, 0, 5), config)
    config.build.histones = "yeast"
    with pytest.raises(BadInputError, match="leave out build.histones and variants"):
        build_solute(synthetic_scaffold(1, 0, 5), config)


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """A folder that a server of this machine serves as if it were the Protein Data Bank."""
    folder = tmp_path / "archive"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("chromabuild.template_import.template.PDBList",
                        partial(PDBList, server=f"http://127.0.0.1:{server.server_port}"))
    yield folder
    server.shutdown()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    """Says nothing on standard error."""

    def log_message(self, *_):
        pass


def put(archive, entry, content):
    """Where the archive keeps an entry as mmCIF."""
    path = archive / "pub" / "pdb" / "data" / "structures" / "divided" / "mmCIF" / entry[1:3] / f"{entry}.cif.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(content))


def test_an_entry_is_fetched(archive, crystal, monkeypatch, tmp_path):
    """What the archive holds is what a template is made of, under the entry's name."""
    content = structure(crystal[:1], dna=20).make_mmcif_document().as_string()
    put(archive, "9zzz", content.encode())
    made = []
    monkeypatch.setattr("chromabuild.template_import.template.add_template",
                        lambda file, *rest: made.append((Path(file).read_text(), *rest)))
    fetch_template("9ZZZ", chains=["A"])
    assert made == [(content, "9zzz.nucleosome.h5", ["A"])]


def test_an_entry_that_is_not_there_or_no_nucleosome_is_refused(archive, crystal, monkeypatch, tmp_path):
    put(archive, "9zzy", structure(crystal[:1], dna=20).make_mmcif_document().as_string().encode())
    monkeypatch.chdir(tmp_path)
    missing, strange = (CliRunner().invoke(app, ["template", "fetch", entry]) for entry in ("9zzx", "9ZZY"))
    assert missing.exit_code == strange.exit_code == 3
    assert "PDB entry 9zzx cannot be downloaded" in missing.stderr and "404" in missing.stderr
    assert "9zzy.cif" in strange.stderr and not list(tmp_path.glob("*.h5"))


def test_fetching_without_a_network_is_one_sentence(monkeypatch, tmp_path):
    def unreachable(*_):
        raise OSError("no route to host")

    monkeypatch.setattr(import_module("Bio.PDB.PDBList"), "urlretrieve", unreachable)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["template", "fetch", "1KX5"])
    assert said.exit_code == 3 and "cannot be downloaded (no route to host)" in said.stderr
    assert not list(tmp_path.iterdir())
    assert "is no name of a PDB entry" in CliRunner().invoke(app, ["template", "fetch", "nucleosome"]).stderr
