# `snakemake ... ensemble`: one job a fold, in rounds where energies of contacts are sought, and one that sums up. Names and
# folders are those of chromabuild/pipeline/ensemble. A mark says that a fold was made, or given up.
FOLDS = int(config.get("ensemble") or SETTINGS.ensemble.folds)
ROUNDS = SETTINGS.ensemble.rounds
SCAFFOLD = next(stage for stage in STAGES if stage.name == "scaffold")
FOLD_SETTINGS = settings(*SCAFFOLD.settings), {**SETTINGS.ensemble.model_dump(), "folds": FOLDS}


def round_part(number):
    """Where the folds and the energies of a round lie below ensemble/."""
    return "" if number == ROUNDS else f"round_{number:02d}/"


ROUND_OF = {round_part(number): number for number in range(1, ROUNDS + 1)}


def fold_marks(number):
    return [out(f"ensemble/jobs/{round_part(number)}fold_{k:04d}.done") for k in range(1, FOLDS + 1)]


def energies(number):
    return out(f"ensemble/{round_part(number)}contact_energies.bedpe")


def before_fold(wildcards):
    """What a fold reads: the input of its stage, and the energies that the round before has left."""
    number = ROUND_OF[wildcards.part]
    return [str(path) for path in SCAFFOLD.input_paths(SETTINGS).values()] + [energies(number)] * (number > 1)


rule fold:
    input:
        before_fold,
    output:
        touch(out("ensemble/jobs/{part}fold_{number}.done")),
    wildcard_constraints:
        part="(round_[0-9]+/)?",
        number="[0-9]+",
    params:
        settings=FOLD_SETTINGS,
        which=lambda wildcards: f"--fold {int(wildcards.number)} --round {ROUND_OF[wildcards.part]}",
    threads: 1
    shell:
        f"{command('ensemble')} {FOLDS} {{params.which}} --threads {{threads}}"


for round_number in range(1, ROUNDS):

    rule:
        name:
            f"contact_energies_{round_number}"
        input:
            fold_marks(round_number),
        output:
            energies(round_number + 1),
        params:
            round=round_number,
        threads: 1
        shell:
            f"{command('ensemble')} {FOLDS} --round {{params.round}} --threads {{threads}}"


rule ensemble:
    input:
        fold_marks(ROUNDS),
        SETTINGS.ensemble.map or [],
    output:
        out("ensemble/ensemble.json"),
        out("ensemble.html"),
    params:
        settings=FOLD_SETTINGS,
    threads: 1
    shell:
        f"{command('ensemble')} {FOLDS} --threads {{threads}}"
