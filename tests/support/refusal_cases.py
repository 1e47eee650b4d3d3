"""What users get wrong, for test_refusals.py: projects that `validate` refuses, and refusals that it cannot give.

Each project has the files of ``SOUND`` and settings that refer to them; a case changes some of both.
"""

SEQUENCE = "ACGTTGCA" * 80
DYADS = "chr1\t150\t151\tfirst\nchr1\t400\t401\tsecond\n"
SOUND = {"locus.fa": f">chr1\n{SEQUENCE}\n", "nucleosomes.bed": DYADS}
BARE = {"locus": {"nucleosomes": None}}
PHASE = {"name": "p", "steps": 1}
STEEP = {"name": "m", "kind": "minimise", "steps": 1}


def bed(*rows: str) -> str:
    """Rows with blanks as BED."""
    return "".join("\t".join(row.split()) + "\n" for row in rows)


def case(settings: object = None, **files: str | bytes) -> tuple[dict[str, str | bytes], object]:
    """Files by name, with ``__`` for a dot, and settings (a mapping or a text)."""
    return SOUND | {name.replace("__", "."): content for name, content in files.items()}, (
        {} if settings is None else settings)


def locus(**keys: object) -> dict[str, object]:
    return {"locus": keys}


def phases(*given: dict[str, object], **sections: object) -> dict[str, object]:
    return {"simulate": {"phases": list(given)}} | sections


def of_locus(fasta: str, **keys: object) -> tuple[dict[str, str | bytes], object]:
    return case(locus(**keys), locus__fa=fasta)


def of_dyads(text: str, **keys: object) -> tuple[dict[str, str | bytes], object]:
    return case(locus(**keys), nucleosomes__bed=text)


def of_file(section: str, key: str, text: str | bytes, name: str = "x.bed", **others: object
            ) -> tuple[dict[str, str | bytes], object]:
    """A file that a key names."""
    return SOUND | {name: text}, {section: {key: name} | others}


def of_marks(text: str | bytes, name: str = "x.bed", **keys: object) -> tuple[dict[str, str | bytes], object]:
    return of_file("build", "marks", text, name, **keys)


def of_variants(*marks: str, **keys: object) -> tuple[dict[str, str | bytes], object]:
    return case({"build": {"variants": list(marks)} | keys})


