"""Nulls A and B: the same lists against other gold sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from falsify_cli import defaults
from falsify_cli.columns import Floats, sums_at
from falsify_cli.grading import Grading, Matrix
from falsify_cli.nulls.draws import (
    TAG_A,
    TAG_B,
    Null,
    blocks,
    finished,
    permutations,
    stream,
)

# (b, N) the set each query is dealt in each draw; half the bytes of other columns.
Sets = npt.NDArray[np.int32]


def permuted(grading: Grading, n_boot: int, seed: int) -> Null:
    """Null A: the gold sets are dealt out again, by a random bijection of queries."""
    sets, count = grading.gold.sets.astype(np.int32), len(grading)
    of_query, _ = _means(grading)
    differences = column_differences(grading)
    rng = stream(seed, TAG_A)

    def dealt(block: int) -> Sets:
        return sets[permutations(rng, block, count)]

    drawn = _looked_up(grading.matrix, n_boot, dealt)
    return finished("A", grading, drawn, of_query, differences)


def column_differences(grading: Grading) -> Floats:
    """(N,) score less the row's and the column's mean of M over all N x N cells.

    A query's gold also serves as a null for the others: without the column term a
    popular document in every list passes falsely 25 to 46% of the time.
    """
    of_query, of_set = _means(grading)
    columns = np.append(of_set, 0.0)[grading.gold.sets]
    differences: Floats = grading.scores - of_query - (columns - of_query.mean())
    return differences


def _means(grading: Grading) -> tuple[Floats, Floats]:
    """(N,) the mean of every row of M over all N columns, (U,) of every column."""
    matrix, count = grading.matrix, len(grading)
    shares = grading.gold.multiplicities / count
    of_query = sums_at(matrix.rows, matrix.values * shares[matrix.columns], count)
    of_set = sums_at(matrix.columns, matrix.values, matrix.shape[1]) / count
    return of_query, of_set


def uniform(grading: Grading, n_boot: int, seed: int) -> Null:
    """Null B: each query gets a gold set drawn uniformly from the distinct ones."""
    matrix, gold = grading.matrix, grading.gold
    count, distinct = matrix.shape
    of_query = sums_at(matrix.rows, matrix.values, count) / distinct
    of_set = sums_at(matrix.columns, matrix.values, distinct) / count
    # The weight of query j in the mean over distinct sets, 0 where it has no gold.
    shares = np.append(1 / (distinct * gold.multiplicities), 0.0)[gold.sets]
    columns = np.append(of_set, 0.0)[gold.sets] - of_set.mean()
    differences = grading.scores - of_query - count * shares * columns
    rng = stream(seed, TAG_B)

    def guessed(block: int) -> Sets:
        points = rng.random((block, count))
        points *= distinct
        return points.astype(np.int32)

    drawn = _looked_up(matrix, n_boot, guessed)
    return finished("B", grading, drawn, of_query, differences)


def _looked_up(
    matrix: Matrix, draws: int, deal: Callable[[int], Sets]
) -> Iterator[Floats]:
    """Yield blocks of (b, N): M at each query and the set it was dealt.

    deal: (b) -> (b, N) sets, -1 for an empty one.
    """
    count = matrix.shape[0]
    dense = _pays_off_densely(matrix, draws)
    look_up = _look_up_densely if dense else _look_up_sparsely
    width = count if dense else max(count, len(matrix.rows))
    cells = defaults.DENSE_BLOCK_CELLS if dense else defaults.BLOCK_CELLS
    for block in blocks(draws, width, cells):
        yield look_up(matrix, deal(block))


def _pays_off_densely(matrix: Matrix, draws: int) -> bool:
    """Whether to write M out row by row rather than compare its cells.

    Comparing touches every cell in every draw; writing out touches every place of M
    once a block of draws, and then one place a query and draw.
    """
    count, distinct = matrix.shape
    blocks = -(-draws * count // defaults.DENSE_BLOCK_CELLS)
    return draws * len(matrix.rows) > blocks * count * distinct + 3 * draws * count


def _look_up_sparsely(matrix: Matrix, dealt: Sets) -> Floats:
    scores = np.zeros(dealt.shape)
    met = dealt[:, matrix.rows] == matrix.columns.astype(np.int32)
    draw, cell = np.nonzero(met)
    scores[draw, matrix.rows[cell]] = matrix.values[cell]
    return scores


def _look_up_densely(matrix: Matrix, dealt: Sets) -> Floats:
    scores = np.empty(dealt.shape)
    count, distinct = matrix.shape
    step = max(1, defaults.DENSE_BLOCK_CELLS // (distinct + 1))
    for low in range(0, count, step):
        high = min(low + step, count)
        first, last = np.searchsorted(matrix.rows, [low, high])
        # One column more than there are sets: index -1, an empty gold set.
        full = np.zeros((high - low, distinct + 1))
        cells = slice(first, last)
        full[matrix.rows[cells] - low, matrix.columns[cells]] = matrix.values[cells]
        scores[:, low:high] = full[np.arange(high - low), dealt[:, low:high]]
    return scores
