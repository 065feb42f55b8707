"""Grading -> how far the order of equal scores decides the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_cli.columns import Floats, distinct, positions, stretch_starts
from falsify_cli.grading import Grading
from falsify_cli.hits import Hits, Lines, own_lines


@dataclass(frozen=True, slots=True)
class Ties:
    """What equal scores decide, under one metric.

    low, high: the mean score in the worst and in the best order of every block of
    equal scores. queries: those with a block that begins within the depth.
    all_equal: those whose whole list of several documents has one score.
    """

    low: float
    high: float
    queries: int
    all_equal: int


def ties_of(grading: Grading) -> Ties:
    """Count the ties and score the two extreme ways to break them.

    Exact for every metric with a kernel: none of them loses by moving a higher
    grade up within a block.
    """
    lists, depth = grading.lists, grading.depth
    relevant = own_lines(Lines.of(lists, None), grading.gold, grading.vocabulary_size)
    tied = lists.tie_lasts > lists.tie_firsts
    if depth is not None:
        tied &= lists.tie_firsts <= depth
    whole = (lists.tie_firsts == 1) & (lists.tie_lasts == lists.lengths[lists.queries])
    return Ties(
        _mean(grading, *relevant, best=False),
        _mean(grading, *relevant, best=True),
        len(distinct(lists.queries[tied])),
        len(distinct(lists.queries[tied & whole])),
    )


def _mean(grading: Grading, lines: Lines, grades: Floats, *, best: bool) -> float:
    """The mean score with every block's relevant documents at one of its ends.

    lines, grades: the relevant ones at any depth, and their gains.
    """
    lists = grading.lists
    order = np.lexsort((-grades, lists.tie_firsts[lines.places], lines.queries))
    lines, grades = lines.take(order), grades[order]
    queries, firsts = lines.queries, lists.tie_firsts[lines.places]
    within = positions(stretch_starts(queries, firsts), len(queries))
    ranks = firsts + within if best else lists.tie_lasts[lines.places] - within
    if grading.depth is not None:
        near = ranks <= grading.depth
        queries, ranks, grades = queries[near], ranks[near], grades[near]
    hits = Hits.sort(queries, ranks, grades)
    _, scores = grading.scorer(hits, hits.cells, grading.gold.sets[hits.cells])
    return float(scores.sum() / len(grading))
