"""Differences of a pilot -> about how many queries would settle an open null.

The end of the interval at n queries follows from the exact Dirichlet moments of the
differences, with one Cornish-Fisher term for their skew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_cli.columns import Bools, Floats
from falsify_cli.interval import ENDS

# The chance to be settled at the hinted number: 0.84 spreads beyond the mean.
_POWER_SPREADS = 0.84
# A gap this near to tau would take tens of thousands of queries.
_HOPELESS = 0.005
_MOST_QUERIES = 1 << 24
_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 16


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, and second and third central moments of per-query differences."""

    mean: float
    second: float
    third: float

    @classmethod
    def of(cls, differences: Floats) -> Moments:
        """The moments of (N,) differences."""
        mean = float(differences.mean())
        rest = differences - mean
        return cls(mean, float((rest**2).mean()), float((rest**3).mean()))


def queries_to_settle(moments: Moments, tau: float, alpha: float) -> int | None:
    """About how many queries settle a gap, at 80% power; one significant figure.

    None where more queries of this kind will not settle it.
    """
    if abs(moments.mean - tau) < _HOPELESS:
        return None
    first, size = 1, _FIRST_BLOCK
    while first < _MOST_QUERIES:
        numbers = first + np.arange(size, dtype=np.float64)
        settled = np.flatnonzero(_settles(numbers, moments, tau, alpha))
        if len(settled):
            return one_figure(first + int(settled[0]))
        first, size = first + size, min(2 * size, _LARGEST_BLOCK)
    return None


def one_figure(number: int) -> int:
    """Round to one significant figure.

    >>> one_figure(341), one_figure(7)
    (300, 7)
    """
    unit = int(10 ** (len(str(number)) - 1))
    return round(number / unit) * unit


def _settles(n: Floats, moments: Moments, tau: float, alpha: float) -> Bools:
    """Whether n queries put the expected end, less its spread, beyond the line."""
    m, m2, m3 = moments.mean, moments.second, moments.third
    sign = -1.0 if m >= tau else 1.0
    from statistics import NormalDist  # 0.01 s, which only an open null needs

    z = NormalDist().inv_cdf(1 - alpha / ENDS)
    a = n + 1
    mu = (n * m + sign) / a
    e, f = m - mu, sign - mu
    k2 = (n * (m2 + e**2) + f**2) / a
    k3 = (n * (m3 + 3 * m2 * e + e**3) + f**3) / a
    sd = np.sqrt(k2 / (a + 1))
    skew = 2 * k3 / ((a + 1) * (a + 2) * sd**3)
    end = mu + sd * (sign * z + skew * (z**2 - 1) / 6)
    tilt = m3 / m2**1.5 if m2 > 0 else 0.0
    factor = np.maximum(0.2, 1 + sign * z * tilt / (2 * np.sqrt(n)))
    spread = np.sqrt(m2 / n) * factor
    low, high = end - _POWER_SPREADS * spread, end + _POWER_SPREADS * spread
    settled: Bools = low >= tau if sign < 0 else high < 2 * tau
    return settled
