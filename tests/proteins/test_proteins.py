"""Proteins on DNA: a part of nucleosome 1KX5 as a structure file, placed twice on a locus, against that file.

The judge is the file itself: its atoms by superposition, its base pairs by their step parameters.
"""

from pathlib import Path

import gemmi
import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.complexes import SEQUENCE, write_complex

from chromabuild import Locus
from chromabuild.analysis.duplex import read_duplexes
from chromabuild.api import build_solute, fibre_of, fold, remove_clashes
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, changed, load_config
from chromabuild.dna.steps import analyse
from chromabuild.export.region import part_of_solute
from chromabuild.export.structure import write_structure
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.peptide import superposition
from chromabuild.pipeline.inspect import locus_summary
from chromabuild.proteins.complex import read_complex
from chromabuild.solvate.ions import formal_charges

FIRST, OTHER, LENGTH = 14, 52, 80
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def write_locus(folder: Path, sites: str | None = None, length: int = LENGTH, structures: str = "[H2B.cif]") -> Path:
    """A locus without nucleosomes, both sites with the sequence of the structure, the second on the lower strand."""
    sequence = list("ACGTTGCATC" * (length // 10))
    for first, letters in ((FIRST, SEQUENCE), (OTHER, SEQUENCE[::-1].translate(COMPLEMENT))):
        sequence[first:first + len(letters)] = letters
    (folder / "g.fa").write_text(f">chrT:1001-{1000 + length}\n{''.join(sequence)}\n")
    n = len(SEQUENCE)
    (folder / "p.bed").write_text(sites or f"chrT\t{1000 + FIRST}\t{1000 + FIRST + n}\tH2B\t1\t+\n"
                                           f"chrT\t{1000 + OTHER}\t{1000 + OTHER + n}\tH2B\t1\t-\n")
    (folder / "locus.yaml").write_text(
        "locus: {name: proteins, fasta: g.fa, nucleosomes: null, proteins: p.bed}\n"
        f"build: {{structures: {structures}}}\nscaffold: {{sweeps: 20}}\nsolvate: {{padding: 4}}\n")
    return folder / "locus.yaml"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Settings, structure, scaffold, solute and solute without clashes."""
    folder = tmp_path_factory.mktemp("proteins")
    write_complex(folder / "H2B.cif")
    settings = load_config(write_locus(folder))
    scaffold = fold(Locus.from_files(settings.locus.fasta, None, proteins=settings.locus.proteins), settings, threads=1)
    solute = build_solute(scaffold, settings, threads=1)
    return settings, read_complex(settings.build.structures[0]), scaffold, solute, remove_clashes(solute, settings)


def atoms_of(solute: Solute, molecule: int) -> np.ndarray:
    return solute.position[solute.molecule_first_atom[molecule]:solute.molecule_first_atom[molecule + 1]].astype(float)


def test_a_structure_is_read_as_gemmi_reads_it(built):
    """The protein's heavy atoms are those of the file to its three decimals; the base pairs are those of the duplex."""
    settings, found, *_ = built
    model = gemmi.read_structure(settings.build.structures[0])[0]
    heavy = np.array([atom.pos.tolist() for residue in model["P"] for atom in residue])
    middle = read_duplexes(settings.build.structures[0])[0].pair_frames[0].mean(axis=0)
    apart, _ = cKDTree(found.protein.position).query(heavy - middle)
    assert apart.max() < 1e-3
    assert found.sequence == SEQUENCE and found.report["breaks"] == found.report["side_chains_completed"] == 0


@pytest.mark.parametrize(("molecule", "first", "reverse"), [(2, FIRST, False), (3, OTHER, True)])
def test_protein_and_base_pairs_lie_as_in_the_structure(built, tmp_path, molecule, first, reverse):
    """Rigid: atoms to the float32 of the solute. Bases lie as in the structure, eased where they overlap, most at its
    ends: 0.1 angstrom and 2 degrees of step parameters, where tilt and roll of the bent DNA span 20 degrees."""
    settings, found, _, solute, (clean, report) = built
    for one in (solute, clean):
        atoms = atoms_of(one, molecule)
        matrix, shift = superposition(atoms, found.protein.position)
        assert np.sqrt(np.mean(np.sum((atoms @ matrix.T + shift - found.protein.position) ** 2, axis=1))) < 0.05
        path = write_structure(one, tmp_path / "solute.cif", "test")
        duplex = read_duplexes(path)[0]
        assert len(duplex.sequence) == LENGTH  # every pair is there
        part = slice(first, first + len(SEQUENCE))
        origin, frame = duplex.pair_frames
        expected_origin, expected_frame = found.pairs(reverse)
        moved = np.linalg.norm(origin[part] @ matrix.T + shift - expected_origin, axis=1)
        assert moved[1:-1].max() < 0.05 and moved.max() < 0.2
        steps = analyse(expected_origin[:-1], expected_frame[:-1], expected_origin[1:], expected_frame[1:])
        apart = np.abs(duplex.step_parameters[part][:-1] - steps)
        assert apart[:, :3].max() < 0.1 and apart[:, 3:].max() < 2.0
        assert duplex.sequence[part] == found.strand(reverse)
    assert report.fatal == 0


def test_the_file_turned_over_is_the_same_complex(built):
    """Strand II's frames, turned over again, are strand I's."""
    _, found, *_ = built
    origin, frame = found.pairs(reverse=True)
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    one = analyse(found.pair_origin[:-1], found.pair_frame[:-1], found.pair_origin[1:], found.pair_frame[1:])
    assert np.allclose(steps[::-1] * [-1, 1, 1, -1, 1, 1], one, atol=1e-6)  # shift and tilt change their sign
    assert found.strand(reverse=True) == SEQUENCE[::-1].translate(COMPLEMENT)


def test_disulphides(tmp_path):
    """Two residues of a helix made cysteines whose sulphurs are 2.04 angstrom apart; a third one there is refused."""
    write_complex(tmp_path / "plain.cif")
    structure = gemmi.read_structure(str(tmp_path / "plain.cif"))
    chain = structure[0]["P"]
    one, other, third = (chain[k] for k in (20, 24, 23))
    middle = 0.5 * (np.array(one["CB"][0].pos.tolist()) + np.array(other["CB"][0].pos.tolist()))
    way = np.array(one["CB"][0].pos.tolist()) - middle

    def make_cysteine(residue, sulphur):
        residue.name = "CYS"
        for atom in [atom.name for atom in residue if atom.name not in ("N", "CA", "C", "O", "CB")]:
            residue.remove_atom(atom, "\0")
        atom = gemmi.Atom()
        atom.name, atom.element, atom.pos = "SG", gemmi.Element("S"), gemmi.Position(*sulphur)
        residue.add_atom(atom)

    for residue, sign in ((one, 1), (other, -1)):
        make_cysteine(residue, middle + sign * 1.02 * way / np.linalg.norm(way))
    structure.make_mmcif_document().write_file(str(tmp_path / "two.cif"))
    found = read_complex(str(tmp_path / "two.cif"))
    (pair,) = found.protein.links
    assert [residue_names()[found.protein.residue_template[k]] for k in pair] == ["CYX", "CYX"]
    assert found.protein.residue_number[list(pair)].tolist() == [one.seqid.num, other.seqid.num]
    library = residue_library()["CYX"]
    sulphurs = [found.protein.position[found.protein.first_atom[k] + library.index["SG"]] for k in pair]
    assert np.linalg.norm(sulphurs[0] - sulphurs[1]) == pytest.approx(2.04, abs=2e-3)
    assert found.report["disulphides"] == 1
    make_cysteine(third, middle)
    structure.make_mmcif_document().write_file(str(tmp_path / "three.cif"))
    with pytest.raises(BadInputError, match="lies within 2.5 angstrom of two others"):
        read_complex(str(tmp_path / "three.cif"))


def test_nothing_overlaps(built):
    """2.0 angstrom between heavy atoms of different molecules is below any contact but a bond."""
    *_, (clean, _) = built
    element = clean.elements()
    molecule = np.repeat(np.arange(len(clean.molecule_name)), np.diff(clean.molecule_first_atom))
    heavy = np.flatnonzero(element != "H")
    pairs = cKDTree(clean.position[heavy]).query_pairs(2.0, output_type="ndarray")
    strands = {0, 1}
    assert not [pair for pair in molecule[heavy[pairs]].tolist() if pair[0] != pair[1] and set(pair) != strands]


def test_fold_keeps_clear_of_proteins_and_any_number_of_threads_gives_the_same(built):
    settings, _, scaffold, solute, _ = built
    assert scaffold.floor_violations == 0 and scaffold.proteins.name == ["H2B", "H2B"]
    assert scaffold.proteins.reverse.tolist() == [False, True]
    locus = Locus.from_files(settings.locus.fasta, None, proteins=settings.locus.proteins)
    again = fold(locus, settings, threads=2)
    assert np.array_equal(again.origin, scaffold.origin)
    assert np.array_equal(again.proteins.frame, scaffold.proteins.frame)
    assert np.array_equal(build_solute(again, settings, threads=2).position, solute.position)
    body = fibre_of(locus, settings).proteins[0].body
    assert body.charge.sum() == formal_charges()[solute.residue_template[2 * LENGTH:2 * LENGTH + 70]].sum()


def test_files_hold_the_proteins(built, tmp_path):
    """Scaffold and solute come back; a region has the protein that lies in it; the report counts them."""
    _, _, scaffold, solute, _ = built
    scaffold.write(tmp_path / "scaffold.h5")
    again = type(scaffold).read(tmp_path / "scaffold.h5")
    assert again.proteins.name == scaffold.proteins.name
    assert np.array_equal(again.proteins.origin, scaffold.proteins.origin)
    part = part_of_solute(solute, scaffold, FIRST - 2, FIRST + len(SEQUENCE) + 2)
    assert part.molecule_name == ["DNA-I", "DNA-J", "H2B"]
    (row,) = solute.build_report["proteins"]
    assert (row["sites"], row["base_pairs"], row["base_pairs_differing"]) == (2, len(SEQUENCE), 0)


def broken(folder: Path, change) -> str:
    """The sentence of ``validate``."""
    structure = write_complex(folder / "H2B.cif")
    path = write_locus(folder)
    change(folder, structure)
    with pytest.raises(BadInputError) as error:
        locus_summary(load_config(path))
    return str(error.value)


def without(name: str, atom: str):
    """Remove an atom of the first residue with a name."""
    def change(folder: Path, structure: Path) -> None:
        model = gemmi.read_structure(str(structure))
        residue = next(r for r in model[0]["P"] if r.name == name)
        residue.remove_atom(atom, "\0")
        model.make_mmcif_document().write_file(str(structure))
    return change


N = len(SEQUENCE)


@pytest.mark.parametrize(("change", "sentence"), [
    (lambda f, s: write_complex(s, with_dna=False), "holds no DNA duplex"),
    (lambda f, s: write_complex(s, with_protein=False), "holds no protein"),
    (lambda f, s: (f / "p.bed").write_text("chrT\t1010\t1020\tH2B\n"), "p.bed, line 1: H2B covers 10 bp, the DNA of"),
    (lambda f, s: (f / "p.bed").write_text(f"chrT\t1010\t{1010 + N}\tH2b\n"),
     "H2b has no structure: the structures are H2B"),
    (lambda f, s: (f / "p.bed").write_text(f"chrT\t1010\t{1010 + N}\tH2B\nchrT\t1020\t{1020 + N}\tH2B\n"),
     "line 1: H2B on 1010-1025 shares 5 bp with H2B of line 2"),
    (lambda f, s: (f / "p.bed").write_text(f"chrT\t1010\t{1010 + N}\tH2B\nchrT\t1027\t{1027 + N}\tH2B\n"),
     "leaves 2 bp beside"),
    (lambda f, s: (f / "p.bed").write_text(f"chrT\t1070\t{1070 + N}\tH2B\n"), "reaches outside the sequence"),
    (lambda f, s: (f / "p.bed").write_text(f"chrT\t1010\t{1010 + N}\tH2B\t0\tx\n"), "strand 'x' is none of"),
    (without("LYS", "C"), "lacks C of its backbone"),
    (lambda f, s: s.write_text("nonsense"), "cannot be read"),
])
def test_validate_refuses(tmp_path, change, sentence):
    assert sentence in broken(tmp_path, change)


def test_a_site_on_a_nucleosome_is_refused(tmp_path):
    write_complex(tmp_path / "H2B.cif")
    path = write_locus(tmp_path, length=240, sites=f"chrT\t1070\t{1070 + N}\tH2B\n")
    (tmp_path / "n.bed").write_text("chrT\t1150\t1151\tplus1\n")
    path.write_text(path.read_text().replace("nucleosomes: null", "nucleosomes: n.bed"))
    with pytest.raises(BadInputError, match="shares 8 bp with nucleosome plus1, which holds 1077-1224"):
        locus_summary(load_config(path))


def test_side_chains_are_completed(tmp_path):
    """A lysine cut to its beta carbon, as crystals leave them, gets a side chain that keeps clear of DNA."""
    path = write_complex(tmp_path / "H2B.pdb")
    structure = gemmi.read_structure(str(path))
    residue = next(r for r in structure[0]["P"] if r.name == "LYS")
    for name in ("CG", "CD", "CE", "NZ"):
        residue.remove_atom(name, "\0")
    structure.write_pdb(str(path))
    found = read_complex(str(path))
    assert found.report["side_chains_completed"] == 1
    assert len(found.protein.position) == len(read_complex(str(write_complex(tmp_path / "whole.pdb"))).protein.position)


def test_settings_without_proteins_are_as_before():
    assert Settings().locus.proteins is None and Settings().build.structures is None


def test_the_lac_repressor_sits_on_its_operator(tmp_path):
    """PDB 1LCD, an NMR structure with buckles of 31 degrees: main chain rigid, at most three side chains turned away
    from the new phosphates, base pairs within 0.3 angstrom and 3 degrees of those of the file, all of them intact."""
    structure = Path(__file__).parent / "data" / "lac.pdb.gz"
    found = read_complex(str(structure))
    assert (found.name, found.sequence, found.report["residues"]) == ("lac", "AATTGTGAGCG", 51)
    first, n = 15, len(found.sequence)
    (tmp_path / "g.fa").write_text(f">chrT:1-41\n{'ACGTTGCATCGGATC' + found.sequence + 'ACGTTGCATCGGATC'}\n")
    (tmp_path / "p.bed").write_text(f"chrT\t{first}\t{first + n}\tlac\n")
    settings = changed(None, "build", {"structures": str(structure)}, None, "test")
    locus = Locus.from_files(tmp_path / "g.fa", None, proteins=tmp_path / "p.bed")
    solute = build_solute(fold(locus, settings, sweeps=5, threads=1), settings, threads=1)
    main = np.isin(solute.atom_names()[solute.molecule_first_atom[2]:], ("N", "CA", "C", "O"))
    placed, expected = atoms_of(solute, 2)[main], found.protein.position[main]
    matrix, shift = superposition(placed, expected)
    assert np.sqrt(np.mean(np.sum((placed @ matrix.T + shift - expected) ** 2, axis=1))) < 0.05
    assert solute.build_report["turned_side_chains"] <= 3
    duplex = read_duplexes(write_structure(solute, tmp_path / "solute.cif", "test"))[0]
    assert len(duplex.sequence) == 41
    judge = read_duplexes(structure)[0]
    apart = np.abs(duplex.step_parameters[first:first + n - 1] - judge.step_parameters)
    assert apart[:, :3].max() < 0.3 and apart[:, 3:].max() < 3.0
    origin = duplex.pair_frames[0][first:first + n] @ matrix.T + shift
    assert np.linalg.norm(origin - found.pair_origin, axis=1).max() < 0.3
    assert solute.build_report["proteins"][0]["base_pairs_differing"] == 0
    clean, report = remove_clashes(solute, settings, threads=1)
    assert report.fatal == 0 and len(clean.molecule_name) == 3
