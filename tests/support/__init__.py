"""What several test folders share: systems, runs of the engine, structures and the files they are made from."""
