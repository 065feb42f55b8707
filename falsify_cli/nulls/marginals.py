"""Null D: as many labels a query as it has, drawn in proportion to their popularity.

Labels are relevant documents. Label l is relevant to a share w_l of all (query,
label) pairs. A query's g labels are drawn by systematic sampling with probability
proportional to size (Madow, 1949), in a random order of the labels: the points
(u + i) / g pick the labels whose intervals they fall into, so that label l is drawn
with probability min(1, g * w_l) exactly. The query keeps its own ideal gain and its
own number of relevant documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from falsify_cli.columns import Bools, Floats, Ints, sums_at
from falsify_cli.gold import Gold
from falsify_cli.grading import Grading, kernel_scorer
from falsify_cli.hits import Hits
from falsify_cli.metrics import KERNELS
from falsify_cli.nulls.draws import (
    TAG_D_ORDERS,
    TAG_D_POINTS,
    TAG_D_SLOTS,
    Null,
    Tally,
    blocks,
    permutations,
    stream,
    true_places,
)
from falsify_cli.nulls.relabelled import column_differences

Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The labels, and the lines of the run's lists on which one stands.

    counts: (L,) gold sets that hold each. queries, ranks, labels: (h,) of each line, by
    query and rank, where the query has gold. listed: (h,) whether the line is in
    the list, or stands for a judged document that is not. sizes: (N,) labels a
    query draws.
    """

    counts: Ints
    queries: Ints
    ranks: Ints
    labels: Ints
    listed: Bools
    sizes: Ints

    @property
    def width(self) -> int:
        """Cells that one draw takes: labels or lines, whichever are more."""
        return max(len(self.counts), len(self.queries))

    @classmethod
    def of(cls, grading: Grading) -> _Labels:
        gold, lines = grading.gold, grading.lines
        documents, counts = label_counts(gold)
        label_of = np.full(grading.vocabulary_size, -1)
        label_of[documents] = np.arange(len(documents))
        sizes = gold.query_sizes
        labels = label_of[lines.codes]
        lines = lines.take(np.flatnonzero((labels >= 0) & (sizes[lines.queries] > 0)))
        return cls(
            counts,
            lines.queries,
            lines.ranks,
            label_of[lines.codes],
            lines.places >= 0,
            sizes,
        )


def label_counts(gold: Gold) -> tuple[Ints, Ints]:
    """(L,) the documents that are gold for some query, and for how many queries."""
    times = gold.multiplicities[gold.owners]
    counts = np.bincount(gold.documents, times).astype(np.int64)
    documents = np.flatnonzero(counts)
    return documents, counts[documents]


def capped_queries(gold: Gold) -> int:
    """Queries for which some label comes out rarer than it should: g * w_l > 1."""
    _, counts = label_counts(gold)
    return int((gold.query_sizes * counts.max() > counts.sum()).sum())


def matched(gradings: Sequence[Grading], n_boot: int, seed: int) -> list[Null]:
    """Null D: marginal-matched labels."""
    count = len(gradings[0])
    labels = [_Labels.of(grading) for grading in gradings]
    drawings = [
        _Drawing(grading, mine, seed)
        for grading, mine in zip(gradings, labels, strict=True)
    ]
    tallies = [
        Tally("D", grading, _expected(grading, mine), _differences(grading, mine))
        for grading, mine in zip(gradings, labels, strict=True)
    ]
    points_rng = stream(seed, TAG_D_POINTS)
    for block in blocks(n_boot, max(count, *(mine.width for mine in labels))):
        points = points_rng.random((block, count))
        for drawing, tally in zip(drawings, tallies, strict=True):
            tally.add(drawing.scores(points), block)
    return [tally.null() for tally in tallies]


def _differences(grading: Grading, labels: _Labels) -> Floats | None:
    """One label a query: the null is A's, and so is its column term."""
    every = (labels.sizes == 1).all()
    return column_differences(grading) if every else None


