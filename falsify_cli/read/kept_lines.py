"""Lines that come chunk by chunk -> those that can be among the top of their query."""

from __future__ import annotations

import numpy as np

from falsify_cli.columns import Floats, Ints, single_precision, stretch_starts
from falsify_cli.ids import Ids
from falsify_cli.read.growing import GrowingColumn, GrowingIds

# Lines to hold before the first look at what has become superfluous.
_LEAST = 1 << 18


class KeptLines:
    """The lines of a run that are kept, of all queries together.

    depth: how many each query needs, None for all. Where a query's lines are
    scattered over the file each chunk may hold all its best ones for all it knows;
    here a query's depth-th best score so far keeps lower ones out.
    """

    def __init__(self, depth: int | None) -> None:
        self._depth = depth
        self._look_at = _LEAST
        # Of each query, the 32-bit score that is in the way of lower ones.
        self._floors = np.zeros(0, np.float32)
        self._queries = GrowingColumn(np.int64)
        self._documents = GrowingIds()
        self._scores = GrowingColumn(np.float64)
        self._ranks = GrowingColumn(np.float64)

    def add(self, queries: Ints, documents: Ids, scores: Floats, ranks: Floats) -> None:
        """Add lines; queries: (n,) the number of each line's query."""
        if len(self._floors):
            floors = np.append(self._floors, np.float32(-np.inf))
            floors = floors[np.minimum(queries, len(self._floors))]
            some = np.flatnonzero(single_precision(scores) >= floors)
            queries, documents = queries[some], documents.take(some)
            scores, ranks = scores[some], ranks[some]
        self._queries.add(queries)
        self._documents.add(documents)
        self._scores.add(scores)
        self._ranks.add(ranks)
        if self._depth is not None and len(self._queries) > self._look_at:
            self._drop_superfluous(self._depth)
            self._look_at = max(_LEAST, 2 * len(self._queries))

    def columns(self) -> tuple[Ints, Ids, Floats, Floats]:
        """(k,) queries, documents, scores and ranks of the lines, in file order."""
        return (
            self._queries.column(),
            self._documents.column(),
            self._scores.column(),
            self._ranks.column(),
        )

    def _drop_superfluous(self, depth: int) -> None:
        """Drop the lines below a query's depth-th best, where that halves them.

        Of shuffled lists of 1000 this leaves 60 lines a query, not all.
        """
        queries, documents, scores, ranks = self.columns()
        counts = np.bincount(queries)
        if 2 * np.minimum(counts, depth).sum() > len(queries):
            return
        order = np.argsort(queries, kind="stable")
        starts = stretch_starts(queries[order])
        kept = np.sort(order[top_of_segments(scores[order], starts, depth)])
        self._floors = np.full(len(counts), np.inf, np.float32)
        np.minimum.at(self._floors, queries[kept], single_precision(scores[kept]))
        self._floors[counts < depth] = -np.inf
        self._queries.replace(queries[kept])
        self._documents.replace(documents.take(kept))
        self._scores.replace(scores[kept])
        self._ranks.replace(ranks[kept])


def top_of_segments(scores: Floats, starts: Ints, depth: int | None) -> Ints:
    """The records that could be among the top depth of their segment, in file order.

    Ties with the last of them stay, also those that only single precision makes:
    the document ids that break them are looked at later. A record outside the top
    of its segment is outside the top of its query.
    """
    count = len(scores)
    lengths = np.diff(starts, append=count)
    long = lengths > (depth or count)
    if depth is None or not long.any():
        return np.arange(count)
    order = None
    falling = scores[1:] <= scores[:-1]
    falling[starts[1:] - 1] = True
    if not falling.all():
        segment = np.repeat(np.arange(len(starts)), lengths)
        order = np.lexsort((-scores, segment))
        scores = scores[order]
    single = single_precision(scores)
    last = np.full(len(starts), -np.inf, np.float32)
    last[long] = single[starts[long] + depth - 1]
    kept = np.flatnonzero(single >= np.repeat(last, lengths))
    return kept if order is None else np.sort(order[kept])
