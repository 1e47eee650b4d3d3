"""mesoscale: the coarse-grained chromatin model (nm, kBT, e); it knows nothing of atoms."""
