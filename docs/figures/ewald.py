"""docs/images/ewald.svg: the Coulomb interaction split into the parts of real and reciprocal space."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf, erfc
from style import BLUE, GREEN, GREY, ORANGE, plt, save

COULOMB, CUTOFF, TOLERANCE = 332.0637, 12.0, 1e-5  # kcal angstrom/mol/e^2; angstrom; engine defaults


def main() -> None:
    """Draw the figure."""
    alpha = brentq(lambda a: erfc(a * CUTOFF) - TOLERANCE, 0.01, 2)
    r = np.linspace(0.4, 16, 600)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.1))
    left.plot(r, COULOMB / r, color=GREY, lw=1, label="1/r")
    left.plot(r, COULOMB * erfc(alpha * r) / r, color=BLUE, label=r"real space: erfc($\alpha r$)/r")
    left.plot(r, COULOMB * erf(alpha * r) / r, color=ORANGE, label=r"reciprocal space: erf($\alpha r$)/r")
    left.axvline(CUTOFF, color="black", lw=0.7, ls=":")
    left.set(xlabel="distance, angstrom", ylabel=r"energy of two charges, kcal/mol/e$^2$", ylim=(0, 200), xlim=(0, 16))
    left.legend()
    left.set_title(rf"cutoff {CUTOFF:.0f} angstrom: $\alpha$ = {alpha:.3f} per angstrom", fontsize=9)
    tolerances = np.logspace(-8, -2, 200)
    for cutoff, colour in ((9, GREEN), (12, BLUE)):
        right.semilogx(tolerances, [brentq(lambda a, c=cutoff, t=t: erfc(a * c) - t, 0.01, 3) for t in tolerances],
                       color=colour, label=f"cutoff {cutoff} angstrom")  # fmt: skip
    right.axvline(TOLERANCE, color="black", lw=0.7, ls=":")
    right.set(xlabel=r"pme_alpha_tol = erfc($\alpha r_c$)", ylabel=r"$\alpha$, 1/angstrom")
    right.legend()
    save(figure, "ewald.svg")


if __name__ == "__main__":
    main()
