"""What a metric takes as gold, and which queries share a gold set."""

from __future__ import annotations

import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from tiny import METRICS, Case, Qrels, cases, graded, joined

from falsify_cli.gold import Gold, gold_of
from falsify_cli.nulls import capped_queries
from falsify_cli.nulls.marginals import label_counts

# Grades of every kind; q5 has nothing relevant, q6 nothing but a negative grade.
QRELS: Qrels = {
    "q1": {"b": 3, "c": 3, "a": 1, "d": 0},
    "q2": {"b": 1, "c": 1, "a": 2},
    "q3": {"a": 1, "b": 2, "c": 2},
    "q4": {"d": 2},
    "q5": {"a": 0},
    "q6": {"a": -2},
}


def gold_sets(
    qrels: Qrels, *, level: int = 1, graded: bool = False, top1: bool = False
) -> list[dict[str, float]]:
    """Every query's gold set as the program sees it, read back by ids."""
    judgments = joined({next(iter(qrels)): {"x": 1.0}}, qrels).judgments
    gold = gold_of(judgments, level=level, graded=graded, top1=top1)
    return [
        items_of(gold, int(s), judgments.vocabulary.ids.to_list()) for s in gold.sets
    ]


def items_of(gold: Gold, number: int, ids: list[str]) -> dict[str, float]:
    if number < 0:
        return {}
    rows = range(gold.starts[number], gold.starts[number + 1])
    return {ids[gold.documents[row]]: float(gold.grades[row]) for row in rows}


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(1, ["abc", "abc", "abc", "d", "", ""], id="level 1"),
        pytest.param(2, ["bc", "a", "bc", "d", "", ""], id="level 2"),
        pytest.param(3, ["bc", "", "", "", "", ""], id="level 3"),
        pytest.param(4, ["", "", "", "", "", ""], id="above every grade"),
    ],
)
def test_gold_is_every_document_of_at_least_the_level_with_gain_1(
    level: int, expected: list[str]
) -> None:
    wanted = [dict.fromkeys(documents, 1.0) for documents in expected]
    assert gold_sets(QRELS, level=level) == wanted


def test_graded_gold_keeps_the_grade_as_the_gain() -> None:
    assert gold_sets(QRELS, graded=True) == [
        {"a": 1, "b": 3, "c": 3},
        {"a": 2, "b": 1, "c": 1},
        {"a": 1, "b": 2, "c": 2},
        {"d": 2},
        {},
        {},
    ]


@pytest.mark.parametrize(
    ("judged", "level", "expected"),
    [
        pytest.param({"c": 2, "b": 2, "a": 1}, 1, "b", id="best grade, smallest id"),
        pytest.param({"10": 1, "9": 1}, 1, "10", id="as bytes, not as a number"),
        pytest.param({"é": 3, "z": 3}, 1, "z", id="as UTF-8 bytes"),
        pytest.param({"a": 1, "b": 2}, 2, "b", id="at the level"),
        pytest.param({"a": 1, "b": 1}, 2, "", id="nothing of the level"),
    ],
)
def test_strict_gold_is_the_one_best_document(
    judged: dict[str, int], level: int, expected: str
) -> None:
    wanted = {expected: 1.0} if expected else {}
    assert gold_sets({"q": judged}, level=level, top1=True) == [wanted]


def test_sets_that_differ_only_in_grades_are_one_set_to_a_metric_without_grades() -> (
    None
):
    judgments = joined({"q1": {"a": 1.0}}, QRELS).judgments
    binary, graded = gold_of(judgments), gold_of(judgments, graded=True)
    assert binary.sets.tolist() == [0, 0, 0, 1, -1, -1]
    assert binary.multiplicities.tolist() == [3, 1]
    assert not binary.mixed.any()
    # Sorted by content: (a, 1) (b, 2) before (a, 1) (b, 3) before (a, 2).
    assert graded.sets.tolist() == [1, 2, 0, 3, -1, -1]
    assert graded.multiplicities.tolist() == [1, 1, 1, 1]
    assert graded.mixed.tolist() == [True, True, True, False]
    assert graded.query_sizes.tolist() == [3, 3, 3, 1, 0, 0]


def test_a_set_comes_before_the_longer_one_that_begins_with_it() -> None:
    qrels: Qrels = {"q1": {"a": 1, "b": 1}, "q2": {"b": 1}, "q3": {"a": 1}}
    gold = gold_of(joined({"q1": {"a": 1.0}}, qrels).judgments)
    assert gold.sets.tolist() == [1, 2, 0]
    assert gold.sizes.tolist() == [1, 2, 1]
    assert gold.owners.tolist() == [0, 1, 1, 2]


@given(
    case=cases(queries=6, relevant="abcé9", least=0),
    metric=st.sampled_from(METRICS),
    level=st.integers(1, 3),
)
def test_gold_sets_their_order_and_their_queries_agree_with_the_oracle(
    case: Case, metric: str, level: int
) -> None:
    grading = graded(*case, metric, level=level)
    ids = joined(*case).judgments.vocabulary.ids.to_list()
    expected = ref.gold_sets(case[1], metric, level)
    gold = grading.gold
    distinct = ref.distinct_gold_sets(expected)
    assert [items_of(gold, u, ids) for u in range(len(gold.sizes))] == distinct
    assert [items_of(gold, int(s), ids) for s in gold.sets] == list(expected.values())


@given(case=cases(queries=6), metric=st.sampled_from(METRICS))
def test_label_weights_and_capped_queries_agree_with_the_oracle(
    case: Case, metric: str
) -> None:
    gold = graded(*case, metric).gold
    golds = ref.gold_sets(case[1], metric)
    ids = joined(*case).judgments.vocabulary.ids.to_list()
    documents, counts = label_counts(gold)
    weights = counts / counts.sum()
    found = {ids[d]: w for d, w in zip(documents.tolist(), weights, strict=True)}
    expected = {doc: float(w) for doc, w in ref.label_weights(golds).items()}
    assert found == pytest.approx(expected, abs=1e-15)
    assert capped_queries(gold) == len(ref.capped_queries(golds))
