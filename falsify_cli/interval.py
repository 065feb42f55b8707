"""Per-query differences -> Interval of their mean, by the Bayesian bootstrap.

Queries are resampled with random Dirichlet weights (Rubin, 1981), and every
resample has one imaginary query more: with difference -1 for the lower end, +1 for
the upper. The imaginary query keeps the interval honest where a plain bootstrap has
no width, as with three perfect queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from falsify_cli.columns import Floats, Ints, sums_at
from falsify_cli.nulls.draws import TAG_WEIGHTS, blocks, stream
from falsify_cli.threads import ahead

# The four nulls of one metric share the error rate, and each has two ends.
ENDS = 8


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval for one mean gap, in metric units; not clipped.

    level: its own coverage, 1 - alpha / 4, so that the four hold jointly at
    1 - alpha. low_error, high_error: by how much resampling may have moved each end.
    """

    low: float
    high: float
    level: float
    low_error: float
    high_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Queries that belong together are resampled together.

    codes: (N,) the group of each query, from 0. sizes: (G,) queries of each.
    """

    codes: Ints
    sizes: Ints

    @classmethod
    def of(cls, codes: Ints) -> Groups:
        """Count the groups."""
        return cls(codes, np.bincount(codes))

    @classmethod
    def singletons(cls, count: int) -> Groups:
        """Every query for itself."""
        return cls.of(np.arange(count))


def rows_of(n_boot: int, groups: int) -> int:
    """Resamples to take: ten times n_boot where queries are few and cheap."""
    return n_boot * max(1, min(10, 10_000 // groups))


def end_rank(rows: int, alpha: float) -> int:
    """Which smallest resample is the lower end; floor((rows + 1) * alpha / 8)."""
    # The small term undoes the binary form of alpha: 0.05 * 160 / 8 is 1.
    return math.floor((rows + 1) * alpha / ENDS + 1e-9)


def intervals(
    differences: Sequence[Floats],
    groups: Groups,
    *,
    alpha: float,
    n_boot: int,
    seed: int,
    threads: int = 1,
) -> list[Interval]:
    """One interval for each (N,) array of differences, all from the same weights.

    alpha: the error rate of the four nulls of a metric together.
    """
    count, queries = len(groups.sizes), len(groups.codes)
    sums = [sums_at(groups.codes, d, count) for d in differences]
    # Nulls that coincide have the same differences: those are resampled once.
    first = [next(i for i, s in enumerate(sums) if np.array_equal(s, t)) for t in sums]
    used = sorted(set(first))
    mean_size, alone = queries / count, queries == count
    rows = rows_of(n_boot, count)
    rng = stream(seed, TAG_WEIGHTS)
    drawn = (
        rng.standard_exponential((block, count + 1))
        for block in blocks(rows, count + 1)
    )
    lows: list[list[Floats]] = [[] for _ in sums]
    highs: list[list[Floats]] = [[] for _ in sums]
    for weights in ahead(drawn, threads):
        imaginary = weights[:, count] * mean_size
        weights = weights[:, :count]
        # A product and a sum by row, not a matrix product: BLAS adds in an order
        # that depends on the machine and on its threads.
        total = weights.sum(axis=1) if alone else (weights * groups.sizes).sum(axis=1)
        total += imaginary
        for place in used:
            weighted = (weights * sums[place]).sum(axis=1)
            lows[place].append((weighted - imaginary) / total)
            highs[place].append((weighted + imaginary) / total)
    rank = end_rank(rows, alpha)
    level = 1 - 2 * alpha / ENDS
    found = {
        place: _interval(
            np.sort(np.concatenate(lows[place])),
            np.sort(np.concatenate(highs[place])),
            rank,
            level,
        )
        for place in used
    }
    return [found[place] for place in first]


def _interval(lows: Floats, highs: Floats, rank: int, level: float) -> Interval:
    """Read the ends off sorted resamples; the error is half of two ranks' distance."""
    ups = -highs[::-1]
    low, low_error = _end(lows, rank)
    high, high_error = _end(ups, rank)
    return Interval(low, -high, level, low_error, high_error)


def _end(ordered: Floats, rank: int) -> tuple[float, float]:
    step = math.sqrt(rank)
    near = max(math.floor(rank - step), 1)
    far = min(math.ceil(rank + step), len(ordered))
    half = (ordered[far - 1] - ordered[near - 1]) / 2
    return float(ordered[rank - 1]), float(half)