ENERGY = "#chrom1\n" + bed("chr1 0 100 chr1 300 400 c {} {}")
SETTINGS = {
    "no settings": (SOUND, None),
    "settings that are a folder": (SOUND | {"locus.yaml/x": ""}, None),
    "a key twice": case("seed: 1\nseed: 2\n"),
    "no YAML": case("seed: [1\n"),
    "settings that are a list": case("- 1\n"),
    "a moved key": case({"dynamics": {"timestep": 2}}),
    "an unknown key": case({"sed": 1}),
    "a bad value": case({"seed": -1}),
    "neither protocol nor phases": case({"simulate": {"protocol": None}}),
    "protocol and phases": case({"simulate": {"protocol": "demo", "phases": [PHASE]}}),
    "exchange with another engine": case(phases(
        PHASE | {"exchange": {"temperatures": [300, 310]}}, dynamics={"engine": "openmm"})),
    "the root as output": case({"output": "/"}),
    "a file as output": case({"output": "locus.fa"}),
    "a launcher without a program": case({"dynamics": {"launcher": "mpirun -np {ranks}"}}),
    "phases that contradict each other": case(phases(PHASE, PHASE)),
    "an output that cannot be written": case({"output": "/proc/x"}),
    "a launcher that is not here": case({"dynamics": {"launcher": "no-such-launcher {ranks} {program}"}} | BARE),
    "a platform that is not here": case({"dynamics": {"engine": "openmm", "platform": "HIP"}} | BARE),
    "a switch beyond the cutoff": case({"dynamics": {"switch_distance": 20}}),
    "a clash mode": case({"clash": {"threshold": 2.5}}),
    "too many ranks": case({"dynamics": {"ranks": 100000}} | BARE),
}
FOLD = {
    "formal charges and flexible tails": case({"scaffold": {"tails": "flexible", "core_charges": "formal"}}),
    "temperatures that do not ascend": case({"scaffold": {"hotter": [1.2, 1.1]}}),
    "a replica that there is not": case({"scaffold": {"replica": 2}}),
    "a circle that is twisted": case(locus(nucleosomes=None, circular=True, linking_number=5)),
    "turns of linear DNA": case(locus(linking_number=5)),
    "turns of a circle with nucleosomes": case(locus(circular=True, linking_number=5)),
    "beads of a circle": case({"refine": {"enabled": True}, "locus": {"nucleosomes": None, "circular": True}}),
    "a circle that is too short": case(locus(nucleosomes=None, circular=True), locus__fa=">chr1\nACGTTGCA\n"),
    "missing dimers of a circle alone": of_file("locus", "missing_dimers", bed("chr1 0 100 both"), circular=True,
                                                nucleosomes=None),
    "no protein on a part that is closed": of_file("locus", "proteins", bed("chr1 400 420 TBP"), circular=True,
                                                   nucleosomes=None, region="chr1:1-300"),
    "a protein on a circle without a linker": case(
        locus(circular=True, proteins="p.bed"), locus__fa=f">chr1\n{SEQUENCE[:200]}\n", p__bed=bed("chr1 195 205 TBP"),
        nucleosomes__bed=bed("chr1 20 21", "chr1 120 121")),
    "a part of a nucleosome without the other": of_dyads(bed("chr1 600 640 a.part1", "chr1 300 301"), circular=True),
    "parts of a nucleosome of linear DNA": of_dyads(bed("chr1 600 640 a.part1", "chr1 0 107 a.part2")),
    "a circle without a linker": case(
        locus(circular=True), locus__fa=f">chr1\n{SEQUENCE[:200]}\n",
        nucleosomes__bed=bed("chr1 20 21", "chr1 120 121")),
    "no room on a circle": case(locus(circular=True), locus__fa=f">chr1\n{SEQUENCE[:155]}\n",
                                nucleosomes__bed=bed("chr1 20 21")),
    "DNA of two base pairs": of_locus(">chr1\nAC\n", nucleosomes=None),
}
SEQUENCES = {
    "no sequence file": case(locus(fasta="none.fa")),
    "a folder as sequence": case(locus(fasta=".")),
    "an empty file": of_locus(""),
    "a file that is not ASCII": of_locus(">chr1\nACGT\xff\n"),
    "a damaged gzip": case(None, locus__fa=b"\x1f\x8b\x08\x00damaged"),
    "several records": of_locus(">a\nACGT\n>b\nACGT\n"),
    "no such record": case(locus(record="other")),
    "letters before a header": of_locus("ACGT\n>a\nACGT\n"),
    "a record without sequence": of_locus(">chr1\n\n"),
    "an unknown base": of_locus(f">chr1\n{SEQUENCE[:-1]}N\n"),
    "an even number of wrapped base pairs": case(locus(wrapped_length=146)),
    "fewer base pairs than a nucleosome": of_dyads(bed("chr1 50 51"), fasta="short.fa"),
    "a header with another length": of_locus(f">chr1:1-100\n{SEQUENCE}\n"),
    "a region that is none": case(locus(region="chr1")),
    "a region and a start": case(locus(region="chr1:1-640", start=5)),
    "a region on another record": case(locus(region="chr9:1-640")),
    "a region beyond the record": case(locus(region="chr1:1-700")),
    "a region beyond an indexed record": (SOUND | {"locus.fa.fai": "chr1\t640\t6\t640\t641\n"},
                                          locus(region="chr1:1-700")),
    "an index of another file": (SOUND | {"locus.fa.fai": "chr1\t640\t600\t640\t641\n"}, locus(region="chr1:1-640")),
    "a region without a whole nucleosome": case(locus(region="chr1:140-400")),
    "a table without the chromosome": of_file("locus", "chromosome_names", "chrII\tII\n"),
    "a table of one name": of_file("locus", "chromosome_names", "chr1\n"),
    "a table with a name twice": of_file("locus", "chromosome_names", "chr1\tI\nchr2\tI\n"),
    "a table of nothing": of_file("locus", "chromosome_names", "# nothing\n"),
}
SEQUENCES["fewer base pairs than a nucleosome"][0]["short.fa"] = f">chr1\n{SEQUENCE[:100]}\n"
NUCLEOSOMES = {
    "two columns": of_dyads(bed("chr1 150")),
    "a start that is no number": of_dyads(bed("chr1 x 151")),
    "an end before the start": of_dyads(bed("chr1 151 150")),
    "a score that is no number": of_dyads(bed("chr1 150 151 a x")),
    "another chromosome": of_dyads(bed("chr2 150 151")),
    "a dyad outside": of_dyads(bed("chr1 900 901")),
    "no nucleosome": of_dyads("# none\n"),
    "no columns 7 and 8": case(locus(wrapping="thick")),
    "a dyad twice": of_dyads(bed("chr1 150 151", "chr1 150 151")),
    "a summit outside its peak": of_file("locus", "nucleosomes", bed("chr1 100 200 a 1 . 1 1 1 500"), "x.narrowPeak"),
    "overlaps that are errors": of_dyads(bed("chr1 150 151", "chr1 250 251"), overlaps="error"),
    "no positive score to draw from": of_dyads(bed("chr1 150 151 a 0"), overlaps="draw"),
    "no room for all": of_dyads(bed(*(f"chr1 {k} {k + 1}" for k in range(100, 600, 50)))),
    "no positive score": of_dyads(bed("chr1 150 151 a 0"), overlaps="best-score"),
    "wrapped far from the dyad": of_dyads(bed("chr1 150 151 a 1 + 10 400"), wrapping="thick"),
    "too few wrapped": of_dyads(bed("chr1 120 180"), wrapping="width"),
    "a dimer that is none": of_file("locus", "missing_dimers", bed("chr1 140 160 some")),
    "a dimer on no strand": of_file("locus", "missing_dimers", bed("chr1 140 160 proximal 0 x")),
    "two dimers that differ": of_file("locus", "missing_dimers",
                                      bed("chr1 140 160 proximal", "chr1 140 160 distal")),
    "dimers of no nucleosome": of_file("locus", "missing_dimers", bed("chr1 10 20 both")),
    "held arms without a linker histone": case({"build": {"linker_arms": "held"}}),
    "wrapped arms without a linker histone": of_dyads(bed("chr1 150 151 a 1 + 70 231"), wrapping="thick"),
    "held arms on a superhelix": case({"build": {"linker_arms": "held", "linker_histone": "H5",
                                                 "nucleosome_path": "superhelix"}}),
    "held arms that meet": (SOUND | {"nucleosomes.bed": bed("chr1 150 151", "chr1 310 311")},
                            {"build": {"linker_arms": "held", "linker_histone": "H5"}}),
    "held arms beyond the sequence": (SOUND | {"nucleosomes.bed": bed("chr1 75 76")},
                                      {"build": {"linker_arms": "held", "linker_histone": "H5"}}),
}
CONTACTS = {
    "a contact of no weight": of_file("locus", "contacts", bed("chr1 0 100 chr1 300 400 a 0"), "x.bedpe"),
    "contacts elsewhere": of_file("locus", "contacts", bed("chr2 0 100 chr2 300 400"), "x.bedpe"),
    "no matrix": of_file("locus", "contacts", "nonsense", "x.cool"),
    "no matrix file": case(locus(contacts="none.cool")),
    "energies elsewhere": of_file("scaffold", "contact_energies", ENERGY.replace("chr1", "chr2").format(0.5, 1)),
    "a frequency above one": of_file("scaffold", "contact_energies", ENERGY.format(1.5, 1)),
    "an energy that is too large": of_file("scaffold", "contact_energies", ENERGY.format(0.5, 50)),
    "no energies": of_file("scaffold", "contact_energies", "# none\n"),
    "acetylation elsewhere": of_file("scaffold", "acetylated", bed("chr2 1 2")),
    "slopes of no range": case({"ensemble": {"slope_from": 20000}}),
    "bins that are too few": case({"ensemble": {"bin": 300}}),
    "bins that are too fine": case({"ensemble": {"bin": 50}, "locus": {"nucleosomes": None}},
                                   locus__fa=f">chr1\n{'ACGTTGCA' * 60_000}\n"),
    "an ensemble of a circle": case(locus(nucleosomes=None, circular=True) | {"ensemble": {"folds": 3}}),
    "two sources of energies": (SOUND | {"x.bed": ENERGY.format(0.5, 1)}, {
        "scaffold": {"contact_energies": "x.bed"}, "ensemble": {"rounds": 2}}),
    "rounds without contacts": case({"ensemble": {"rounds": 2, "bin": 100}}),
}
HISTONES = {
    "a variant that is none": of_variants("H9.Z"),
    "two variants of one histone": of_variants("H2A.Z", "macroH2A"),
    "a mutation that is none": of_variants("H3:K56"),
    "a residue that is not there": of_variants("H3:A56Q"),
    "a modification that is none": of_variants("H3K27xx"),
    "a third copy": of_variants("H3K27ac@3"),
    "a residue changed twice": of_variants("H3K27ac", "H3K27me3"),
    "a modification of another residue": of_variants("H3K28ac"),
    "a modification of a variant that is not there": of_variants("H2A.ZK4ac"),
    "an amino end that is none": of_variants("H4A15Nac"),
    "crystal tails of other histones": case({"build": {"tails": "crystal", "histones": "human"}}),
    "a template and other histones": of_file("build", "template", "nonsense", "t.h5", histones="human"),
    "a template that is none": of_file("build", "template", "nonsense", "t.h5"),
    "tails of the scaffold and missing dimers": (SOUND | {"x.bed": bed("chr1 140 160 both")}, {
        "locus": {"missing_dimers": "x.bed"}, "build": {"tails": "scaffold"}}),
    "marks elsewhere": of_marks(bed("chr2 140 160 H2A.Z")),
    "a mark that is none": of_marks(bed("chr1 140 160 H9.Z")),
    "a modification in a file that is none": of_marks(bed("chr1 140 160 H3K27xx")),
    "peaks of no mark": of_marks(bed("chr1 140 160 a 1 . 1 1 1 5"), "peaks.narrowPeak"),
    "a signal of no mark": of_marks("nonsense", "x.bw"),
    "a signal that is none": of_marks("nonsense", "H2A.Z.bw", track_threshold=1.0),
    "marks on what is missing": (SOUND | {"m.bed": bed("chr1 140 160 both"), "x.bed": bed("chr1 140 160 H2A.Z")}, {
        "locus": {"missing_dimers": "m.bed"}, "build": {"marks": "x.bed"}}),
    "ubiquitin on a tail of the scaffold": of_variants("H2AK119ub", tails="scaffold"),
    "a mark without parameters": of_variants("H3K4me3"),
    "a phosphate without parameters": case({"build": {"three_prime": "phosphate"}} | BARE),
    "a polyamine without parameters": case({"solvate": {"spermine": 0.1}} | BARE),
    "no marks file": case({"build": {"marks": "none.bed"}}),
}
METHYLATION = {
    name: of_file("build", "methylation", text) for name, text in {
        "two columns of methylation": bed("chr1 1"),
        "a base that is no C": bed("chr1 0 1 m 0 +"),
        "a cytosine twice": bed("chr1 1 2 m 0 +", "chr1 1 2 m 0 +"),
        "more than all reads": bed("chr1 1 2 m 0 + 1 2 0 9 80", "chr1 1 2 h 0 + 1 2 0 9 80"),
        "methylation elsewhere": bed("chr2 1 2 m 0 +"),
        "a modification of cytosine that is none": bed("chr1 1 2 q 0 +"),
        "a percentage beyond 100": bed("chr1 1 2 m 0 + 1 2 0 9 120"),
        "a strand that is none": bed("chr1 1 2 m 0 x"),
        "bases without a strand": bed("chr1 1 9 m 0 ."),
    }.items()}
