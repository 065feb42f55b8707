"""Grading -> a complaint where pytrec_eval scores the run otherwise than we do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark
from falsify_cli.columns import distinct
from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.metrics import Metric, trec_eval_names


def compare(benchmark: Benchmark, grading: Grading) -> None:
    """Score up to 200 queries of the real run, with its own ids, by pytrec_eval.

    Raises InternalError where a query's score differs by more than 1e-9.
    """
    most = min(len(grading), defaults.SELF_CHECK_QUERIES)
    sample = distinct(np.linspace(0, len(grading) - 1, most).astype(int)).tolist()
    judged = _judged(benchmark, grading.metric, sample)
    listed = grading.lists.of(sample, grading.depth)
    lists = {
        str(query): _named(ids, judged[str(query)])
        for query, ids in zip(sample, listed, strict=True)
    }
    theirs = pytrec_eval_scores(grading.metric, judged, lists)
    for query in sample:
        mine = float(grading.scores[query])
        other = theirs.get(str(query), 0.0)
        if abs(mine - other) > defaults.SELF_CHECK_TOLERANCE:
            raise InternalError(
                f"{grading.metric.name} of query {benchmark.judgments.queries[query]!r}"
                f": our kernel says {mine!r}, pytrec_eval {other!r}"
            )


def pytrec_eval_scores(
    metric: Metric, qrels: dict[str, dict[str, int]], lists: dict[str, list[str]]
) -> dict[str, float]:
    """Score ranked lists of ids by pytrec_eval; a query without a list is left out.

    Scores are given as n, n - 1, ..., 1: pytrec_eval compares them as 32-bit floats.
    """
    import pytrec_eval  # its import takes longer than it needs to score a small run

    request, key = trec_eval_names(metric)
    level = 1 if metric.graded or metric.top1 else metric.level
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {request}, relevance_level=level)
    run = {
        query: {doc: float(len(ids) - i) for i, doc in enumerate(ids[: metric.cutoff])}
        for query, ids in lists.items()
        if ids
    }
    return {query: row[key] for query, row in evaluator.evaluate(run).items()}


def _named(ids: Sequence[str | None], judged: Mapping[str, int]) -> list[str]:
    """A list whose unjudged documents, where they have no id, get one nobody has."""
    taken = {*ids, *judged}
    names = []
    for rank, document in enumerate(ids, 1):
        name = f"unjudged {rank}" if document is None else document
        while document is None and name in taken:
            name += "'"
        names.append(name)
    return names


def _judged(
    benchmark: Benchmark, metric: Metric, queries: Sequence[int]
) -> dict[str, dict[str, int]]:
    """{document: grade} of queries, as pytrec_eval may see it: no grade below 0."""
    judgments = benchmark.judgments
    judged: dict[str, dict[str, int]] = {str(query): {} for query in queries}
    lines = np.flatnonzero(np.isin(judgments.query, queries))
    for query, document, grade in zip(
        judgments.query[lines].tolist(),
        judgments.vocabulary.ids.take(judgments.document[lines]).to_list(),
        np.maximum(judgments.grade[lines], 0).tolist(),
        strict=True,
    ):
        judged[str(query)][document] = grade
    if not metric.top1:
        return judged
    # Documents come by id, so max finds the smallest id among the highest grades.
    best = {query: max(rows, key=rows.__getitem__) for query, rows in judged.items()}
    return {
        query: {document: int(judged[query][document] >= metric.level)}
        for query, document in best.items()
    }
