"""The path through pytrec_eval gives what our kernels and what it itself give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from falsify_cli.benchmark import Benchmark, join
from falsify_cli.grading import Grading, grade
from falsify_cli.metrics import KERNELS, parse_metric
from falsify_cli.nulls import null_models
from falsify_cli.read import qrels_of_mapping, run_of_mapping
from falsify_cli.second_opinion import compare
from falsify_cli.trec_scorer import Watch

OTHERS = [
    "Rprec",
    "bpref",
    "infAP",
    "11pt_avg",
    "binG",
    "Rndcg",
    "ndcg_rel",
    "set_P",
    "set_recall",
    "set_relative_P",
    "set_map",
    "set_F",
    "relative_P_5",
    "iprec_at_recall_0.20",
    "Rprec_mult_1.20",
]


def made_benchmark(seed: int, single: bool = False) -> Benchmark:
    """A benchmark of 12 queries with grades from -1 to 3 and short random lists."""
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(30)]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(12):
        judged = rng.choice(documents, 1 if single else 8, replace=False)
        low = 1 if single else -1
        qrels[f"q{number}"] = {d: int(rng.integers(low, 4)) for d in judged}
        listed = rng.choice(documents, rng.integers(1, 15), replace=False)
        if number != 3:
            run[f"q{number}"] = {d: float(rng.random()) for d in listed}
    return join(run_of_mapping(run), qrels_of_mapping(qrels))


def both(benchmark: Benchmark, metric: str, level: int = 1) -> tuple[Grading, Grading]:
    """The same metric by our kernel and by pytrec_eval."""
    options: dict[str, Any] = {"top_k": None, "corpus": 40}
    parsed = parse_metric(metric, level)
    return (
        grade(benchmark, parsed, **options),
        grade(benchmark, parsed, **options, by_pytrec_eval=True),
    )


METRICS = ["nDCG@5", "nDCG", "AP@4", "AP", "RR@3", "RR", "P@5", "R@5", "Success@2"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("level", [1, 2])
def test_a_kernel_metric_sent_through_pytrec_eval_gives_the_same_nulls(
    metric: str, level: int
) -> None:
    ours, theirs = both(made_benchmark(5), metric, level)
    assert_allclose(theirs.scores, ours.scores, atol=1e-12)
    assert_array_equal(theirs.matrix.columns, ours.matrix.columns)
    assert_allclose(theirs.matrix.values, ours.matrix.values, atol=1e-12)
    for mine, other in zip(
        null_models(ours, 200, 3), null_models(theirs, 200, 3), strict=True
    ):
        assert other.letter == mine.letter
        assert_allclose(other.draws, mine.draws, atol=1e-12)
        assert_allclose(other.of_query, mine.of_query, atol=1e-12)
        assert_allclose(other.differences, mine.differences, atol=1e-12)


@pytest.mark.parametrize("metric", OTHERS)
def test_made_up_documents_score_as_the_real_ones_do(metric: str) -> None:
    for seed in range(5):
        benchmark = made_benchmark(seed)
        grading = grade(benchmark, parse_metric(metric), top_k=None, corpus=40)
        compare(benchmark, grading)
        assert grading.scores.max() > 0


def test_every_measure_without_a_kernel_is_tried_here() -> None:
    for metric in OTHERS:
        assert parse_metric(metric).measure not in KERNELS


def test_a_drawn_label_overrides_a_judged_non_relevant_document() -> None:
    # q1 ranks a above b and is scored against q2's gold {b, z}. Of its two judged
    # non-relevant documents b is now relevant, so R = 2, N = 1, and a alone stands
    # above b: bpref = 1/2 * (1 - 1 / min(2, 1)) = 0. With b counted twice N would
    # be 2, and bpref 1/2 * (1 - 1/2) = 1/4.
    qrels = {"q1": {"a": 0, "b": 0, "c": 1}, "q2": {"b": 1, "z": 1}}
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 1.0}}
    benchmark = join(run_of_mapping(run), qrels_of_mapping(qrels))
    grading = grade(benchmark, parse_metric("bpref"), top_k=None, corpus=4)
    # Sets by content: {b, z} is 0, {c} is 1. q2 finds one of two, none above: 1/2.
    assert grading.matrix.rows.tolist() == [0, 1]
    assert grading.matrix.columns.tolist() == [0, 0]
    assert grading.matrix.values.tolist() == [0.0, 0.5]


def test_the_work_of_pytrec_eval_is_foreseen_and_followed() -> None:
    told: list[str] = []
    seen: list[tuple[int, int]] = []
    watch = Watch(200, told.append, lambda done, steps: seen.append((done, steps)))
    grading = grade(
        made_benchmark(5), parse_metric("bpref"), top_k=None, corpus=40, watch=watch
    )
    null_models(grading, 200, 3)
    done, steps = seen[-1]
    # Foreseen are upper bounds of pairs and of chances: never below what came.
    assert 0.6 * steps < done <= steps
    assert told == []


def test_work_of_more_than_a_minute_is_told_beforehand() -> None:
    told: list[str] = []
    watch = Watch(1000, told.append)
    watch.expect(parse_metric("bpref"), 10_000, 0.005)
    assert told == []
    watch.expect(parse_metric("bpref"), 90_000, 0.002)
    (line,) = told
    assert line.startswith("bpref has no kernel of falsify: some 90,000 lists go")
    assert line.endswith("about 3 minutes")
