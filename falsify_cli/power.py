"""Queries, and the best gap there can be -> the true gap that they would show.

The system behind it is imagined: it answers a share of the queries ideally and the
others like a random list, so that a query's difference to a null is either the ideal
one or nothing. For a given mean no differences between these ends spread wider, so
a system that answers most queries fairly well needs fewer queries than this says.
"""

from __future__ import annotations

import numpy as np

from falsify_cli.columns import Floats
from falsify_cli.hint import Moments, queries_to_settle
from falsify_cli.interval import Groups, intervals
from falsify_cli.judgement import Parameters

POWER = 0.8
# Halvings of [0, 1]: far below anything that a report prints.
_HALVINGS = 40


def queries_for(gap: float, best: float, tau: float, alpha: float) -> int | None:
    """About how many queries a true gap needs to PASS with 80% power.

    best: the gap of the ideal lists. None where no system can have the gap, or no
    number of queries would show it.
    """
    share = gap / best if best > 0 else 2.0
    if share > 1:
        return None
    variance = share * (1 - share)
    skew = variance * (1 - 2 * share)
    return queries_to_settle(
        Moments(gap, best**2 * variance, best**3 * skew), tau, alpha
    )


def least_gap(units: int, best: float, parameters: Parameters) -> float | None:
    """The smallest true gap that PASSes with 80% power; None where none does.

    units: queries, or groups of them. The interval is the gate's own: how many
    solved units it needs is found by halving, and the share that solves as many
    with 80% power is the binomial's.
    """
    needed = _least_solved(units, best, parameters)
    if needed is None:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        if _chance_of_at_least(needed, units, share) < POWER:
            low = share
        else:
            high = share
    return high * best


def _least_solved(units: int, best: float, parameters: Parameters) -> int | None:
    """The fewest solved units whose interval lies at tau or above, if any."""
    if not _passes(units, units, best, parameters):
        return None
    low, high = 0, units
    while high - low > 1:
        middle = (low + high) // 2
        if _passes(middle, units, best, parameters):
            high = middle
        else:
            low = middle
    return high


def _passes(solved: int, units: int, best: float, parameters: Parameters) -> bool:
    differences = np.zeros(units)
    differences[:solved] = best
    (interval,) = intervals(
        [differences],
        Groups.singletons(units),
        alpha=parameters.alpha,
        n_boot=parameters.n_boot,
        seed=parameters.seed,
    )
    return interval.low >= parameters.tau


def _chance_of_at_least(least: int, count: int, share: float) -> float:
    """The upper tail of the binomial distribution.

    >>> round(_chance_of_at_least(2, 3, 0.5), 12)
    0.5
    """
    if share >= 1:
        return 1.0
    hits = np.arange(count, dtype=np.float64)
    ways = np.cumsum(np.append(0.0, np.log(count - hits) - np.log(hits + 1)))
    numbers = np.arange(count + 1)
    logs: Floats = ways + numbers * np.log(share) + (count - numbers) * np.log1p(-share)
    return float(np.exp(logs[least:]).sum())
