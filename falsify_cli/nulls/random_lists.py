"""Null C: the same gold, lists drawn at random from the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Floats, Ints, stretches
from falsify_cli.grading import Grading
from falsify_cli.hits import Hits
from falsify_cli.nulls.closed_forms import expected_random_retrieval
from falsify_cli.nulls.draws import (
    TAG_C_CHOICE,
    TAG_C_COUNTS,
    TAG_C_OTHERS,
    TAG_C_RANKS,
    Null,
    Tally,
    blocks,
    stream,
)

# Cards of a deck that is laid out in full, one for each cell: half a megabyte.
_LARGEST_DECK = 1 << 16


def retrieved_at_random(
    gradings: Sequence[Grading], n_boot: int, seed: int
) -> list[Null]:
    """Null C: each list is replaced by documents drawn uniformly from the corpus."""
    count = len(gradings[0])
    lists = [_RandomLists(grading, seed) for grading in gradings]
    tallies = [
        Tally("C", grading, expected_random_retrieval(grading)) for grading in gradings
    ]
    counts_rng = stream(seed, TAG_C_COUNTS)
    for block in blocks(n_boot, count):
        points = counts_rng.random((block, count))
        for drawn, tally in zip(lists, tallies, strict=True):
            tally.add(drawn.scores(points), block)
    return [tally.null() for tally in tallies]


class _RandomLists:
    """Random lists under one metric; only their hits are made."""

    def __init__(self, grading: Grading, seed: int) -> None:
        self._grading = grading
        self._hit_counts = _HitCounts.of(
            grading.gold.query_sizes, grading.list_lengths, grading.corpus
        )
        self._ranks = stream(seed, TAG_C_RANKS)
        self._choice = stream(seed, TAG_C_CHOICE)
        self._scorer = grading.scorer.for_random_lists(
            grading.list_lengths, grading.corpus, stream(seed, TAG_C_OTHERS)
        )

    def scores(self, points: Floats) -> tuple[Ints, Floats]:
        """The cells that score, and their scores, where (b, N) points count hits."""
        grading, count = self._grading, points.shape[1]
        cells, counts = self._hit_counts.draw(points)
        query = cells % count
        sets = grading.gold.sets[query]
        lengths = grading.list_lengths[query]
        ranks = 1 + different_numbers(counts, lengths, self._ranks)
        grades = _drawn_grades(grading, sets, counts, self._choice)
        cells = np.repeat(cells, counts)
        if grading.depth is not None:
            near = ranks <= grading.depth
            cells, ranks, grades = cells[near], ranks[near], grades[near]
        hits = Hits.sort(cells, ranks, grades)
        query = hits.cells % count
        return self._scorer(hits, query, grading.gold.sets[query])


def _drawn_grades(
    grading: Grading, sets: Ints, counts: Ints, rng: np.random.Generator
) -> Floats:
    """(sum of counts,) the grades of that many different documents of each set."""
    gold = grading.gold
    flat = np.repeat(gold.starts[sets], counts)
    mixed = grading.gold.mixed[sets]
    chosen = np.zeros(len(flat), np.int64)
    chosen[np.repeat(mixed, counts)] = different_numbers(
        counts[mixed], gold.sizes[sets[mixed]], rng
    )
    grades: Floats = gold.grades[flat + chosen]
    return grades


@dataclass(frozen=True, slots=True, eq=False)
class _HitCounts:
    """How many of a query's relevant documents a random list holds.

    kinds: (N,) which (relevant documents, list length) pair a query has.
    none: (N,) the chance of no hit. tables: of each kind, its cumulative chances.
    """

    kinds: Ints
    none: Floats
    tables: list[Floats]

    @classmethod
    def of(cls, relevant: Ints, lengths: Ints, corpus: int) -> _HitCounts:
        """Tabulate the hypergeometric distribution of every different query."""
        pairs, kinds = np.unique(
            np.stack([relevant, lengths]), axis=1, return_inverse=True
        )
        tables = [np.cumsum(hypergeometric(int(g), int(k), corpus)) for g, k in pairs.T]
        kinds = kinds.reshape(-1)
        return cls(kinds, np.array([t[0] for t in tables])[kinds], tables)

    def draw(self, points: Floats) -> tuple[Ints, Ints]:
        """The cells with a hit, ascending, and how many each has.

        points: (b, N) uniform. Most cells of most benchmarks have no hit: they cost
        one comparison.
        """
        cells = np.flatnonzero(points >= self.none)
        kinds = self.kinds[cells % len(self.none)]
        counts = np.zeros(len(cells), np.int64)
        order = np.argsort(kinds, kind="stable")
        for low, high in stretches(kinds[order]):
            some = order[low:high]
            table = self.tables[kinds[some[0]]]
            place = np.searchsorted(table, points.reshape(-1)[cells[some]], "right")
            counts[some] = np.minimum(place, len(table) - 1)
        return cells, counts


def hypergeometric(relevant: int, drawn: int, corpus: int) -> Floats:
    """The chances of 0, 1, ... relevant documents among the drawn ones.

    Returns (min(relevant, drawn) + 1,), summing to 1.
    """
    most = min(relevant, drawn)
    least = max(0, relevant + drawn - corpus)
    # Each chance from the one before: no gamma function of a large corpus, whose
    # logarithm leaves no digits to subtract.
    hits = np.arange(least, most, dtype=np.float64)
    gains = np.log(relevant - hits) + np.log(drawn - hits)
    losses = np.log(hits + 1) + np.log(corpus - relevant - drawn + hits + 1)
    logs = np.concatenate([[0.0], np.cumsum(gains - losses)])
    chances = np.exp(logs - logs.max())
    return np.concatenate([np.zeros(least), chances / chances.sum()])


def different_numbers(counts: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
    """For each cell counts different numbers below its size, in random order.

    Returns (sum of counts,), cell after cell; one random number is taken for each.
    Fisher and Yates's shuffle, stopped after counts swaps, on all cells at once.
    """
    points = rng.random(int(counts.sum()))
    firsts = np.cumsum(counts) - counts
    numbers = (points * np.repeat(sizes, counts)).astype(np.int64)
    several = np.flatnonzero(counts > 1)
    for low, high in _stretches(sizes[several]):
        some = several[low:high]
        if sizes[some].max() > _LARGEST_DECK:
            _deal_from_a_thought_deck(numbers, points, firsts, counts, sizes, some)
            continue
        decks = np.tile(np.arange(sizes[some].max()), (len(some), 1))
        for swap in range(counts[some].max()):
            left = np.flatnonzero(counts[some] > swap)
            places = firsts[some[left]] + swap
            rest = sizes[some[left]] - swap
            pick = swap + (points[places] * rest).astype(np.int64)
            numbers[places] = decks[left, pick]
            decks[left, pick] = decks[left, swap]
    return numbers


def _deal_from_a_thought_deck(
    numbers: Ints, points: Floats, firsts: Ints, counts: Ints, sizes: Ints, cells: Ints
) -> None:
    """The same deal where a deck is too large to lay out: only moved cards exist."""
    for cell in cells.tolist():
        moved: dict[int, int] = {}
        for swap in range(counts[cell]):
            place = firsts[cell] + swap
            pick = swap + int(points[place] * (sizes[cell] - swap))
            numbers[place] = moved.get(pick, pick)
            moved[pick] = moved.get(swap, swap)


def _stretches(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Cut cells into stretches whose decks stay within a block."""
    if len(sizes):
        step = max(1, defaults.BLOCK_CELLS // int(sizes.max()))
        for low in range(0, len(sizes), step):
            yield low, min(low + step, len(sizes))
