"""How the keys of a summary are written for people, on the terminal and in the report."""

_SPELLED = {
    "angle_rmsz": "angle RMSZ",
    "bond_rmsz": "bond RMSZ",
    "cost_kt": "cost, kT",
    "density_error": "block error of the density, g/cm3",
    "density_g_per_cm3": "density, g/cm3",
    "drift_kT_per_ns_per_atom": "energy drift, kT/ns per atom",
    "end_to_end_nm": "end to end, nm",
    "equilibrated_from_ps": "equilibrated from, ps",
    "first_bp": "first base pair",
    "largest_z": "largest z-score",
    "last_bp": "last base pair",
    "ns_per_day": "ns/day",
    "offered_shift": "offered shift, bp",
    "o3_p": "O3'-P, angstrom",
    "o3_p_longest": "longest O3'-P, angstrom",
    "o3_p_shortest": "shortest O3'-P, angstrom",
    "phase_cost_after_shift_kt": "after the shift, kT",
    "phase_cost_kt": "phase cost, kT",
    "psf": "topology.psf",
    "radius_of_gyration_nm": "radius of gyration, nm",
    "residual": "core moved by, angstrom",
    "seconds_per_step_dynamics": "seconds per step of dynamics",
    "seconds_per_step_minimise": "seconds per step of minimisation",
    "severe_pairs": "severe pairs (< 2.2 angstrom, with hydrogen < 1.3)",
    "simulated_ps": "simulated, ps",
    "temperature": "temperature, K",
    "timestep_fs": "time step, fs",
    "twist_excess": "twist excess, degree",
}


def label(key: str) -> str:
    """The words for ``key``: those agreed, else the key with spaces."""
    return _SPELLED.get(key, key.replace("_", " "))
