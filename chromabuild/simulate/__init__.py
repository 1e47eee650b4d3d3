"""Programs that turn a topology and coordinates into dynamics: chromamd, and OpenMM as second engine and judge."""
