"""Constants of nature and conversions of units."""

KJ_PER_KCAL = 4.184
ANGSTROM_PER_NM = 10.0
BOLTZMANN = 8.31446261815324e-3 / KJ_PER_KCAL
"""kcal/mol/K: the gas constant, exact by the SI of 2019."""
GRAMS_PER_CM3 = 10 / 6.02214076
"""In one atomic mass unit/angstrom^3."""
BAR_PER_ATM = 1.01325
ANGSTROM_PER_BOHR = 0.529177210903
"""CODATA 2018."""
KCAL_PER_HARTREE = 627.5094740631
"""kcal/mol: 2625.4996394799 kJ/mol (CODATA 2018)."""
AKMA_VELOCITY = 20.45482706
"""Angstrom/ps in angstrom over the root of u angstrom^2 mol/kcal (48.888 fs), the velocities of CHARMM's family."""
COULOMB_CONSTANT = 138.93545764438198 * ANGSTROM_PER_NM / KJ_PER_KCAL
"""kcal angstrom / mol / e^2; OpenMM's ONE_4PI_EPS0 (from the CODATA constants) in our units."""
