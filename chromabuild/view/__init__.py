"""The viewer of a locus: a folder of static files that a browser opens without a server or a network."""
