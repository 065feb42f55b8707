"""Inspection: numbers by hand, the best constant list by brute force, real power."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_controls import (
    ASKED,
    MANY,
    MODULE,
    NAME,
    ONE,
    TINY,
    Qrels,
    ground,
    run,
    single_answers,
)
from tiny import trec_eval_scores

from falsify_cli import gate
from falsify_cli.errors import InputError, UsageError
from falsify_cli.inspection import Inspection, best_constant_list, inspect
from falsify_cli.metrics import KERNELS
from falsify_cli.power import _chance_of_at_least, least_gap, queries_for
from falsify_cli.report import inspection_table
from falsify_cli.report.table import Look
from falsify_cli.verdict import Verdict


def inspected(qrels: Qrels | Path, metric: str = "nDCG@10", **asked: Any) -> Inspection:
    return inspect(ground(qrels, metric, **asked))


# ---- counts -----------------------------------------------------------------------


def test_the_counts_of_a_tiny_benchmark() -> None:
    found = inspected(TINY)
    judged, relevant, labels = found.judged, found.relevant, found.labels
    assert [judged.mean, relevant.mean] == pytest.approx([7 / 3, 4 / 3])
    assert (judged.least, judged.most, relevant.least, relevant.most) == (1, 4, 0, 2)
    assert found.grades == {-1: 1, 0: 2, 1: 2, 2: 1, 3: 1}
    assert (labels.sets, labels.sharing, labels.count) == (2, 1, 3)
    # c is relevant to both queries that have relevant documents; the weights are
    # 2/4, 1/4, 1/4, and 1 / (4/16 + 1/16 + 1/16) = 8/3.
    assert (labels.commonest, labels.share) == ("c", 1.0)
    assert labels.effective == pytest.approx(8 / 3)
    assert found.facts.queries_without_relevant == 1


def test_counts_follow_the_level_and_the_metric() -> None:
    # From grade 2: c for q1, e for q3.
    found = inspected(TINY, "AP", rel_level=2)
    assert [found.relevant.mean, found.labels.count] == pytest.approx([2 / 3, 2])
    top = inspected(TINY, "R@5_top1")
    assert (top.labels.count, top.labels.share) == (2, 0.5)
    assert top.relevant.most == 2


# ---- constant and random lists ----------------------------------------------------

METRICS = ("nDCG@2", "P@2", "R@2", "nDCG", "AP", "AP@2", "RR", "RR@2", "Success@2")

small_qrels = st.dictionaries(
    st.sampled_from([f"q{i}" for i in range(5)]),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1),
    min_size=1,
).filter(lambda qrels: any(g > 0 for row in qrels.values() for g in row.values()))


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=25)
@given(qrels=small_qrels)
def test_no_constant_list_beats_the_best_one(metric: str, qrels: Qrels) -> None:
    one = ground(qrels, metric)
    codes, found = best_constant_list(one.gold, one.metric, one.metric.cutoff or 10)

    def score(documents: Iterable[str]) -> float:
        lists = {query: list(documents) for query in qrels}
        return sum(trec_eval_scores(metric, lists, qrels).values())

    assert found == pytest.approx(score(one.universe.names(codes)))
    best = max(map(score, permutations("abcd")))
    if KERNELS[one.metric.measure].linear:
        assert found == pytest.approx(best)
    else:
        assert (1 - 1 / np.e) * best <= found <= best + 1e-9


def test_greedy_is_said_where_it_is() -> None:
    exact = {metric: inspected(TINY, metric).constant for metric in METRICS}
    assert [m for m, c in exact.items() if c and c.exact] == [
        *("nDCG@2", "P@2", "R@2", "nDCG")
    ]
    assert inspected(TINY, "bpref").constant is None
    assert "not known for this measure" in inspection_table.render(
        inspected(TINY, "bpref")
    )


def test_equal_gold_sets_count_as_often_as_they_are_asked_for() -> None:
    # b answers three queries of one kind, a two of different kinds.
    qrels = {
        **{f"q{i}": {"b": 1} for i in range(3)},
        "q8": {"a": 1, "x": 1},
        "q9": {"a": 1, "y": 1},
    }
    one = ground(qrels, "P@1")
    codes, total = best_constant_list(one.gold, one.metric, 1)
    assert (one.universe.names(codes), total) == (["b"], 3.0)


def test_the_popular_fixture_is_the_best_constant_list() -> None:
    # fixtures/README.md: popular.run scores 0.3405 by pytrec_eval.
    found = inspected(MODULE).constant
    assert found is not None
    assert f"{found.score:.4f}" == "0.3405"


def test_random_retrieval_by_hand() -> None:
    # A random document of 10 is one of 2, 0 or 2 relevant ones.
    assert inspected(TINY, "P@1", corpus=10).random == pytest.approx(4 / 30)
    # Without a corpus there are the five documents judged.
    assert inspected(TINY, "P@1").random == pytest.approx(4 / 15)


# ---- power ------------------------------------------------------------------------


@given(
    count=st.integers(1, 400), least=st.integers(0, 400), share=st.floats(0.001, 0.999)
)
def test_the_binomial_tail_is_that_of_scipy(
    count: int, least: int, share: float
) -> None:
    least = min(least, count)
    expected = stats.binom.sf(least - 1, count, share)
    assert _chance_of_at_least(least, count, share) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("count", [40, 80, 200])
@pytest.mark.parametrize("best", [0.5, 1.0])
def test_least_gap_and_number_of_queries_are_each_others_inverse(
    count: int, best: float
) -> None:
    gap = least_gap(count, best, ASKED)
    assert gap is not None
    needed = queries_for(gap, best, ASKED.tau, ASKED.alpha)
    assert needed is not None
    # One is exact for the imagined system; the other an approximation, and rounded.
    assert 0.65 * count <= needed <= 1.5 * count


def test_more_queries_see_smaller_gaps() -> None:
    gaps = [least_gap(count, 1.0, ASKED) for count in (20, 50, 100, 400)]
    assert None not in gaps
    assert gaps == sorted(gaps, key=lambda gap: -(gap or 0))


@pytest.mark.parametrize(
    ("gap", "best"), [(0.4, 0.3), (0.1, 0.0), (0.1, -0.2), (0.052, 1.0)]
)
def test_a_gap_that_cannot_be_or_be_seen_has_no_number(gap: float, best: float) -> None:
    assert queries_for(gap, best, 0.05, 0.05) is None


@pytest.mark.parametrize("count", [3, 7])
def test_too_few_queries_see_no_gap(count: int) -> None:
    assert least_gap(count, 1.0, ASKED) is None


@pytest.mark.parametrize("count", [40, 90])
def test_a_system_of_the_least_gap_passes_in_four_of_five_cases(count: int) -> None:
    # The real gate on real lists: a query gets its answer, or nothing.
    qrels = single_answers(count)
    found = inspected(qrels, "RR", corpus=100_000)
    assert found.least_gap is not None
    share = found.least_gap / min(n.delta for n in found.ideal.nulls.values())
    rng = np.random.default_rng([count, 1])
    passed = 0
    for _ in range(50):
        answered = rng.random(count) < share
        run = {
            query: {next(iter(row)) if good else "x": 1.0}
            for (query, row), good in zip(qrels.items(), answered, strict=True)
        }
        judgement = gate(run, qrels, "RR", n_boot=200, corpus=100_000)
        passed += judgement.verdict is Verdict.PASS
    # 40 of 50 expected; four standard errors are 11.
    assert 29 <= passed <= 49


def test_groups_count_as_one_query_each(tmp_path: Path) -> None:
    qrels = single_answers(120)
    (tmp_path / "groups").write_text(
        "".join(f"{query} {i % 60}\n" for i, query in enumerate(qrels))
    )
    grouped = inspected(qrels, group=str(tmp_path / "groups"), corpus=10_000)
    sixty = inspected(single_answers(60), corpus=10_000)
    assert grouped.units == (60, "groups")
    assert grouped.least_gap == pytest.approx(sixty.least_gap, abs=0.01)


# ---- warnings and notices ---------------------------------------------------------

TWO_ANSWERS = {f"q{i:02}": {f"a{i // 2}": 1, f"b{i // 2}": 1} for i in range(40)}


@pytest.mark.parametrize(
    ("qrels", "words"),
    [
        pytest.param(single_answers(39), ["39 queries, fewer than 40"], id="few"),
        pytest.param(single_answers(40), [], id="enough"),
        pytest.param(
            {f"q{i:02}": {f"d{i}-{j}": 1 for j in range(6)} for i in range(40)},
            ["6.0 relevant documents a query, more than 5", "-m R@10_top1"],
            id="many relevant",
        ),
        pytest.param(
            {f"q{i:02}": {"a": 1} for i in range(40)}, ["One gold set"], id="one set"
        ),
        pytest.param(
            {f"q{i:02}": {"a" if i < 13 else f"d{i}": 1} for i in range(40)},
            ["a is relevant to 32% of the queries"],
            id="a common label",
        ),
        pytest.param(TWO_ANSWERS, ["if these are paraphrases"], id="paraphrases"),
    ],
)
def test_what_makes_a_weak_witness_is_said(qrels: Qrels, words: list[str]) -> None:
    found = inspected(qrels)
    assert len(found.warnings) == bool(words)
    assert all(word in found.warnings[0] for word in words)
    assert not set(found.warnings) & set(found.notices)


def test_groups_silence_the_warning_of_paraphrases(tmp_path: Path) -> None:
    (tmp_path / "groups").write_text(
        "".join(f"{query} {i // 2}\n" for i, query in enumerate(TWO_ANSWERS))
    )
    (warning,) = inspected(TWO_ANSWERS, group=str(tmp_path / "groups")).warnings
    assert warning.startswith("20 groups of queries, fewer than 40")


def test_coinciding_nulls_are_named() -> None:
    notices = " ".join(inspected(single_answers(50)).notices)
    assert "All gold sets are distinct: B expects the same as A." in notices
    assert "One relevant document a query: D expects the same as A." in notices


def test_one_gold_set_lets_nothing_pass() -> None:
    found = inspected({f"q{i:02}": {"a": 1} for i in range(50)}, corpus=1000)
    assert found.ideal.verdict is Verdict.UNDER_NS
    assert found.least_gap is None
    assert set(found.queries_for.values()) == {None}
    text = " ".join(inspection_table.render(found).split())
    assert "A, B and D say nothing here" in text
    assert "no system is sure enough to pass" in text


# ---- reports and the command ------------------------------------------------------


@pytest.mark.parametrize("qrels", [ONE, MODULE, MANY, TINY, TWO_ANSWERS])
@pytest.mark.parametrize("ascii", [False, True])
def test_a_report_is_80_columns_wide(qrels: Qrels | Path, ascii: bool) -> None:
    text = inspection_table.render(inspected(qrels), Look(ascii=ascii))
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii() or not ascii


def test_a_long_and_wicked_id_stays_within_its_line() -> None:
    wicked = f"\x1b[31m{'x' * 200}"
    text = inspection_table.render(inspected({"q": {wicked: 1}, "r": {"a": 1}}))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_prints_a_table() -> None:
    done = run("inspect", NAME)
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(
        line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line
    )
    assert rows["constant list"].split()[0] == "0.3405"
    assert rows["random lists"].split()[0] == "0.0857"
    assert rows["gold sets"].strip() == "53 distinct, one shared by 22 queries"


def test_the_command_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    text = MODULE.read_text()
    done = run("inspect", "-", "--format", "json", "-o", file, stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = json.loads(file.read_text())
    assert found["schema"] == "falsify.inspection/1"
    assert found["labels"]["commonest"] == "os"
    assert found["grades"] == {"1": 120}
    assert found["scores"]["random"] == pytest.approx(0.0857, abs=5e-5)
    assert len(found["scores"]["constant"]["documents"]) == 10
    assert found["power"]["queries_for"]["0.2"] == 80


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["inspect"], "QRELS"),
        (["inspect", "no.txt"], "no.txt: cannot be opened"),
        (["inspect", NAME, "-l", "2", "-m", "AP"], "expected a relevant document"),
        (["inspect", NAME, "--corpus", "52"], "at least the 53 documents"),
        (["inspect", NAME, "--group", NAME], "expected a query id"),
        (["inspect", NAME, "-o", NAME], "is the input"),
        (["inspect", "-", "--group", "-"], "expected one file from it"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], fragment: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert fragment in done.stderr


def test_qrels_without_a_relevant_document_are_refused() -> None:
    with pytest.raises(InputError, match="found none of grade 1 or more"):
        inspected({"q": {"d": 0}})
    with pytest.raises(UsageError, match="tau: expected"):
        inspected(TINY, tau=1.5)


@pytest.mark.shared
def test_a_real_benchmark_by_its_own_table() -> None:
    # data/README.md: dl19 has 95.4 relevant documents a query, in 43 queries.
    found = inspected(SHARED / "data/small/dl19/qrels.txt")
    assert (found.facts.queries_judged, f"{found.relevant.mean:.1f}") == (43, "95.4")
    assert found.ideal.verdict is Verdict.PASS
    assert found.least_gap == pytest.approx(0.3, abs=0.05)
