"""Genome inputs - sequence, nucleosomes, contacts, tracks - read, checked and put on one locus."""
