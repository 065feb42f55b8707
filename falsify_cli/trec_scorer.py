"""Hits -> scores by pytrec_eval, for the measures that have no kernel of ours.

Slower by two orders of magnitude, and the same nulls: a null replaces the relevant
labels and leaves the query's judged non-relevant documents as they are, a drawn
label overriding one. Each cell becomes a query of its own, its documents named by
their ranks; labels that are in no list are stand-ins, so that the number of
relevant documents stays the owner's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from falsify_cli.benchmark import Benchmark
from falsify_cli.columns import Bools, Floats, Ints
from falsify_cli.gold import Gold
from falsify_cli.hits import Hits, Lines
from falsify_cli.metrics import Metric, trec_eval_names

# Cells handed to pytrec_eval at once: some megabytes of dictionaries.
_BATCH = 2000

# A query's judged non-relevant documents -> their ranks, beyond the list's length
# where they are not in it.
Others = Callable[[int, Ints], Ints]


class Watch:
    """Follows the lists that pytrec_eval has to score, and says beforehand how long.

    n_boot: draws of each null. tell: takes a line for the user. progress: told after
    each batch how many of how many lists are done.
    """

    def __init__(
        self,
        n_boot: int = 0,
        tell: Callable[[str], None] = lambda text: None,
        progress: Callable[[int, int], None] = lambda done, steps: None,
    ) -> None:
        self.n_boot, self._tell, self._progress = n_boot, tell, progress
        self._done = self._lists = 0

    def expect(self, metric: Metric, lists: int, seconds_a_list: float) -> None:
        """Announce work; said aloud where it will take more than a minute."""
        self._lists += lists
        minutes = lists * seconds_a_list / 60
        if minutes > 1:
            self._tell(
                f"{metric.name} has no kernel of falsify: some {lists:,} lists go "
                f"through pytrec_eval, which takes about {minutes:.0f} minutes"
            )

    def scored(self, lists: int) -> None:
        """Some more lists are done."""
        self._done += lists
        if self._lists:
            self._progress(min(self._done, self._lists), self._lists)


def lists_to_score(
    lines: Lines, gold: Gold, lengths: Ints, corpus: int, n_boot: int
) -> int:
    """About how many lists the four nulls have to score: those with a hit.

    Each pair of a list and a gold set once for A and B; for C and D a query's chance
    of a hit, times the draws.
    """
    size = int(lines.codes.max(initial=0)) + 1
    holders = np.bincount(gold.documents, minlength=size)
    pairs = int(holders[lines.codes].sum())
    sizes = gold.query_sizes
    weights = np.bincount(gold.documents, gold.multiplicities[gold.owners], size)
    label_chances = sizes[lines.queries] * weights[lines.codes] / weights.sum()
    by_popularity = np.minimum(1, np.bincount(lines.queries, label_chances))
    by_chance = 1 - (1 - np.minimum(1, sizes / corpus)) ** lengths
    return pairs + int(n_boot * (by_popularity.sum() + by_chance.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class TrecScorer:
    """Scores cells by pytrec_eval.

    lengths: (N,) documents in each list. others: (query, ranks of the hits) -> ranks
    of the judged non-relevant documents. watch: told of each batch.
    """

    metric: Metric
    gold: Gold
    lengths: Ints
    others: Others
    watch: Watch

    def __call__(self, hits: Hits, queries: Ints, sets: Ints) -> tuple[Ints, Floats]:
        """Score every cell with a hit inside its list; any other scores 0."""
        retrieved = hits.ranks <= self.lengths[queries]
        starts = hits.starts
        ends = np.append(starts[1:], len(hits))
        if len(starts):
            some = np.logical_or.reduceat(retrieved, starts)
            starts, ends = starts[some], ends[some]
        values = np.zeros(len(starts))
        for low in range(0, len(starts), _BATCH):
            batch = slice(low, low + _BATCH)
            values[batch] = self._evaluated(
                hits, queries, sets, starts[batch], ends[batch]
            )
            self.watch.scored(len(starts[batch]))
        return hits.cells[starts], values

    def _evaluated(
        self, hits: Hits, queries: Ints, sets: Ints, starts: Ints, ends: Ints
    ) -> list[float]:
        import pytrec_eval

        request, key = trec_eval_names(self.metric)
        qrels, run = {}, {}
        for cell, (low, high) in enumerate(zip(starts, ends, strict=True)):
            query = int(queries[low])
            ranks, grades = hits.ranks[low:high], hits.grades[low:high]
            judged = dict.fromkeys(map(str, self.others(query, ranks).tolist()), 0)
            for rank, grade in zip(ranks.tolist(), grades.tolist(), strict=True):
                judged[str(rank)] = int(grade)
            judged.update(_stand_ins(self.gold, int(sets[low]), grades))
            qrels[str(cell)] = judged
            run[str(cell)] = _list_of(int(self.lengths[query]))
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {request})
        scores = evaluator.evaluate(run)
        return [scores[str(cell)][key] for cell in range(len(starts))]

    def for_random_lists(
        self, lengths: Ints, corpus: int, rng: np.random.Generator
    ) -> TrecScorer:
        """The scorer of lists drawn from a corpus, their other hits drawn as well."""

        def drawn(query: int, ranks: Ints) -> Ints:
            others = len(self.others(query, np.zeros(0, np.int64)))
            relevant = int(self.gold.query_sizes[query])
            length = int(lengths[query])
            free = np.setdiff1d(np.arange(1, length + 1), ranks, assume_unique=True)
            rest = corpus - relevant - others
            count = int(rng.hypergeometric(others, rest, len(free)))
            listed = rng.choice(free, count, replace=False)
            return np.concatenate([listed, length + 1 + np.arange(others - count)])

        return replace(self, lengths=lengths, others=drawn)


def trec_scorer(
    benchmark: Benchmark,
    metric: Metric,
    gold: Gold,
    depth: int | None,
    watch: Watch,
) -> tuple[TrecScorer, Lines]:
    """The scorer of the run's own lists, and the lines it wants to be given.

    The lines are the judged ones, and behind the end of each list the judged
    documents that are not in it: a null's label may override one of those too.
    """
    lists = benchmark.lists
    lengths = lists.lengths
    if depth is not None:
        lengths = np.minimum(lengths, depth)
    lines = _with_unlisted(benchmark, Lines.of(lists, depth), lengths)
    own = _is_relevant(lines, gold, len(benchmark.judgments.vocabulary))
    judged = _is_judged(lines, benchmark)
    ranks, queries = lines.ranks[judged & ~own], lines.queries[judged & ~own]
    starts = np.searchsorted(queries, np.arange(len(benchmark) + 1)).tolist()

    def others(query: int, hits: Ints) -> Ints:
        mine: Ints = ranks[starts[query] : starts[query + 1]]
        return mine[~np.isin(mine, hits)] if len(hits) else mine

    return TrecScorer(metric, gold, lengths, others, watch), lines


def _with_unlisted(benchmark: Benchmark, lines: Lines, lengths: Ints) -> Lines:
    judgments = benchmark.judgments
    size = len(judgments.vocabulary)
    listed = lines.queries * size + lines.codes
    absent = ~np.isin(judgments.query * size + judgments.document, listed)
    query, document = judgments.query[absent], judgments.document[absent]
    firsts = np.searchsorted(query, np.arange(len(benchmark)))
    below = np.arange(len(query)) - firsts[query] + 1
    queries = np.concatenate([lines.queries, query])
    ranks = np.concatenate([lines.ranks, lengths[query] + below])
    order = np.lexsort((ranks, queries))
    return Lines(
        np.concatenate([lines.places, np.full(len(query), -1)])[order],
        queries[order],
        ranks[order],
        np.concatenate([lines.codes, document])[order],
    )


def _is_judged(lines: Lines, benchmark: Benchmark) -> Bools:
    judgments, size = benchmark.judgments, len(benchmark.judgments.vocabulary)
    pairs = judgments.query * size + judgments.document
    return np.isin(lines.queries * size + lines.codes, pairs)


def _is_relevant(lines: Lines, gold: Gold, size: int) -> Bools:
    pairs = gold.owners * size + gold.documents
    return np.isin(gold.sets[lines.queries] * size + lines.codes, pairs)


def _stand_ins(gold: Gold, owner: int, hit: Floats) -> Iterator[tuple[str, int]]:
    """The owner's labels beyond those that were hit, under names of their own."""
    grades = gold.grades[gold.starts[owner] : gold.starts[owner + 1]]
    rest = Counter(grades.tolist())
    rest.subtract(hit.tolist())
    for grade, times in rest.items():
        for number in range(times):
            yield f"stand-in {grade} {number}", int(grade)


@lru_cache(maxsize=256)
def _list_of(length: int) -> dict[str, float]:
    """{rank: score} of a list; shared by all lists of that length, never changed."""
    return {str(rank): float(length - rank + 1) for rank in range(1, length + 1)}
