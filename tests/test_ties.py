"""The worst and the best order of equal scores, against every order there is."""

from __future__ import annotations

import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import METRICS, Case, Qrels, Run, cases, graded

from falsify_cli.ties import Ties, ties_of


@settings(max_examples=250)
@given(
    case=cases(queries=3, relevant="abcd", unjudged="x"),
    metric=st.sampled_from([*METRICS, "nDCG@1", "AP@3", "P@3", "R@1_top1"]),
    level=st.integers(1, 2),
    top_k=st.none() | st.integers(1, 4),
    cut_early=st.booleans(),
)
def test_the_range_is_what_all_orders_of_tied_documents_give(
    case: Case, metric: str, level: int, top_k: int | None, cut_early: bool
) -> None:
    run, qrels = case
    _, cutoff, _ = ref.parse(metric)
    depth = min((k for k in (cutoff, top_k) if k is not None), default=None)
    grading = graded(
        run,
        qrels,
        metric,
        level=level,
        top_k=top_k,
        depth=depth if cut_early else None,
    )
    found = ties_of(grading)
    assert isinstance(found, Ties)
    ranges = [
        ref.tie_range(run.get(query, {}), judged, metric, level, top_k)
        for query, judged in qrels.items()
    ]
    assert found.low == pytest.approx(ref.mean(low for low, _ in ranges), abs=1e-12)
    assert found.high == pytest.approx(ref.mean(high for _, high in ranges), abs=1e-12)
    assert found.low <= grading.score + 1e-12
    assert found.high >= grading.score - 1e-12


# c first; a, b, d tied at ranks 2 to 4; e alone at 5.
ONE_BLOCK = {"c": 2.0, "a": 1.0, "b": 1.0, "d": 1.0, "e": 0.0}


@pytest.mark.parametrize(
    ("run", "metric", "queries", "all_equal"),
    [
        pytest.param({"q": ONE_BLOCK}, "P@2", 1, 0, id="block across the cutoff"),
        pytest.param({"q": ONE_BLOCK}, "P@4", 1, 0, id="block above the cutoff"),
        pytest.param({"q": ONE_BLOCK}, "P@1", 0, 0, id="block below the cutoff"),
        pytest.param({"q": {"a": 1.0, "b": 0.5}}, "P@2", 0, 0, id="no tie"),
        pytest.param({"q": {"a": 1.0}}, "P@2", 0, 0, id="one document is no tie"),
        pytest.param({"q": {"a": 1.0, "b": 1.0}}, "P@2", 1, 1, id="all equal"),
        pytest.param(
            {"q": {"c": 2.0, "a": 1.0, "b": 1.0}}, "P@2", 1, 0, id="all but the first"
        ),
        pytest.param(
            {"q": {"a": 1.0, "b": 1.0}, "r": ONE_BLOCK, "s": {"a": 1.0}},
            *("P@2", 2, 1),
            id="three queries",
        ),
        pytest.param({"q": {"a": 0.0, "b": -0.0}}, "P@2", 1, 1, id="both zeros"),
    ],
)
def test_ties_are_counted_in_queries(
    run: Run, metric: str, queries: int, all_equal: int
) -> None:
    qrels: Qrels = {query: {"a": 1} for query in "qrs"}
    found = ties_of(graded(run, qrels, metric))
    assert isinstance(found, Ties)
    assert (found.queries, found.all_equal) == (queries, all_equal)


def test_the_range_of_a_case_worked_by_hand() -> None:
    # Gold a and d of the block at ranks 2 to 4; q2 has no ties and scores 1.
    run: Run = {"q1": ONE_BLOCK, "q2": {"a": 1.0}}
    qrels: Qrels = {"q1": {"a": 1, "d": 2}, "q2": {"a": 1}}
    found = ties_of(graded(run, qrels, "RR"))
    assert isinstance(found, Ties)
    assert (found.low, found.high) == pytest.approx(((1 / 3 + 1) / 2, (1 / 2 + 1) / 2))
