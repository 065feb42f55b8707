"""Null D: as many labels a query as it has, drawn in proportion to their popularity.

Labels are relevant documents. Label l is relevant to a share w_l of all (query,
label) pairs. A query's g labels are drawn by systematic sampling with probability
proportional to size (Madow, 1949), in a random order of the labels: the points
(u + i) / g pick the labels whose intervals they fall into, so that label l is drawn
with probability min(1, g * w_l) exactly. The query keeps its own ideal gain and its
own number of relevant documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
    blocks,
    finished,
    permutations,
    spread,
    stream,
)
from falsify_cli.nulls.relabelled import column_differences


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The labels, and the lines of the run's lists on which one stands.

    weights: (L,) w_l, summing to 1. queries, ranks, labels: (h,) of each line, by
    query and rank, where the query has gold. listed: (h,) whether the line is in
    the list, or stands for a judged document that is not. sizes: (N,) labels a
    query draws.
    """

    weights: Floats
    queries: Ints
    ranks: Ints
    labels: Ints
    listed: Bools
    sizes: Ints

    @classmethod
    def of(cls, grading: Grading) -> _Labels:
        gold, lines = grading.gold, grading.lines
        documents, weights = label_weights(gold)
        label_of = np.full(grading.vocabulary_size, -1)
        label_of[documents] = np.arange(len(documents))
        sizes = gold.query_sizes
        labels = label_of[lines.codes]
        lines = lines.take(np.flatnonzero((labels >= 0) & (sizes[lines.queries] > 0)))
        return cls(
            weights,
            lines.queries,
            lines.ranks,
            label_of[lines.codes],
            lines.places >= 0,
            sizes,
        )


def label_weights(gold: Gold) -> tuple[Ints, Floats]:
    """(L,) the documents that are gold for some query, and w_l, summing to 1."""
    times = gold.multiplicities[gold.owners]
    counts = np.bincount(gold.documents, times)
    documents = np.flatnonzero(counts)
    return documents, counts[documents] / counts.sum()


def capped_queries(gold: Gold) -> int:
    """Queries for which some label comes out rarer than it should: g * w_l > 1."""
    _, weights = label_weights(gold)
    return int((gold.query_sizes * weights.max() > 1 + 1e-12).sum())


def matched(grading: Grading, n_boot: int, seed: int) -> Null:
    """Null D: marginal-matched labels."""
    labels = _Labels.of(grading)
    of_query = _expected(grading, labels)
    differences = None
    if (labels.sizes == 1).all():
        # One label a query: the null is A's, and so is its column term.
        differences = column_differences(grading)
    drawn = _draws(grading, labels, n_boot, seed)
    return finished("D", grading, drawn, of_query, differences)


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
    chances = np.minimum(1.0, labels.sizes[queries] * labels.weights[labels.labels])
    sets = gold.sets[queries]
    means = sums_at(gold.owners, gold.grades, len(gold.sizes)) / gold.sizes
    # Every label for itself: the lines of a list are cells of their own.
    lone = Hits(np.arange(len(queries)), labels.ranks, means[sets])
    chances = np.where(labels.listed, chances, 0.0)
    _, scores = kernel_scorer(grading.metric, gold)(lone, queries, sets)
    return sums_at(queries, chances * scores, len(grading))


def _draws(
    grading: Grading, labels: _Labels, n_boot: int, seed: int
) -> Iterator[Floats]:
    """Yield blocks of (b, N) scores; only the labels on listed lines are looked at."""
    count, gold = len(grading), grading.gold
    points_rng = stream(seed, TAG_D_POINTS)
    orders_rng, slots_rng = stream(seed, TAG_D_ORDERS), stream(seed, TAG_D_SLOTS)
    graded = gold.mixed.any()
    sizes = labels.sizes[labels.queries]
    width = max(count, len(labels.queries), len(labels.weights))
    for block in blocks(n_boot, width):
        lows, highs = _intervals(labels, block, orders_rng)
        points = points_rng.random((block, count))[:, labels.queries]
        slots = np.ceil(sizes * lows - points)
        draw, line = np.nonzero(slots < sizes * highs - points)
        queries = labels.queries[line]
        sets = gold.sets[queries]
        places = gold.starts[sets]
        if graded:
            turns = slots_rng.random((block, count)) * labels.sizes
            slot = slots[draw, line] + np.floor(turns)[draw, queries]
            places = places + (slot % labels.sizes[queries]).astype(np.int64)
        cells = draw * count + queries
        hits = Hits(cells, labels.ranks[line], gold.grades[places])
        yield spread(grading.scorer(hits, queries, sets), block, count)


def _intervals(
    labels: _Labels, block: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Where the interval of every line's label begins and ends, in b random orders.

    Returns two of (b, h); of (1, h) where no query draws two labels, since then the
    order does not matter and one serves all draws.
    """
    count = len(labels.weights)
    if (labels.sizes <= 1).all():
        ends = np.cumsum(labels.weights)[None, :]
        ends[0, -1] = 1.0
    else:
        orders = permutations(rng, block, count)
        in_order = np.cumsum(labels.weights[orders], axis=1)
        in_order[:, -1] = 1.0
        ends = np.empty_like(in_order)
        # Flat places: np.put_along_axis takes twice as long.
        orders += np.arange(block)[:, None] * count
        ends.reshape(-1)[orders] = in_order
    highs = ends[:, labels.labels]
    return highs - labels.weights[labels.labels], highs
