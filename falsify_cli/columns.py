"""Small arithmetic on columns of sorted rows, and the names of their types."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def stretch_starts(*columns: npt.NDArray[Any]) -> Ints:
    """Where each stretch of equal rows begins.

    >>> stretch_starts(np.array([4, 4, 7, 7, 4])).tolist()
    [0, 2, 4]
    """
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    changes = np.zeros(len(columns[0]) - 1, np.bool_)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def stretches(*columns: npt.NDArray[Any]) -> list[tuple[int, int]]:
    """The first row of each stretch of equal rows, and the row behind its last."""
    starts = stretch_starts(*columns).tolist()
    return list(zip(starts, [*starts[1:], len(columns[0])][: len(starts)], strict=True))


def distinct(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """The different values, ascending.

    np.unique loads numpy's masked arrays for this: 0.013 s, a thirtieth of a small
    gate.
    """
    ordered = np.sort(values)
    return ordered[stretch_starts(ordered)]


def kinds_of_pairs(left: Ints, right: Ints) -> tuple[list[tuple[int, int]], Ints]:
    """The different pairs of two columns, ascending, and which of them each row is.

    Both columns from 0 up. np.unique along an axis takes 50 times as long.

    >>> kinds_of_pairs(np.array([2, 0, 2]), np.array([5, 7, 5]))
    ([(0, 7), (2, 5)], array([1, 0, 1]))
    """
    span = int(right.max(initial=0)) + 1
    keys = left * span + right
    kinds = distinct(keys)
    pairs = [divmod(key, span) for key in kinds.tolist()]
    return pairs, np.searchsorted(kinds, keys)


def positions(starts: Ints, count: int) -> Ints:
    """The place of each of count rows within its stretch, from 0.

    >>> positions(np.array([0, 2]), 5).tolist()
    [0, 1, 0, 1, 2]
    """
    within: Ints = np.arange(count) - np.repeat(starts, np.diff(starts, append=count))
    return within


def single_precision(values: Floats) -> npt.NDArray[np.float32]:
    """Rounded to 32 bits, what is too large to infinity."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def sums_at(places: Ints, values: Floats, count: int) -> Floats:
    """(count,) the sum of the values at each place, added in their order."""
    # They are floats already; some versions of numpy's types do not know it.
    added: Floats = np.bincount(places, values, count).astype(np.float64, copy=False)
    return added
