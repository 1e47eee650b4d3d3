"""What a molecule is: residues, the solute that they make, hydrogens, geometry."""