def _expected(grading: Grading, labels: _Labels) -> Floats | None:
    """(N,) expected scores, None where there is no closed form.

    A linear measure needs the chance of each label and its mean grade alone, any
    other one needs that no query draws two labels.
    """
    kernel = KERNELS.get(grading.metric.measure)
    single = (labels.sizes <= 1).all()
    if kernel is None or not (single or kernel.linear):
        return None
    gold, queries = grading.gold, labels.queries
    weights = labels.counts / labels.counts.sum()
    chances = np.minimum(1.0, labels.sizes[queries] * weights[labels.labels])
    sets = gold.sets[queries]
    means = sums_at(gold.owners, gold.grades, len(gold.sizes)) / gold.sizes
    # Every label for itself: the lines of a list are cells of their own.
    lone = Hits(np.arange(len(queries)), labels.ranks, means[sets])
    chances = np.where(labels.listed, chances, 0.0)
    _, scores = kernel_scorer(grading.metric, gold)(lone, queries, sets)
    return sums_at(queries, chances * scores, len(grading))


class _Drawing:
    """Draws of labels under one metric; only those on listed lines are looked at."""

    def __init__(self, grading: Grading, labels: _Labels, seed: int) -> None:
        self._grading, self._labels = grading, labels
        self._several = (labels.sizes > 1).any()
        self._slots = stream(seed, TAG_D_SLOTS)
        rng = stream(seed, TAG_D_ORDERS)
        numbered = rng.permutation(len(labels.counts))
        counts = labels.counts[numbered].astype(np.int32)
        self._orders = _RandomOrders(counts, rng)
        self._number = np.argsort(numbered)[labels.labels]
        # A query's points are 1 apart: how far apart that puts the labels' ends.
        self._scales = labels.sizes[labels.queries] / labels.counts.sum()
        self._widths = counts[self._number] * self._scales
        self._least_gaps = 1 - self._widths
        # Where no query draws two labels one order does for all draws.
        self._uppers = np.cumsum(counts)[self._number] * self._scales

    def scores(self, points: Floats) -> tuple[Ints, Floats]:
        """The cells that score, and their scores; points: (b, N), where each begins."""
        labels, gold, (block, count) = self._labels, self._grading.gold, points.shape
        uppers = self._uppers
        if self._several:
            ends = self._orders.ends(block)
            uppers = ends.take(self._number, axis=1) * self._scales
        # Where every line's label ends, from its query's first point on.
        uppers = uppers - points.take(labels.queries, axis=1)
        # It is drawn where the last point before that is not before its beginning.
        gaps = np.ceil(uppers)
        gaps -= uppers
        draw, line = true_places(gaps >= self._least_gaps)
        queries = labels.queries[line]
        sets = gold.sets[queries]
        places = gold.starts[sets]
        if gold.mixed.any():
            turns = self._slots.random((block, count)) * labels.sizes
            slot = np.ceil(uppers[draw, line] - self._widths[line])
            slot += np.floor(turns)[draw, queries]
            places = places + (slot % labels.sizes[queries]).astype(np.int64)
        cells = draw * count + queries
        hits = Hits(cells, labels.ranks[line], gold.grades[places])
        return self._grading.scorer(hits, queries, sets)


class _RandomOrders:
    """Where the intervals of labels end, draw after draw in a new random order."""

    def __init__(self, counts: Counts, rng: np.random.Generator) -> None:
        self._counts, self._rng = counts, rng
        # Each label once for every set that holds it, where those are few: its end is
        # its last place then, and nothing need be added up, a quarter of the time.
        total = int(counts.sum())
        few = total <= 2 * len(counts)
        self._members = np.repeat(np.arange(len(counts)), counts) if few else None
        self._places = np.arange(1, total + 1, dtype=np.int32) if few else None

    def ends(self, block: int) -> Counts:
        """(b, L) where the interval of every label ends, in b random orders of them.

        In whole numbers, of half the bytes: they add up four times as fast as
        fractions.
        """
        counts = self._counts
        orders = permutations(self._rng, block, len(counts), self._members)
        if self._places is None:
            in_order = np.cumsum(counts.take(orders), axis=1, dtype=np.int32)
        else:
            in_order = np.broadcast_to(self._places, orders.shape)
        ends = np.empty((block, len(counts)), np.int32)
        # Of a repeated place the last value stays. Row by row: all at once is slower.
        for end, order, sums in zip(ends, orders, in_order, strict=True):
            end[order] = sums
        return ends
