"""Nulls A and B: the same lists against other gold sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from falsify_cli import defaults
from falsify_cli.columns import Floats, sums_at
from falsify_cli.grading import Grading, Matrix
from falsify_cli.nulls.draws import (
    TAG_A,
    TAG_B,
    Null,
    Tally,
    blocks,
    permutations,
    stream,
    true_places,
)

# (b, N) the set each query is dealt in each draw; half the bytes of other columns.
Sets = npt.NDArray[np.int32]


def permuted(gradings: Sequence[Grading], n_boot: int, seed: int) -> list[Null]:
    """Null A: the gold sets are dealt out again, by a random bijection of queries.

    Metrics over the same queries share the permutations: drawing them takes three
    quarters of the time of this null.
    """
    count = len(gradings[0])
    tables = [_Table.of(grading.matrix, n_boot) for grading in gradings]
    tallies = [
        Tally("A", grading, _means(grading)[0], column_differences(grading))
        for grading in gradings
    ]
    rng = stream(seed, TAG_A)
    numbered = rng.permutation(count)
    sets = [grading.gold.sets.astype(np.int32)[numbered] for grading in gradings]
    for block in blocks(n_boot, count, max(table.cells for table in tables)):
        dealt = permutations(rng, block, count)
        for table, own_sets, tally in zip(tables, sets, tallies, strict=True):
            tally.add_sums(table.sums(own_sets.take(dealt)))
    return [tally.null() for tally in tallies]


def uniform(gradings: Sequence[Grading], n_boot: int, seed: int) -> list[Null]:
    """Null B: each query gets a gold set drawn uniformly from the distinct ones."""
    count = len(gradings[0])
    tables = [_Table.of(grading.matrix, n_boot) for grading in gradings]
    tallies = [Tally("B", grading, *_over_sets(grading)) for grading in gradings]
    rng = stream(seed, TAG_B)
    for block in blocks(n_boot, count, max(table.cells for table in tables)):
        points = rng.random((block, count))
        for table, tally in zip(tables, tallies, strict=True):
            drawn = (points * table.matrix.shape[1]).astype(np.int32)
            tally.add_sums(table.sums(drawn))
    return [tally.null() for tally in tallies]


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


def _over_sets(grading: Grading) -> tuple[Floats, Floats]:
    """(N,) the mean of every row of M over the distinct sets, and (N,) differences."""
    matrix, gold = grading.matrix, grading.gold
    count, distinct = matrix.shape
    if distinct == count:
        # Every query has a gold set of its own, and B is A.
        return _means(grading)[0], column_differences(grading)
    of_query = sums_at(matrix.rows, matrix.values, count) / distinct
    of_set = sums_at(matrix.columns, matrix.values, distinct) / count
    # The weight of query j in the mean over distinct sets, 0 where it has no gold.
    shares = np.append(1 / (distinct * gold.multiplicities), 0.0)[gold.sets]
    columns = np.append(of_set, 0.0)[gold.sets] - of_set.mean()
    return of_query, grading.scores - of_query - count * shares * columns


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """M, ready to be looked up at a query and the set it was dealt.

    columns: those of M in the type of dealt sets. dense: whether to write M out row
    by row rather than compare its cells.
    """

    matrix: Matrix
    columns: Sets
    dense: bool

    @classmethod
    def of(cls, matrix: Matrix, draws: int) -> _Table:
        """Choose the cheaper way; both give the same bits.

        Comparing touches every cell in every draw; writing out touches every place
        of M once a block of draws, and then one place a query and draw.
        """
        count, distinct = matrix.shape
        blocks = -(-draws * count // defaults.DENSE_BLOCK_CELLS)
        written = blocks * count * distinct + 3 * draws * count
        dense = draws * len(matrix.rows) > written
        return cls(matrix, matrix.columns.astype(np.int32), dense)

    @property
    def cells(self) -> int:
        """How many dealt sets to look up at once."""
        return defaults.DENSE_BLOCK_CELLS if self.dense else defaults.BLOCK_CELLS

    def sums(self, dealt: Sets) -> Floats:
        """(b,) the sum of the scores under (b, N) sets; -1 is an empty one."""
        return self._written_out(dealt) if self.dense else self._compared(dealt)

    def _compared(self, dealt: Sets) -> Floats:
        matrix, sums = self.matrix, np.empty(len(dealt))
        step = max(1, defaults.BLOCK_CELLS // max(len(matrix.rows), 1))
        for low in range(0, len(dealt), step):
            some = dealt[low : low + step]
            draw, cell = true_places(some.take(matrix.rows, axis=1) == self.columns)
            sums[low : low + step] = sums_at(draw, matrix.values[cell], len(some))
        return sums

    def _written_out(self, dealt: Sets) -> Floats:
        matrix, sums = self.matrix, np.zeros(len(dealt))
        count, distinct = matrix.shape
        step = max(1, defaults.DENSE_BLOCK_CELLS // (distinct + 1))
        for low in range(0, count, step):
            high = min(low + step, count)
            cells = slice(*np.searchsorted(matrix.rows, [low, high]).tolist())
            # One column more than there are sets: index -1, an empty gold set.
            full = np.zeros((high - low, distinct + 1))
            full[matrix.rows[cells] - low, self.columns[cells]] = matrix.values[cells]
            scores = full[np.arange(high - low), dealt[:, low:high]]
            # One query after the other, as the comparison of cells adds them.
            scores[:, 0] += sums
            sums = scores.cumsum(axis=1)[:, -1]
        return sums
