"""Colours of molecules, in pictures of ours and in scenes for other programs."""

from chromabuild.molecule.solute import Solute

Colour = tuple[float, float, float]
"""Red, green, blue, 0..1."""

HISTONE_COLOURS: dict[str, Colour] = {  # as is the custom since the first crystal structures
    "H3": (0.36, 0.52, 0.84), "H4": (0.42, 0.72, 0.43), "H2A": (0.96, 0.80, 0.34), "H2B": (0.86, 0.36, 0.33),
    "H3.1": (0.36, 0.52, 0.84), "H3.3": (0.24, 0.36, 0.66), "CENP-A": (0.50, 0.33, 0.72), "Cse4": (0.50, 0.33, 0.72),
    "H2A.Z": (0.93, 0.58, 0.20), "macroH2A": (0.80, 0.62, 0.20),
}
OTHER_PROTEIN: Colour = (0.72, 0.52, 0.78)
STRAND_COLOURS: dict[str, Colour] = {"DNA-I": (0.88, 0.89, 0.91), "DNA-J": (0.53, 0.68, 0.76)}


def molecule_colours(solute: Solute) -> dict[str, Colour]:
    """Colour of each kind of molecule that the solute has, by name."""
    known = STRAND_COLOURS | HISTONE_COLOURS
    return {name: known.get(name, OTHER_PROTEIN) for name in dict.fromkeys(solute.molecule_name)}


def hexadecimal(colour: Colour) -> str:
    """A colour as web pages write it.

    >>> hexadecimal((1.0, 0.5, 0.0))
    '#ff8000'
    """
    return "#" + "".join(f"{round(255 * value):02x}" for value in colour)