PROTEINS = {
    "a protein on no strand": of_file("locus", "proteins", bed("chr1 10 20 TBP 0 x")),
    "a protein on another chromosome": of_file("locus", "proteins", bed("chr2 10 20 TBP")),
    "a protein outside": of_file("locus", "proteins", bed("chr1 700 720 TBP")),
    "no protein": of_file("locus", "proteins", "# none\n"),
    "a protein on a nucleosome": of_file("locus", "proteins", bed("chr1 150 170 TBP")),
    "a protein without structure": of_file("locus", "proteins", bed("chr1 10 20 TBP")),
    "a structure that is none": (SOUND | {"p.bed": bed("chr1 10 20 TBP"), "TBP.pdb": "nonsense\n"}, {
        "locus": {"proteins": "p.bed"}, "build": {"structures": ["TBP.pdb"]}}),
    "two structures of one name": (SOUND | {"p.bed": bed("chr1 10 20 TBP"), "TBP.pdb": "x", "TBP.cif": "x"}, {
        "locus": {"proteins": "p.bed"}, "build": {"structures": ["TBP.pdb", "TBP.cif"]}}),
}
FORCE_FIELDS = {
    "water without ions": case({"dynamics": {"force_field": "charmm36m"}, "solvate": {"water": "spce"}} | BARE),
    "a force field that is no XML": (SOUND | {"own.xml": "nonsense"}, {
        "dynamics": {"force_field_files": ["own.xml"]}} | BARE),
    "a file of CHARMM": (SOUND | {"own.prm": "nonsense"}, {"dynamics": {"force_field_files": ["own.prm"]}} | BARE),
    "another XML": (SOUND | {"own.xml": "<other/>"}, {"dynamics": {"force_field_files": ["own.xml"]}} | BARE),
    "a force field that OpenMM does not read": (SOUND | {"own.xml": "<ForceField><Nonsense a='1'/><AtomTypes><Type/>"
                                                         "</AtomTypes></ForceField>"}, {
        "dynamics": {"force_field_files": ["own.xml"]}} | BARE),
    "a force that a topology does not hold": (SOUND | {"own.xml": """<ForceField>
        <CustomTorsionForce energy="theta"><Proper class1="" class2="" class3="" class4=""/></CustomTorsionForce>
        </ForceField>"""}, {"dynamics": {"force_field_files": ["own.xml"]}} | BARE),
}
BOXES = {
    "a box below 20 A": case({"solvate": {"box": [10, 300, 300]}} | BARE),
    "a box beyond all bricks": case({"solvate": {"box": [1e7, 300, 300]}} | BARE),
    "a box below the potential": case({"solvate": {"box": [300, 300, 70], "ion_placement": "debye-hueckel"}} | BARE),
    "a box below the cutoff": case({"solvate": {"box": [900, 900, 20.5]}} | BARE),
    "a box below the solute": case({"solvate": {"box": [80, 80, 80]}} | BARE, locus__fa=f">chr1\n{SEQUENCE[:32]}\n"),
    "more ions than room": case({"solvate": {"salt": 6}} | BARE, locus__fa=f">chr1\n{SEQUENCE[:32]}\n"),
    "tails of DNA alone": case(phases(PHASE | {"restraints": [{"group": "tails", "constant": 1}]}) | BARE),
    "temperatures of proteins of DNA alone": case(phases(
        PHASE | {"exchange": {"temperatures": [300, 310], "solute": "protein"}}, dynamics={"ranks": 2}) | BARE),
}
CASES = {name: one for table in (SETTINGS, FOLD, SEQUENCES, NUCLEOSOMES, CONTACTS, HISTONES, METHYLATION, PROTEINS,
                                 FORCE_FIELDS, BOXES) for name, one in table.items()}

