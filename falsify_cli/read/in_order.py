"""Lists that stand in a file in one piece and in order: where their lines stand.

Without a cutoff every line of a run may count, and a long list is nearly all lines
that no query has judged. Where each list is in order already, a line's place in it is
told while the file is read, and only the lines that matter are kept.
"""

from __future__ import annotations

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Bools, Floats, Ints, positions, single_precision


class OutOfOrderError(Exception):
    """A list that stands in several places, or not best first."""


def lines_that_matter(scores: Floats, starts: Ints, judged: Bools) -> tuple[Ints, Ints]:
    """The records of a chunk to keep, and the place of each in its segment, from 0.

    These are the judged ones, all whose score is a neighbour's (or is when rounded to
    32 bits), the first of each segment, and its last, which may be tied with lines of
    the next chunk.
    Raises OutOfOrderError where the scores of a segment rise.
    """
    rises = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    if rises.any():
        raise OutOfOrderError
    single = single_precision(scores)
    tied = single[1:] == single[:-1]
    places = positions(starts, len(scores))
    kept = judged | (places < defaults.LOOKED_AT)
    kept[1:] |= tied
    kept[:-1] |= tied
    kept[starts[1:] - 1] = True
    kept[-1:] = True
    rows = np.flatnonzero(kept)
    return rows, places[rows]


class ListsInOrder:
    """Follows a file chunk by chunk, as long as its lists are in order."""

    def __init__(self) -> None:
        self._queries = 0
        self._score = 0.0
        self._lines = 0

    def before(self, queries: Ints, starts: Ints, lines: int, scores: Floats) -> int:
        """How many lines of its list stand before a chunk's first segment.

        queries: (segments,) numbers from 0 in the order they first come. lines: of
        the chunk. scores: from its first line's to its last line's.
        Raises OutOfOrderError where a list goes on after another one, or rises.
        """
        if not len(queries):
            return 0
        before = 0
        if queries[0] == self._queries - 1:
            if scores[0] > self._score:
                raise OutOfOrderError
            before, new = self._lines, queries[1:]
        else:
            new = queries
        last = self._queries + len(new)
        if not np.array_equal(new, np.arange(self._queries, last)):
            raise OutOfOrderError
        self._lines = int(lines - starts[-1]) + (before if len(starts) == 1 else 0)
        self._queries, self._score = last, float(scores[-1])
        return before
