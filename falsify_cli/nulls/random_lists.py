"""Null C: the same gold, lists drawn at random from the corpus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Floats, Ints, kinds_of_pairs, stretches
from falsify_cli.grading import Grading
from falsify_cli.hits import Hits
from falsify_cli.nulls.closed_forms import expected_random_retrieval
from falsify_cli.nulls.draws import (
    TAG_C_CHOICE,
    TAG_C_COUNTS,
    TAG_C_OTHERS,
    TAG_C_POINTS,
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
    return [_of_one(grading, n_boot, seed) for grading in gradings]


def _of_one(grading: Grading, n_boot: int, seed: int) -> Null:
    lists = _RandomLists(grading, seed)
    tally = Tally("C", grading, expected_random_retrieval(grading))
    for block in blocks(n_boot, len(grading)):
        tally.add(lists.scores(block), block)
    return tally.null()


class _RandomLists:
    """Random lists under one metric; only their hits are made."""

    def __init__(self, grading: Grading, seed: int) -> None:
        self._grading = grading
        self._hit_counts = _HitCounts(
            grading.gold.query_sizes, grading.list_lengths, grading.corpus, seed
        )
        self._ranks = stream(seed, TAG_C_RANKS)
        self._choice = stream(seed, TAG_C_CHOICE)
        self._scorer = grading.scorer.for_random_lists(
            grading.list_lengths, grading.corpus, stream(seed, TAG_C_OTHERS)
        )

    def scores(self, block: int) -> tuple[Ints, Floats]:
        """The cells that score in the next b draws, and their scores."""
        grading, count = self._grading, len(self._grading)
        cells, counts = self._hit_counts.draw(block)
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


class _HitCounts:
    """How many of a query's relevant documents a random list holds.

    Most cells of most benchmarks have no hit, and cost nothing: only those are
    looked at that would have one if every query had the largest chance of any.
    """

    def __init__(self, relevant: Ints, lengths: Ints, corpus: int, seed: int) -> None:
        pairs, self._kinds = kinds_of_pairs(relevant, lengths)
        # Of each kind, the chances of 1, 2, ... hits or more.
        self._tails = [
            np.cumsum(hypergeometric(g, k, corpus)[:0:-1])[::-1] for g, k in pairs
        ]
        self._most = max(float(tail[0]) if len(tail) else 0.0 for tail in self._tails)
        self._candidates = Trials(self._most, stream(seed, TAG_C_COUNTS))
        self._points = stream(seed, TAG_C_POINTS)

    def draw(self, block: int) -> tuple[Ints, Ints]:
        """The cells of the next b draws with a hit, ascending, and how many each."""
        cells = self._candidates.successes(block * len(self._kinds))
        points = self._most * self._points.random(len(cells))
        kinds = self._kinds[cells % len(self._kinds)]
        counts = np.zeros(len(cells), np.int64)
        order = np.argsort(kinds, kind="stable")
        for low, high in stretches(kinds[order]):
            some = order[low:high]
            tail = self._tails[kinds[some[0]]]
            counts[some] = np.searchsorted(-tail, -points[some], "left")
        met = np.flatnonzero(counts)
        return cells[met], counts[met]


class Trials:
    """Independent trials that succeed with one chance each, in one long row."""

    def __init__(self, chance: float, rng: np.random.Generator) -> None:
        self._chance, self._rng = chance, rng
        # Where the successes drawn beyond the last trial asked for lie, from there.
        self._ahead: Ints = np.zeros(0, np.int64)

    def successes(self, count: int) -> Ints:
        """Which of the next count trials succeed, from 0, ascending.

        Only these take a random number, since the gaps between them are geometric: an
        exponential rounded down. Ten million trials that hardly ever succeed take 1 ms,
        a number for each of them 50.
        """
        if not self._chance:
            return np.zeros(0, np.int64)
        rate = math.log1p(-self._chance) if self._chance < 1 else -math.inf
        parts, last = [self._ahead], int(self._ahead[-1]) if len(self._ahead) else -1
        while last < count:
            some = 1 + int((count - last) * self._chance)
            gaps = self._rng.standard_exponential(some) / -rate
            parts.append(last + np.cumsum(1 + gaps.astype(np.int64)))
            last = int(parts[-1][-1])
        found = np.concatenate(parts)
        within = np.searchsorted(found, count)
        self._ahead = found[within:] - count
        return found[:within]


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
