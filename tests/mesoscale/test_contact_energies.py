"""Energies of contacts that have two states are right at once."""

import numpy as np

from mesoscale.contact_energies import RAREST, STRONGEST, update


def test_a_contact_of_two_states_gets_its_frequency_in_one_step():
    """Open or closed with probability 1 / (1 + exp(F - E)), where F is what closing costs."""
    cost, target = np.array([3.0, -1.0, 0.5]), np.array([0.2, 0.9, 0.5])

    def frequency(energy):
        return 1 / (1 + np.exp(cost - energy))

    energies = update(np.zeros(3), frequency(np.zeros(3)), target)
    assert np.allclose(frequency(energies), target)
    assert np.allclose(update(energies, frequency(energies), target), energies)


def test_what_was_never_or_always_seen_stays_finite():
    found = update(np.zeros(2), np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    assert np.allclose(found, [2 * np.log((1 - RAREST) / RAREST), -2 * np.log((1 - RAREST) / RAREST)])
    assert np.abs(update(10 * found, np.array([0.0, 1.0]), np.array([1.0, 0.0]))).max() == STRONGEST
    assert np.allclose(update(np.zeros(2), np.array([0.5, 0.5]), np.array([0.5, 0.9]), step=0.0), 0.0)