READERS = {
    "forcefield/openmm_system.py:*": "forcefield/test_openmm_system.py",
    "forcefield/assign.py:_check_before": "forcefield/test_modified_residues.py",
    "forcefield/assign.py:_cut": "forcefield/test_assign.py",
    "forcefield/assign.py:_parameterise": "forcefield/test_assign.py",
    "forcefield/rules.py:*": "forcefield/test_rules.py",
    "forcefield/virtual_sites.py:read_sites": "forcefield/test_openmm_system.py",
    "genome/bigwig.py:*": "nucleosome/test_modifications.py",
    "genome/contact_matrix.py:*": "genome/test_contact_matrix.py",
    "molecule/structure_file.py:*": "clash/test_foreign_files.py",
    "pipeline/validation.py:check_beads": "pipeline/test_refine.py",
    "nucleosome/marks.py:_claims_of_signal": "nucleosome/test_modifications.py",
    "nucleosome/template_file.py:read_template": "nucleosome/test_template.py",
    "pipeline/ensemble/design.py:make_design": "pipeline/test_ensemble_command.py",
    "proteins/complex.py:*": "proteins/test_proteins.py",
    "proteins/placing.py:fibre_with_proteins": "proteins/test_proteins.py",
}
"""What `validate` gives while it reads what the settings name, and where faults of these files are tried one by one."""

