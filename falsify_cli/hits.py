"""A list scored against a gold set, as hits: (cell, rank, grade) rows.

A cell is one list against one gold set: a query of the run, a query against another
query's gold, a query in one draw of a null. Its score depends on its hits and on
the gold's owner alone, so one kernel a metric serves the run and all four nulls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from falsify_cli.benchmark import Lists
from falsify_cli.columns import Floats, Ints, stretch_starts
from falsify_cli.gold import Gold


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """n hits sorted by cell, then rank.

    cells: (n,) any whole number. ranks: (n,) from 1. grades: (n,) gains.
    """

    cells: Ints
    ranks: Ints
    grades: Floats

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def starts(self) -> Ints:
        """(cells with a hit,) the first hit of each."""
        return stretch_starts(self.cells)

    @classmethod
    def sort(cls, cells: Ints, ranks: Ints, grades: Floats) -> Hits:
        """Put hits in order; no two of them share cell and rank."""
        order = np.lexsort((ranks, cells))
        return cls(cells[order], ranks[order], grades[order])


@dataclass(frozen=True, slots=True, eq=False)
class Inverted:
    """The gold sets that hold each document.

    starts: (D + 1,); sets, grades: (m,) sorted by document, then set.
    """

    starts: Ints
    sets: Ints
    grades: Floats

    @classmethod
    def of(cls, gold: Gold, vocabulary_size: int) -> Inverted:
        """Turn gold sets inside out."""
        order = np.argsort(gold.documents, kind="stable")
        starts = np.searchsorted(gold.documents[order], np.arange(vocabulary_size + 1))
        return cls(starts, gold.owners[order], gold.grades[order])


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The lines of ranked lists whose document somebody has judged.

    places: (m,) where each stands among all lines. queries, ranks, codes: (m,),
    sorted by query and rank.
    """

    places: Ints
    queries: Ints
    ranks: Ints
    codes: Ints

    @classmethod
    def of(cls, lists: Lists, depth: int | None) -> Lines:
        """The judged lines down to a depth; most lines of most runs are not."""
        judged = lists.codes >= 0
        if depth is not None:
            judged &= lists.ranks <= depth
        places = np.flatnonzero(judged)
        return cls(
            places, lists.queries[places], lists.ranks[places], lists.codes[places]
        )

    def take(self, lines: Ints) -> Lines:
        """Some of the lines."""
        return Lines(
            self.places[lines],
            self.queries[lines],
            self.ranks[lines],
            self.codes[lines],
        )


def own_lines(lines: Lines, gold: Gold, vocabulary_size: int) -> tuple[Lines, Floats]:
    """The lines whose document is relevant to their query, and its gain."""
    lines = lines.take(np.flatnonzero(gold.sets[lines.queries] >= 0))
    keys = gold.owners * vocabulary_size + gold.documents
    if not len(keys):
        return lines, np.zeros(0)
    order = np.argsort(keys)
    wanted = gold.sets[lines.queries] * vocabulary_size + lines.codes
    places = np.searchsorted(keys, wanted, sorter=order)
    places = order[np.minimum(places, len(keys) - 1)]
    met = np.flatnonzero(keys[places] == wanted)
    return lines.take(met), gold.grades[places[met]]


def own_hits(lines: Lines, gold: Gold, vocabulary_size: int) -> Hits:
    """The run against its own gold: cell q is query q."""
    lines, grades = own_lines(lines, gold, vocabulary_size)
    return Hits(lines.queries, lines.ranks, grades)


def crossed_hits(
    lines: Lines, gold: Gold, vocabulary_size: int, block: int
) -> Iterator[Hits]:
    """The run against every gold set: cell q * U + u is query q against set u.

    Yields blocks of whole queries of about block hits, in the order of queries.
    """
    inverted = Inverted.of(gold, vocabulary_size)
    counts = np.diff(inverted.starts)[lines.codes]
    lines, counts = lines.take(np.flatnonzero(counts)), counts[counts > 0]
    for low, high in _query_blocks(lines.queries, counts, block):
        times = counts[low:high]
        line = np.repeat(np.arange(low, high), times)
        first = inverted.starts[lines.codes[low:high]] - (np.cumsum(times) - times)
        places = np.repeat(first, times) + np.arange(len(line))
        cells = lines.queries[line] * len(gold.sizes) + inverted.sets[places]
        # Lines come by query and rank, so a stable sort by cell keeps the ranks.
        order = np.argsort(cells, kind="stable")
        yield Hits(
            cells[order], lines.ranks[line[order]], inverted.grades[places[order]]
        )


def _query_blocks(queries: Ints, counts: Ints, block: int) -> Iterator[tuple[int, int]]:
    """Cut lines into stretches of whole queries with about block hits in each."""
    if not len(queries):
        return
    borders = np.flatnonzero(np.diff(queries, prepend=-1))
    before = (np.cumsum(counts) - counts)[borders] // block
    starts = borders[np.diff(before, prepend=-1) > 0].tolist()
    yield from zip(starts, [*starts[1:], len(queries)], strict=True)
