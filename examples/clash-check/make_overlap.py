"""Two copies of a residue of alanine, 0.5 angstrom apart, as another program would write them: overlap.pdb."""

ALANINE = [("N", -0.525, 1.363, 0.0), ("CA", 0.0, 0.0, 0.0), ("C", 1.526, 0.0, 0.0), ("O", 2.153, -1.062, 0.0),
           ("CB", -0.529, -0.774, -1.205)]

with open("overlap.pdb", "w") as file:
    serial = 0
    for chain, shift in (("A", 0.0), ("B", 0.5)):
        for name, x, y, z in ALANINE:
            serial += 1
            file.write(f"ATOM  {serial:5d}  {name:<3s} ALA {chain}   1    {x:8.3f}{y:8.3f}{z + shift:8.3f}"
                       f"  1.00  0.00          {name[0]:>2s}\n")
        file.write("TER\n")
    file.write("END\n")
