"""Whole numbers without large prime factors: sizes that fast Fourier transforms and grids of ranks divide well."""


def is_smooth(n: int, largest_prime: int = 7) -> bool:
    """Whether ``n``, 1 or more, has no prime factor above ``largest_prime``."""
    for prime in range(2, largest_prime + 1):
        while n % prime == 0:
            n //= prime
    return n == 1


def smooth_number(least: int, largest_prime: int = 7) -> int:
    """The smallest even number from ``least`` on without a greater prime factor; without one above 7, as chromamd
    chooses it."""
    candidate = least + least % 2
    while not is_smooth(candidate, largest_prime):
        candidate += 2
    return candidate
