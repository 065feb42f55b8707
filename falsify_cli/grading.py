"""Benchmark + metric -> Grading: the run's scores, and against every gold set."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark, Judgments, Lists
from falsify_cli.columns import Floats, Ints
from falsify_cli.errors import InputError
from falsify_cli.gold import Gold, gold_of
from falsify_cli.hits import Hits, Lines, crossed_hits, own_hits
from falsify_cli.metrics import KERNELS, Kernel, Metric, score_cells
from falsify_cli.trec_scorer import Watch, lists_to_score, trec_scorer


class Scorer(Protocol):
    """Turns hits into scores; a kernel of ours, or pytrec_eval."""

    def __call__(self, hits: Hits, queries: Ints, sets: Ints) -> tuple[Ints, Floats]:
        """Score every cell that has a hit.

        queries, sets: (hits,) whose list and whose gold a hit's cell is about.
        Returns (c,) cells in ascending order and (c,) scores.
        """
        ...

    def for_random_lists(
        self, lengths: Ints, corpus: int, rng: np.random.Generator
    ) -> Scorer:
        """The scorer of lists of these lengths drawn at random from a corpus."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class KernelScorer:
    """Scores cells with a kernel of ours."""

    kernel: Kernel
    norms: Floats

    def __call__(self, hits: Hits, queries: Ints, sets: Ints) -> tuple[Ints, Floats]:
        """Score every cell that has a hit."""
        return score_cells(self.kernel, hits, self.norms, sets)

    def for_random_lists(
        self, lengths: Ints, corpus: int, rng: np.random.Generator
    ) -> KernelScorer:
        """The same: a kernel looks at nothing but relevant documents."""
        return self


def kernel_scorer(metric: Metric, gold: Gold) -> KernelScorer:
    """The scorer of a metric that has a kernel."""
    kernel = KERNELS[metric.measure]
    return KernelScorer(kernel, kernel.norms(gold, metric.cutoff))


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """M: every list against every distinct gold set, where it is not zero.

    rows, columns: (nnz,) query and set, sorted. values: (nnz,) scores.
    shape: N queries, U sets.
    """

    rows: Ints
    columns: Ints
    values: Floats
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Grading:
    """One metric over one benchmark: all that the nulls look at.

    scores: (N,) of the run. depth: the rank beyond which nothing counts, if any.
    list_lengths: (N,) documents in null C's list of each query. corpus: how many
    there are to retrieve.
    """

    metric: Metric
    gold: Gold
    lists: Lists
    lines: Lines
    vocabulary_size: int
    scores: Floats
    matrix: Matrix
    scorer: Scorer
    depth: int | None
    top_k: int | None
    list_lengths: Ints
    corpus: int

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def score(self) -> float:
        """The mean over all judged queries."""
        return float(self.scores.mean())


def metric_gold(judgments: Judgments, metric: Metric) -> Gold:
    """What a metric takes as relevant."""
    return gold_of(
        judgments,
        level=metric.gold_level,
        graded=metric.graded,
        top1=metric.top1,
    )


def refuse_no_relevant(gold: Gold, metric: Metric, qrels: str | None) -> None:
    """Raise InputError where a metric has nothing to find; qrels: the file's name."""
    if not len(gold.sizes):
        raise InputError(
            f"{qrels or 'qrels'}: expected a relevant document, found none of grade "
            f"{metric.level} or more for any of {len(gold.sets):,} queries"
        )


def grade(
    benchmark: Benchmark,
    metric: Metric,
    *,
    top_k: int | None,
    corpus: int,
    by_pytrec_eval: bool = False,
    watch: Watch | None = None,
) -> Grading:
    """Grade a run under a metric, against its own gold and everybody else's.

    top_k: cut the lists there, whatever the metric's cutoff. by_pytrec_eval: score
    by pytrec_eval even where there is a kernel, to compare the two. watch: told
    beforehand what pytrec_eval has to do.
    """
    watch = watch or Watch()
    gold = metric_gold(benchmark.judgments, metric)
    depth = min((d for d in (metric.cutoff, top_k) if d is not None), default=None)
    lists, size = benchmark.lists, len(benchmark.judgments.vocabulary)
    scorer: Scorer
    if by_pytrec_eval or metric.measure not in KERNELS:
        scorer, lines = trec_scorer(benchmark, metric, gold, depth, watch)
    else:
        scorer, lines = kernel_scorer(metric, gold), Lines.of(lists, depth)
    hits = own_hits(lines, gold, size)
    scores = np.zeros(len(benchmark))
    began = perf_counter()
    cells, values = scorer(hits, hits.cells, gold.sets[hits.cells])
    scores[cells] = values
    seconds_a_list = (perf_counter() - began) / max(len(cells), 1)
    length = metric.cutoff if top_k is None else top_k
    lengths = np.broadcast_to(
        np.minimum(lists.lengths if length is None else length, corpus), scores.shape
    )
    if metric.measure not in KERNELS and len(gold.sizes):
        work = lists_to_score(lines, gold, lengths, corpus, watch.n_boot)
        watch.expect(metric, work, seconds_a_list)
    return Grading(
        metric,
        gold,
        lists,
        lines,
        size,
        scores,
        _matrix(lines, gold, scorer, size),
        scorer,
        depth,
        top_k,
        lengths,
        corpus,
    )


def _matrix(lines: Lines, gold: Gold, scorer: Scorer, vocabulary_size: int) -> Matrix:
    count = len(gold.sizes)
    parts: list[tuple[Ints, Floats]] = []
    for hits in crossed_hits(lines, gold, vocabulary_size, defaults.BLOCK_CELLS):
        parts.append(scorer(hits, hits.cells // count, hits.cells % count))
    cells = np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in parts)])
    values = np.concatenate([np.zeros(0), *(values for _, values in parts)])
    rows, columns = np.divmod(cells, max(count, 1))
    return Matrix(rows, columns, values, (len(gold.sets), count))