_COMMAND = "of another command, with input of its own: "
_LATER = "of files that stages made, which were harmed or exchanged since: "
_MACHINE = "of a state of the machine that comes and goes: "
_PROGRAM = "of a fault of the installation or of the program: "
_CALLER = "of arguments that the chain does not give, to those who call it from Python: "
_WORK = "of how the work went: "
_CHECKED = "of what another check refuses before, in the same words: "
ELSEWHERE = {
    "analysis/frame_analysis.py:FrameAnalysis._single_frame": _COMMAND + "analyse",
    "analysis/duplex.py:*": _COMMAND + "analyse duplex",
    "analysis/ensemble.py:*": _COMMAND + "ensemble",
    "analysis/nucleotides.py:find_nucleotides": _COMMAND + "analyse",
    "analysis/s*_analysis.py:S*Analysis.__init__": _COMMAND + "analyse",
    "analysis/solvent_maps.py:SolventMaps.__init__": _COMMAND + "analyse --measure map",
    "analysis/trajectory_file.py:*": _COMMAND + "analyse --topology",
    "analysis/whole_nucleosomes.py:WholeNucleosomes.__init__": _COMMAND + "analyse",
    "cli/analyse.py:trajectory": _COMMAND + "analyse, its options",
    "cli/clash.py:*": _COMMAND + "clash of a file, its options and what it finds",
    "cli/verify.py:verify": _COMMAND + "verify",
    "clash/report.py:*": _LATER + "the report of clashes",
    "base/hdf5_file.py:check_kind": _LATER + "HDF5, of another kind than is needed",
    "export/amber.py:*": _COMMAND + "export amber",
    "export/amber_terms.py:*": _COMMAND + "export amber",
    "export/charmm.py:*": _COMMAND + "export namd and genesis",
    "export/charmm_parameters.py:*": _COMMAND + "export namd and genesis",
    "export/frame.py:read_frame": _COMMAND + "export structure --frame",
    "export/genesis.py:export_genesis": _COMMAND + "export genesis",
    "export/gromacs/correction_maps.py:_roles": _COMMAND + "export gromacs",
    "export/implicit_sites.py:without_sites": _COMMAND + "export lammps",
    "export/lammps.py:*": _COMMAND + "export lammps",
    "export/lammps_maps.py:CorrectionMaps.of": _COMMAND + "export lammps",
    "export/openmm_files.py:export_openmm": _COMMAND + "export openmm",
    "export/pair_parameters.py:*": _COMMAND + "export of pairs that a format cannot hold",
    "export/parts.py:heavy_hydrogens": _COMMAND + "export --after a phase",
    "export/psf.py:write_entries": _COMMAND + "export namd and genesis",
    "export/region.py:*": _COMMAND + "export structure --region and --nucleosomes",
    "export/scene.py:write_scene": _COMMAND + "export scene",
    "export/selection.py:molecules_chosen": _COMMAND + "export --part",
    "export/structure.py:write_structure": _COMMAND + "export structure",
    "export/structure.py:_write_pdb": _COMMAND + "export structure",
    "export/system.py:BuiltSystem.__post_init__": _COMMAND + "export",
    "forcefield/coordinate_files.py:*": _COMMAND + "import",
    "forcefield/genesis_restart.py:*": _COMMAND + "import",
    "forcefield/gromacs_top.py:*": _COMMAND + "import",
    "forcefield/import_files.py:*": _COMMAND + "import",
    "forcefield/local_restraints.py:*": _COMMAND + "import",
    "forcefield/prmtop_file.py:*": _COMMAND + "import",
    "forcefield/psf_file.py:*": _COMMAND + "import",
    "genome/arrays.py:array_of": _COMMAND + "init",
    "genome/contact_targets.py:read_counts": _COMMAND + "contact-energies",
    "molecule/from_structure.py:*": _COMMAND + "clash fix",
    "pipeline/analysis.py:*": _COMMAND + "analyse",
    "pipeline/ensemble/choice.py:*": _COMMAND + "ensemble",
    "pipeline/ensemble/record.py:*": _COMMAND + "ensemble",
    "pipeline/ensemble/run.py:*": _COMMAND + "ensemble",
    "pipeline/examples.py:*": _COMMAND + "init",
    "pipeline/export.py:*": _COMMAND + "export",
    "pipeline/fix_structure.py:*": _COMMAND + "clash fix",
    "pipeline/quantum_check.py:*": _COMMAND + "qm",
    "pipeline/view.py:*": _COMMAND + "view",
    "pipeline/workflow.py:*": _COMMAND + "workflow",
    "quantum/chromaqm.py:*": _COMMAND + "qm run",
    "quantum/cluster.py:*": _COMMAND + "qm check",
    "quantum/points.py:*": _COMMAND + "qm check",
    "quantum/scan.py:*": _COMMAND + "qm check --scan",
    "quantum/state_map.py:*": _COMMAND + "qm map",
    "report/document.py:*": _LATER + "results of no stage at all",
    "report/watch.py:*": _COMMAND + "report --watch",
    "scaling/layouts.py:layouts": _COMMAND + "plan --machine",
    "scaling/machine.py:*": _COMMAND + "plan --machine",
    "scaling/prediction.py:checked": _COMMAND + "plan --machine",
    "shards/bag.py:*": _COMMAND + "shards bag",
    "shards/merge.py:*": _COMMAND + "shards merge",
    "shards/selection.py:*": _COMMAND + "shards merge",
    "shards/ranks.py:rank_and_size": _COMMAND + "shards, under MPI",
    "simulate/foreign_control.py:*": _COMMAND + "chromamd with files of other programs",
    "simulate/protocol.py:extended": _COMMAND + "run --extend",
    "simulate/protocol.py:phase_named": _COMMAND + "run --phase",
    "simulate/replicas.py:chosen_replicas": _COMMAND + "run --replica",
    "solvate/__init__.py:solvate": _COMMAND + "solvate --brick",
    "sterics/atoms.py:Atoms.from_file": _COMMAND + "clash check",
    "template_import/completion.py:completed": _COMMAND + "template add",
    "template_import/dna_path.py:duplex_around_dyad": _COMMAND + "template add",
    "template_import/structure.py:*": _COMMAND + "template add",
    "template_import/template.py:fetch_template": _COMMAND + "template fetch",
    "view/atoms.py:places": _COMMAND + "view",
    "view/frames.py:read_frames": _COMMAND + "view",
    "view/tracks.py:read_track": _COMMAND + "view --track",
    "base/settings.py:parse_override": _COMMAND + "--set",
    "base/settings.py:validated": _COMMAND + "--set, and what the cases refuse",

    "api.py:fold": _CHECKED + "validation.py:check_fibre_and_fold",
    "build/fibre.py:relaxed_path": _LATER + "scaffold.h5",
    "build/octamers.py:with_scaffold_tails": _LATER + "scaffold.h5",
    "clash/correct.py:correct_clashes": _LATER + "solute.h5",
    "forcefield/assign.py:make_topology": _LATER + "solute and shards",
    "forcefield/topology_file.py:opened": _LATER + "topology.h5",
    "molecule/solute.py:Solute.[or]*": _LATER + "solute.h5",
    "pipeline/chain.py:describe": _LATER + "any that a stage reads",
    "pipeline/ensemble/design.py:Design.read_energies": _LATER + "energies of a round",
    "pipeline/ensemble/results.py:*": _LATER + "folds",
    "pipeline/provenance.py:read": _LATER + "the record",
    "pipeline/results.py:*": _LATER + "all results",
    "pipeline/verify.py:*": _LATER + "all results",
    "proteins/placing.py:complexes_of": _LATER + "scaffold.h5",
    "shards/brick_file.py:*": _LATER + "shards",
    "shards/integrity.py:*": _LATER + "shards",
    "shards/manifest.py:*": _LATER + "the manifest",
    "simulate/boost.py:last_values": _LATER + "a phase before",
    "simulate/chromamd.py:phase_sections": _LATER + "a phase before",
    "simulate/chromamd.py:read_*": _LATER + "energies and forces of the engine",
    "simulate/energy_log.py:*": _LATER + "logs",
    "simulate/exchange.py:*": _LATER + "logs",
    "simulate/extension.py:read_extension": _LATER + "md/extended.json",
    "simulate/openmm_engine.py:_instability_told": _WORK + "a simulation becomes unstable",
    "simulate/openmm_engine.py:_resume": _LATER + "restarts",
    "simulate/openmm_engine.py:run_phase": _LATER + "shards and topology",
    "simulate/protocol.py:_run_in": _LATER + "phases before",
    "simulate/protocol.py:_steps_at_checkpoint": _LATER + "checkpoints",
    "simulate/restart_file.py:*": _LATER + "restarts",
    "simulate/result.py:*": _LATER + "phases",
    "simulate/tuning.py:read_tuning": _LATER + "md/tuning.json",
    "solvate/bound_ions.py:check_bound_ions": _LATER + "a solute from before the settings asked for ions",
    "solvate/placement.py:_check_names": _LATER + "a solute that was not built here",
    "solvate/placement.py:_chunks": _LATER + "a solute that is harmed",
    "solvate/layout.py:_atom_elements": _LATER + "a solute that was not built here",
    "solvate/structure.py:*": _LATER + "shards and the solute beside them",
    "sterics/cell_list.py:*": _LATER + "positions that are no numbers",

    "base/files.py:atomic_path": _MACHINE + "a disk that is full or may not be written",
    "base/files.py:_Growing.write": _MACHINE + "a disk that is full",
    "base/forks.py:*": _MACHINE + "memory",
    "base/files.py:locked": _MACHINE + "a disk that may not be written",
    "base/whole_folder.py:*": _MACHINE + "a disk that is full",
    "base/in_use.py:*": _MACHINE + "another process in the folder",
    "pipeline/ensemble/workers.py:*": _MACHINE + "memory",
    "pipeline/stages/run.py:run": _COMMAND + "shards and phases are parts of other stages",
    "shards/stored.py:*": _MACHINE + "a disk that is full",
    "solvate/__init__.py:_require_disk": _MACHINE + "a disk that has been filled since limits were asked",
    "solvate/workers.py:*": _MACHINE + "memory",
    "simulate/launcher.py:_installed_mpirun": _MACHINE + "an MPI library (test_limits.py takes it away)",
    "simulate/launcher.py:_named": _MACHINE + "an environment variable (tests/engine/test_launchers.py sets it)",
    "simulate/executable.py:executable": _MACHINE + "an engine (test_limits.py takes it away)",
    "simulate/openmm_platform.py:context_on": _MACHINE + "a GPU (tests/engine/test_openmm_platform.py has devices)",
    "nucleosome/protonation.py:_propka": _MACHINE + "a package (tests/nucleosome/test_protonation.py hides it)",
    "simulate/tuning.py:best_of": _MACHINE + "trials that all failed",

    "base/files.py:template_path": _PROGRAM + "data",
    "forcefield/analogies.py:*": _PROGRAM + "data",
    "forcefield/charmm.py:*": _PROGRAM + "data",
    "forcefield/links.py:*": _PROGRAM + "a force field that joins residues unlike all others",
    "shards/binary_cif_blocks.py:*": _PROGRAM + "values that no build has",
    "shards/brick.py:*": _PROGRAM + "names that no build has",
    "shards/pdb.py:*": _PROGRAM + "names that no build has",

    "build/beads.py:*": _CALLER + "solutes with ions or single strands; check_beads asks for those of proteins",
    "simulate/bead_refinement.py:refine": _CHECKED + "settings.py:_problem_of_refinement",
    "base/box_vectors.py:*": _CALLER + "angles of a box",
    "base/force_fields.py:force_field_files": _CALLER + "a name that the settings do not take",
    "clash/correct.py:check_settings": _CALLER + "a mode that the settings do not take",
    "dna/curve.py:follow_curve": _CALLER + "points of a path of their own",
    "dna/helix.py:relax_path": _CALLER + "a path of their own",
    "dna/sequence.py:base_index": _CALLER + "letters that FASTA may not have",
    "nucleosome/recipe.py:OctamerRecipe.checked": _CALLER + "a species that the settings do not take",
    "pipeline/ask.py:refuse_without_memory": _MACHINE + "memory (test_limits.py takes it)",
    "pipeline/limits.py:refuse": _MACHINE + "memory that others have (test_limits.py takes it)",
    "sterics/detect.py:close_pairs": _CALLER + "a box below twice the threshold",

    "build/assembly.py:assemble_solute": "of loci of 46,656 segments, which take longer than names of nucleosomes",
    "nucleosome/octamer.py:*segid": "of loci of more than 1,296 proteins: check_fibre_and_fold asks for the last name",
    "build/duplex.py:check_circle": _CHECKED + "locus.py has a longer shortest circle",
    "nucleosome/homology.py:rebuild_loop": _WORK + "a loop of a template of the user's",
    "nucleosome/recipe.py:OctamerRecipe._check_residue": _CHECKED + "cases have the same fault of other marks",
    "nucleosome/ubiquitin.py:attach_ubiquitin": _WORK + "room beside marks, which `validate` tries without DNA",
    "pipeline/stages/clash.py:run": _WORK + "clashes remain",
    "pipeline/stages/refine.py:run": _COMMAND + "refine, where the chain leaves it out",
    "pipeline/stages/relax.py:run": _WORK + "clashes came up",
    "pipeline/stages/scaffold.py:_linking": _WORK + "a circle is knotted",
    "pipeline/stages/scaffold.py:run": _WORK + "overlaps remain",
    "solvate/bound_ions.py:with_bound_ions": _WORK + "room at the phosphates",
    "solvate/placement.py:check_filling": _WORK + "a dodecahedron of a quarter of a micrometre",
    "forcefield/molecule_runs.py:*": _CHECKED + "limits.py asks the same of the estimate",
    "simulate/chromamd.py:restraint_sections": _CHECKED + "validation.py:check_restraints",
    "simulate/groups.py:*": _CHECKED + "validation.py:check_restraints",
    "solvate/bricks.py:check_numbering": "of 466 million waters, whose dynamics takes longer than a year before",
    "solvate/ions.py:choose_slots": _CHECKED + "check_edges refuses shorter edges",
    "solvate/layout.py:_*_ions": _CHECKED + "ions.py:check_room_for_ions, within some per cent of the last place",
}
"""What `validate` cannot or need not give, and why."""
