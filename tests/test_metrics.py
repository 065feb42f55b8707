"""The kernels against pytrec_eval and the oracle; the names people type."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import METRICS, Case, cases, graded, trec_eval_scores

from falsify_cli.errors import UsageError
from falsify_cli.metrics import KERNELS, Metric, companion_of, parse_metric

NAMES = st.sampled_from(
    [
        *("nDCG", "AP", "RR"),
        *(f"{family}@{k}" for family in KERNELS for k in range(1, 21)),
        *(f"R@{k}_top1" for k in range(1, 21)),
    ]
)


# ---- scores ----------------------------------------------------------------------


@settings(max_examples=250)
@given(
    case=cases(relevant="abcdefgh9é\ue000\U00010000", unjudged="uvwxyz", least=0),
    metric=NAMES,
    level=st.integers(1, 3),
    top_k=st.none() | st.integers(1, 12),
    cut_early=st.booleans(),
)
def test_the_kernel_scores_every_query_as_pytrec_eval_does(
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
    lists = {query: ref.ranked(run.get(query, {})) for query in qrels}
    theirs = trec_eval_scores(metric, lists, qrels, level, top_k)
    expected = [theirs[query] for query in sorted(qrels)]
    assert grading.scores.tolist() == pytest.approx(expected, abs=1e-12)


@given(
    case=cases(),
    metric=st.sampled_from(METRICS),
    level=st.integers(1, 2),
    top_k=st.none() | st.integers(1, 4),
)
def test_m_scores_every_list_against_every_distinct_gold_set(
    case: Case, metric: str, level: int, top_k: int | None
) -> None:
    matrix = graded(*case, metric, level=level, top_k=top_k).matrix
    sets = ref.distinct_gold_sets(ref.gold_sets(case[1], metric, level))
    found = np.zeros(matrix.shape)
    found[matrix.rows, matrix.columns] = matrix.values
    if not sets:
        assert matrix.shape == (len(case[1]), 0)
        return
    bench = ref.benchmark(*case, metric, level, top_k)
    expected = [[float(bench.cell(q, gold)) for gold in sets] for q in bench.queries]
    assert found == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # list x a b c d; gold a:2 b:1 e:3 (e is not found), d judged -1.
        # DCG@3 = 2/log2(3) + 1/2; ideal@3 = 3 + 2/log2(3) + 1/2.
        pytest.param(
            "nDCG@3",
            (2 / math.log2(3) + 0.5) / (3.5 + 2 / math.log2(3)),
            id="graded, ideal from all judgments",
        ),
        pytest.param("nDCG@1", 0.0, id="nothing at rank 1"),
        pytest.param("AP", (1 / 2 + 2 / 3) / 3, id="precision at ranks 2 and 3"),
        pytest.param("AP@2", (1 / 2) / 3, id="cut before b"),
        pytest.param("RR", 1 / 2, id="first at rank 2"),
        pytest.param("RR@1", 0.0, id="cut before the first"),
        pytest.param("P@10", 2 / 10, id="short list, full denominator"),
        pytest.param("R@2", 1 / 3, id="one of three"),
        pytest.param("Success@1", 0.0, id="no success at 1"),
        pytest.param("Success@2", 1.0, id="success at 2"),
        pytest.param("R@5_top1", 0.0, id="strict: only e counts"),
    ],
)
def test_a_kernel_agrees_with_the_value_worked_by_hand(
    metric: str, expected: float
) -> None:
    run = {"q": {doc: float(-rank) for rank, doc in enumerate("xabcd")}}
    qrels = {"q": {"a": 2, "b": 1, "e": 3, "d": -1}}
    assert graded(run, qrels, metric).score == pytest.approx(expected, abs=1e-15)


def test_ties_go_by_utf8_bytes_descending_and_scores_compare_as_doubles() -> None:
    # U+E000 is EE 80 80 in UTF-8 and U+10000 is F0 90 80 80; UTF-16 turns them round.
    run = {"q": {"\ue000": 1.0, "\U00010000": 1.0}}
    assert graded(run, {"q": {"\U00010000": 1}}, "RR").score == 1.0
    # One double apart, the same 32-bit float; "z" would win a tie.
    run = {"q": {"z": 1.0, "a": 1.0 + 2**-52}}
    assert graded(run, {"q": {"a": 1}}, "RR").score == 1.0
    assert graded({"q": {"9": 0.0, "10": -0.0}}, {"q": {"9": 1}}, "RR").score == 1.0


def test_the_mean_is_over_all_judged_queries() -> None:
    # q1 scores 1, q2 is not answered, q3 has nothing relevant, q9 is not judged.
    run = {"q1": {"a": 1.0}, "q3": {"a": 1.0}, "q9": {"a": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}}
    grading = graded(run, qrels, "P@1")
    assert grading.scores.tolist() == [1.0, 0.0, 0.0]
    assert grading.score == pytest.approx(1 / 3, abs=1e-15)


def test_a_cut_list_leaves_the_ideal_as_it_is() -> None:
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 1}}
    ideal = 1 + 1 / math.log2(3)
    cut = graded(run, qrels, "nDCG@10", top_k=1)
    assert cut.score == pytest.approx(1 / ideal, abs=1e-15)


# ---- names -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "typed"),
    [
        pytest.param("nDCG@10", ("ndcg_cut_10", "ndcg_cut.10", "ndcg@10"), id="nDCG@k"),
        pytest.param("nDCG", ("ndcg", "NDCG", " nDCG "), id="nDCG"),
        pytest.param("AP@5", ("map_cut_5", "map_cut.5", "map@5", "ap@5"), id="AP@k"),
        pytest.param("AP", ("map", "ap", "MAP"), id="AP"),
        pytest.param("RR@10", ("mrr@10", "rr@10", "MRR@10"), id="RR@k"),
        pytest.param("RR", ("recip_rank", "mrr"), id="RR"),
        pytest.param("P@5", ("P_5", "P.5", "precision@5", "p@5"), id="P@k"),
        pytest.param("R@100", ("recall_100", "recall.100", "recall@100"), id="R@k"),
        pytest.param("Success@1", ("success_1", "hit_rate@1", "hit@1"), id="Success@k"),
        pytest.param("R@10_top1", ("recall@10_top1", "r@10_top1"), id="strict"),
        pytest.param("bpref", ("BPREF",), id="bpref"),
        pytest.param("Rprec", ("rprec", "r_precision"), id="Rprec"),
        pytest.param("infAP", ("infap",), id="infAP"),
    ],
)
def test_a_metric_answers_to_its_names_in_every_dialect(
    printed: str, typed: tuple[str, ...]
) -> None:
    assert {name: parse_metric(name).name for name in (printed, *typed)} == (
        dict.fromkeys((printed, *typed), printed)
    )


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("nDCG@7", Metric("nDCG", 7, 2)),
        ("map", Metric("AP", None, 2)),
        ("recall@10_top1", Metric("R", 10, 2, top1=True)),
        ("bpref", Metric("bpref", None, 2)),
        ("iprec_at_recall_0.1", Metric("iprec_at_recall", None, 2, parameter="0.10")),
    ],
)
def test_a_name_and_a_level_make_a_metric(name: str, metric: Metric) -> None:
    assert parse_metric(name, 2) == metric


@pytest.mark.parametrize(
    "name",
    [
        *("num_ret", "num_rel", "num_rel_ret", "num_q", "runid", "relstring"),
        *("relstring_10", "utility", "utility.1,-1,0,0", "G", "gm_map", "gm_bpref"),
    ],
)
def test_counts_sums_and_geometric_means_are_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"counts, sums and geometric means") as caught:
        parse_metric(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("nDCG@0", "expected a cutoff from 1", id="cutoff 0"),
        pytest.param("ndcg_cut.0", "expected a cutoff from 1", id="trec cutoff 0"),
        pytest.param("R@0_top1", "expected a cutoff from 1", id="strict cutoff 0"),
        pytest.param(f"P@{10**30}", "expected a cutoff from 1 to", id="too deep"),
        pytest.param("P", "expected a cutoff; write P@10", id="P without cutoff"),
        pytest.param("recall", "expected a cutoff; write R@10", id="R without cutoff"),
        pytest.param("success", "a cutoff; write Success@10", id="Success without"),
        pytest.param("r_top1", "expected a cutoff; write R@10", id="strict without"),
        pytest.param("ndcg_cut", "a cutoff; write nDCG@10", id="ndcg_cut without"),
        pytest.param("map_cut", "expected a cutoff; write AP@10", id="map_cut without"),
        pytest.param(
            "ndgc@10", "no such metric; did you mean nDCG@10?", id="two swapped"
        ),
        pytest.param("ndcg10", "did you mean nDCG@10?", id="no sign before the cutoff"),
        pytest.param("nDCG@10,RR", "give -m once for each", id="two in one"),
        pytest.param("precsion", "did you mean P@10?", id="one that needs a cutoff"),
        pytest.param("mrrr", "did you mean RR?", id="one that needs none"),
        pytest.param("recal_100", "did you mean R@100?", id="one letter short"),
        pytest.param("recip_rnk", "did you mean RR?", id="one letter lost"),
        pytest.param("bperf", "did you mean bpref?", id="other measure mistyped"),
        pytest.param("zzzzzz", "no such metric; see", id="like nothing"),
        pytest.param("nDCG@-1", "no such metric", id="negative cutoff"),
        pytest.param("nDCG@1.5", "did you mean nDCG?", id="half a cutoff"),
        pytest.param("nDCG@", "no such metric", id="at nothing"),
        pytest.param("", "no such metric", id="nothing"),
        pytest.param("iprec_at_recall", "iprec_at_recall_0.10", id="no recall level"),
        pytest.param("Rprec@10", "expected Rprec, say", id="a cutoff it cannot have"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_what_would(
    name: str, fault: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_metric(name)
    assert repr(name) in str(caught.value)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "companion"),
    [("nDCG@5", "R@5_top1"), ("AP", "R@10_top1"), ("P@3", "R@3_top1")],
)
def test_the_companion_keeps_cutoff_and_level(metric: str, companion: str) -> None:
    found = companion_of(parse_metric(metric, 2), default_cutoff=10)
    assert found == replace(parse_metric(companion), level=2)
