"""DNA and a nucleosome in water, made by chromabuild's own chain, as inputs for the programs of engine_step.py.

`dna96k` is 42 base pairs of random sequence in a box of some 96,000 atoms, `nucleosome` an octamer on 177 base pairs in
a box of its own; ff14SB, OL15, TIP3P, 0.15 mol/L; minimised and equilibrated by chromamd. OpenMM gets a System of the
same topology, GROMACS the topology in its own format.
"""

import subprocess

import numpy as np

SYSTEMS = ("dna96k", "nucleosome")
KJ, NM = 4.184, 0.1  # of a kcal, of an angstrom


def write_inputs(folder, name):
    """t.h5 and start0.rst for chromamd; meta.txt, system.xml, openmm.npz, topol.top and conf.gro for runbench.py."""
    import openmm
    import systems

    from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology

    folder.mkdir(parents=True, exist_ok=True)
    topology, box = build(folder, name)
    equilibrate(folder)
    position = systems.read_restarts(str(folder / "start().rst"), 1).position
    options = NonbondedOptions(cutoff=12.0, alpha=0.26, grid=(64, 64, 64), switch_distance=10.0)
    system = system_from_topology(topology, box, options, rigid=True)
    (folder / "system.xml").write_text(openmm.XmlSerializer.serialize(system))
    np.savez(folder / "openmm.npz", x=NM * position)
    (folder / "topol.top").write_text(gromacs_topology(topology))
    write_gro(folder / "conf.gro", topology, NM * position, NM * box)
    (folder / "meta.txt").write_text(f"natoms {len(position)}\nbox {' '.join(f'{edge:.6f}' for edge in box)}\n")


def build(folder, name):
    """Solute, shards and topology.h5; returns the topology and the box."""
    from synthetic_scaffold import synthetic_scaffold

    from chromabuild.base.settings import Config, SolvateSection
    from chromabuild.build import build_solute
    from chromabuild.clash import correct_clashes
    from chromabuild.forcefield import make_topology
    from chromabuild.solvate import solvate

    if name == "dna96k":
        solute = build_solute(synthetic_scaffold(0, 0, 42), Config())
        section = SolvateSection(box=(80.0, 80.0, 154.0))
    else:
        solute = build_solute(synthetic_scaffold(1, 0, 15), Config())
        solute, _ = correct_clashes(solute)
        section = SolvateSection()
    manifest = solvate(solute, section, 1, 1, folder / "shards")
    topology = make_topology(solute, manifest.counts, net_charge=manifest.net_charge)
    topology.write(folder / "t.h5")
    return topology, np.array(manifest.box)


def equilibrate(folder):
    """start0.rst: minimised, 1 ps at 300 K."""
    import systems

    from chromabuild.simulate.chromamd import executable

    parts = {"setup": ({"shardfile": folder / "shards" / "bricks.txt"}, "built", {}),
             "minimise": ({"rstfile": folder / "built().rst"}, "minimised", {
                 "MINIMIZE": {"method": "SD", "nsteps": 300}}),
             "equilibrate": ({"rstfile": folder / "minimised().rst"}, "start", {
                 "DYNAMICS": {"nsteps": 1000, "timestep": 0.001}, "CONSTRAINTS": {"rigid_bond": "YES"},
                 "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}})}
    for part, (source, end, sections) in parts.items():
        settings = {} if part == "setup" else {"ENERGY": {"cutoffdist": 9, "switchdist": 9, "pairlistdist": 10.5}}
        control = systems.control(folder / f"{part}.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                                  OUTPUT={"rstfile": folder / f"{end}().rst"}, **settings, **sections)
        with (folder / f"{part}.log").open("w") as log:
            subprocess.run([executable(), "setup" if part == "setup" else "run", control], check=True, stdout=log)


def gromacs_topology(topology):
    """The text of a .top file: excluded and 1-4 pairs one by one, waters for SETTLE."""
    lines = ["[ defaults ]", "1 2 no 1.0 1.0", "[ atomtypes ]"]
    lines += [f"T{k} 1.0 0.0 A {NM * sigma:.9g} {KJ * epsilon:.9g}"
              for k, (sigma, epsilon) in enumerate(zip(topology.lj_sigma, topology.lj_epsilon, strict=True))]
    for k, template in enumerate(topology.templates):
        lines += ["[ moleculetype ]", f"M{k} 0", "[ atoms ]"]
        # GROMACS knows the hydrogens whose bonds it makes rigid by their names.
        rows = zip(template.lj_type, template.charge, template.mass, strict=True)
        lines += [f"{i} T{lj} 1 M{k} {'H' if mass < 2 else 'X'}{i} {i} {charge:.9g} {mass:.9g}"
                  for i, (lj, charge, mass) in enumerate(rows, start=1)]
        if template.rigid_water:
            distance = NM * np.sort(template.constraint_distance)  # O-H twice, H-H
            lines += ["[ settles ]", f"1 1 {distance[0]:.9g} {distance[2]:.9g}"]
        else:
            lines += terms("bonds", template.bond_atoms, 1, NM * template.bond_r0, 2 * KJ / NM**2 * template.bond_k)
            lines += terms("angles", template.angle_atoms, 1, template.angle_theta0, 2 * KJ * template.angle_k)
        lines += terms("dihedrals", template.dihedral_atoms, 9, template.dihedral_phase, KJ * template.dihedral_k,
                       template.dihedral_n.astype(int))
        ones = np.ones(len(template.pair14_atoms))
        lines += terms("pairs", template.pair14_atoms, 2, ones, template.pair14_charge_product, ones,
                       NM * template.pair14_sigma, KJ * template.pair14_epsilon)
        lines += ["[ exclusions ]", *(f"{i + 1} {j + 1}" for i, j in template.exclusion)]
        assert not any(map(len, (template.urey_bradley_atoms, template.improper_atoms, template.cmap_atoms)))
    lines += ["[ system ]", "solute in water", "[ molecules ]"]
    lines += [f"M{t} {count}" for t, count in zip(topology.run_template, topology.run_count, strict=True)]
    return "\n".join(lines) + "\n"


def terms(directive, atoms, function, *parameters):
    """Lines of one directive; atoms count from 1."""
    rows = zip((atoms + 1).tolist(), *(values.tolist() for values in parameters), strict=True)
    return [f"[ {directive} ]", *(" ".join(map(str, [*numbers, function, *(f"{value:.9g}" for value in values)]))
                                  for numbers, *values in rows)]


def write_gro(path, topology, position, box):
    """Coordinates in nm, without velocities."""
    molecules = np.repeat(topology.run_template, topology.run_count)
    sizes = np.array([template.n_atoms for template in topology.templates])[molecules]
    number = np.repeat(np.arange(1, len(molecules) + 1), sizes)
    kind = np.repeat(molecules, sizes)
    light = topology.masses() < 2
    place = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    with path.open("w") as file:
        file.write(f"solute in water\n{len(position)}\n")
        for row, name, i, is_light, (x, y, z), atom in zip(number, kind, place, light, position,
                                                          range(1, len(number) + 1), strict=True):
            file.write(f"{row % 100000:5d}{f'M{name}':<5s}{('H' if is_light else 'X') + str(i):>5.5s}{atom % 100000:5d}"
                       f"{x:8.3f}{y:8.3f}{z:8.3f}\n")
        file.write(" ".join(f"{edge:.6f}" for edge in box) + "\n")
