"""The four nulls against full enumeration: expectations, draws, streams, blocks."""

# The nulls are called A, B, C and D everywhere, so test names carry these letters.
# ruff: noqa: N802

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations as orders
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
import reference as ref
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny import METRICS, Case, Qrels, Run, cases, graded, random_case

from falsify_cli import defaults
from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.nulls import (
    Null,
    _check,
    draws,
    marginals,
    null_models,
    p_value,
    random_lists,
    relabelled,
)
from falsify_cli.nulls.draws import permutations, stream
from falsify_cli.nulls.random_lists import Trials, different_numbers, hypergeometric

stats: Any = pytest.importorskip("scipy.stats")


def permuted(grading: Grading, n_boot: int, seed: int) -> Null:
    return relabelled.permuted([grading], n_boot, seed)[0]


def uniform(grading: Grading, n_boot: int, seed: int) -> Null:
    return relabelled.uniform([grading], n_boot, seed)[0]


def retrieved_at_random(grading: Grading, n_boot: int, seed: int) -> Null:
    return random_lists.retrieved_at_random([grading], n_boot, seed)[0]


def matched(grading: Grading, n_boot: int, seed: int) -> Null:
    return marginals.matched([grading], n_boot, seed)[0]


BUILDERS = {"A": permuted, "B": uniform, "C": retrieved_at_random, "D": matched}
# Metrics under which D has no closed form on several gold documents a query.
NOT_LINEAR = ("AP", "AP@2", "RR", "RR@2", "Success@2")


# ---- named benchmarks ------------------------------------------------------------

# Several graded documents a query, one query not answered.
GRADED: Case = (
    {"q1": {"a": 3.0, "x": 2.0, "b": 1.0}, "q2": {"c": 2.0, "b": 1.0}},
    {"q1": {"a": 3, "b": 1}, "q2": {"b": 2, "c": 1, "d": 0}, "q3": {"a": 1, "d": 2}},
)
# Two queries share a gold set, one has none and one an unjudged list.
SHARED_AND_EMPTY: Case = (
    {
        "q1": {"a": 2.0, "b": 1.0},
        "q2": {"b": 2.0, "x": 1.0},
        "q3": {"a": 2.0, "c": 1.0},
        "q4": {"y": 1.0},
    },
    {"q1": {"a": 1, "b": 1}, "q2": {"a": 1, "b": 1}, "q3": {"a": 0}, "q4": {"c": 1}},
)
# One gold document a query, a popular one among them.
SINGLES: Case = (
    {
        "q1": {"a": 2.0, "b": 1.0},
        "q2": {"c": 2.0, "a": 1.0},
        "q3": {"b": 2.0, "a": 1.0},
        "q4": {"a": 1.0},
    },
    {"q1": {"a": 1}, "q2": {"a": 2}, "q3": {"b": 1}, "q4": {"c": 3}},
)
# "a" is gold everywhere: w = 3/7, and a query with three labels would draw it 9/7
# times.
CAPPED: Case = (
    {"q1": {"a": 2.0, "d": 1.0}, "q2": {"a": 1.0}, "q3": {"b": 2.0, "c": 1.0}},
    {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 1}, "q3": {"a": 1, "c": 3, "d": 1}},
)
BENCHMARKS = [
    pytest.param(GRADED, id="graded"),
    pytest.param(SHARED_AND_EMPTY, id="shared and empty gold"),
    pytest.param(SINGLES, id="one gold document a query"),
    pytest.param(CAPPED, id="capped"),
]


def corpus_of(case: Case, more: int = 0) -> int:
    """The number of documents in run and qrels, and so many more."""
    return len({doc for rows in case for row in rows.values() for doc in row}) + more


# ---- enumeration -----------------------------------------------------------------

# What a random score can be, and how likely that is.
Atoms: TypeAlias = dict[float, float]


def merged(outcomes: Iterable[tuple[float, float]]) -> Atoms:
    """Add up the chances of equal scores; equal is within a rounding error."""
    atoms: Atoms = {}
    last = -math.inf
    for score, chance in sorted(outcomes):
        if score - last > 1e-9:
            last = score
            atoms[last] = 0.0
        atoms[last] += chance
    return atoms


def atoms_of(scores: Sequence[ref.Number]) -> Atoms:
    """Equally likely outcomes, gathered."""
    return merged((float(score), 1 / len(scores)) for score in scores)


def mean_atoms(queries: Sequence[Atoms]) -> Atoms:
    """The mean over independent queries."""
    total: Atoms = {0.0: 1.0}
    for query in queries:
        total = merged(
            (before + score / len(queries), chance * more)
            for (before, chance), (score, more) in product(total.items(), query.items())
        )
    return total


def mixed_atoms(parts: Sequence[Atoms]) -> Atoms:
    """One of several, each as likely."""
    return merged(
        (score, chance / len(parts)) for part in parts for score, chance in part.items()
    )


def query_atoms_C(bench: ref.Benchmark, query: str, corpus: int) -> Atoms:
    """Every ordered list of K of the corpus."""
    gold = bench.golds[query]
    documents = [*gold, *(f"not gold {i}" for i in range(corpus - len(gold)))]
    depth = min(ref.list_length_C(bench, query), corpus)
    return atoms_of(
        [
            ref.score_labels(bench.metric, drawn, gold, gold)
            for drawn in orders(documents, depth)
        ]
    )


def query_atoms_D(bench: ref.Benchmark, query: str, order: Sequence[str]) -> Atoms:
    """Every u and v of one query, in one order of the labels."""
    gold, ranking = bench.golds[query], bench.rankings[query]
    weights, grades = ref.label_weights(bench.golds), list(gold.values())
    if not gold:
        return {0.0: 1.0}
    outcomes: list[tuple[float, float]] = []
    for left, right in ref.pieces_of_u(order, weights, len(gold)):
        for v in range(len(gold)):
            labels = ref.labels_drawn(order, weights, grades, (left + right) / 2, v)
            score = float(ref.score_labels(bench.metric, ranking, labels, gold))
            outcomes.append((score, float(right - left) / len(gold)))
    return merged(outcomes)


def atoms_A(bench: ref.Benchmark, corpus: int) -> Atoms:
    return atoms_of(ref.null_scores_A(bench))


def atoms_B(bench: ref.Benchmark, corpus: int) -> Atoms:
    return atoms_of(ref.null_scores_B(bench))


def atoms_C(bench: ref.Benchmark, corpus: int) -> Atoms:
    return mean_atoms([query_atoms_C(bench, query, corpus) for query in bench.queries])


def atoms_D(bench: ref.Benchmark, corpus: int) -> Atoms:
    """Queries are independent in one order of the labels, which they share."""
    return mixed_atoms(
        [
            mean_atoms([query_atoms_D(bench, query, order) for query in bench.queries])
            for order in orders(ref.label_weights(bench.golds))
        ]
    )


ATOMS: dict[str, Callable[[ref.Benchmark, int], Atoms]] = {
    "A": atoms_A,
    "B": atoms_B,
    "C": atoms_C,
    "D": atoms_D,
}


def mean_of(atoms: Atoms) -> float:
    return math.fsum(score * chance for score, chance in atoms.items())


def variance_of(atoms: Atoms) -> float:
    mean = mean_of(atoms)
    return math.fsum((score - mean) ** 2 * p for score, p in atoms.items())


def assert_frequencies(observed: Sequence[float], expected: Sequence[float]) -> None:
    """Chi-square, outcomes expected fewer than five times thrown together."""
    pairs = sorted(zip(expected, observed, strict=True))
    rare = [pair for pair in pairs if pair[0] < 5]
    cells = [pair for pair in pairs if pair[0] >= 5]
    if rare:
        cells.append((sum(e for e, _ in rare), sum(o for _, o in rare)))
    if len(cells) < 2:
        assert cells[0][0] == pytest.approx(cells[0][1])
        return
    wanted, found = zip(*cells, strict=True)
    assert stats.chisquare(found, wanted).pvalue > 1e-4, cells


# ---- expectations ----------------------------------------------------------------


@settings(max_examples=150)
@given(
    case=cases(relevant="abc", unjudged="x"),
    metric=st.sampled_from([*METRICS, "P@9"]),
    level=st.integers(1, 2),
    top_k=st.none() | st.integers(1, 4),
    more=st.integers(0, 2),
)
def test_A_B_and_C_expect_what_enumeration_says_of_every_query(
    case: Case, metric: str, level: int, top_k: int | None, more: int
) -> None:
    corpus = corpus_of(case, more)
    grading = graded(*case, metric, level=level, top_k=top_k, corpus=corpus)
    if not len(grading.gold.sizes):
        return
    bench = ref.benchmark(*case, metric, level, top_k)
    wanted = {
        "A": ref.query_means_A(bench),
        "B": ref.query_means_B(bench),
        "C": ref.query_means_C(bench, corpus),
    }
    for null in null_models(grading, 200, 1)[:3]:
        expected = [float(value) for value in wanted[null.letter].values()]
        assert null.of_query.tolist() == pytest.approx(expected, abs=1e-9), null.letter
        assert null.expected == pytest.approx(np.mean(expected), abs=1e-9)
        assert null.exact
        assert null.standard_error == 0
    joint = ref.expected_A(*case, metric, level, top_k)
    assert null_models(grading, 200, 1)[0].expected == pytest.approx(joint, abs=1e-9)


@settings(max_examples=60)
@given(
    case=cases(),
    metric=st.sampled_from(METRICS),
    level=st.integers(1, 2),
    top_k=st.none() | st.integers(1, 3),
)
@example(case=CAPPED, metric="AP", level=1, top_k=None)
@example(case=CAPPED, metric="nDCG", level=1, top_k=None)
def test_D_expects_what_enumeration_says_of_every_query(
    case: Case, metric: str, level: int, top_k: int | None
) -> None:
    grading = graded(*case, metric, level=level, top_k=top_k)
    if not len(grading.gold.sizes):
        return
    bench = ref.benchmark(*case, metric, level, top_k)
    null = matched(grading, 1000, 1)
    single = all(len(gold) <= 1 for gold in bench.golds.values())
    assert null.exact == (single or metric not in NOT_LINEAR)
    for found, query in zip(null.of_query.tolist(), bench.queries, strict=True):
        atoms = mixed_atoms(
            [
                query_atoms_D(bench, query, order)
                for order in orders(ref.label_weights(bench.golds))
            ]
        )
        error = 0.0 if null.exact else 6 * math.sqrt(variance_of(atoms) / 1000)
        assert found == pytest.approx(mean_of(atoms), abs=error + 1e-9), query
    assert null.expected == pytest.approx(null.of_query.mean(), abs=1e-12)
    if not null.exact:
        # What the draws say of the mean and of its error is what the report prints.
        assert null.expected == pytest.approx(null.draws_mean, abs=1e-12)
        spread = float(null.draws.std(ddof=1))
        assert null.standard_error == pytest.approx(spread / math.sqrt(1000), abs=1e-12)


def test_D_agrees_with_a_capped_case_worked_by_hand() -> None:
    # Memberships a, a, b: w_a = 2/3, so q1 (g = 2) has g w_a = 4/3, capped to 1, and
    # b is drawn with chance 2/3. R@1 of the list a: q1 1/2 for sure; q2 2/3.
    qrels: Qrels = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
    run: Run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    of_query = matched(graded(run, qrels, "R@1"), 200, 0).of_query
    assert of_query.tolist() == pytest.approx([1 / 2, 2 / 3], abs=1e-15)
    run = {"q1": {"b": 1.0}, "q2": {"b": 1.0}}
    of_query = matched(graded(run, qrels, "R@1"), 200, 0).of_query
    assert of_query.tolist() == pytest.approx([1 / 3, 1 / 3], abs=1e-15)


@pytest.mark.parametrize(
    ("run", "top_k", "expected"),
    [
        # q1: a is at rank 1 or 2 with chance 1/4 each, (1 + 1/2)/4 of a corpus of 4;
        # q2 has no list, so length 0.
        pytest.param({"q1": {"x": 2.0, "y": 1.0}}, None, 3 / 16, id="own length"),
        pytest.param({"q1": {"x": 2.0, "y": 1.0}}, 1, 1 / 4, id="given length"),
        pytest.param({"q1": {"x": 2.0}}, 2, 3 / 8, id="given, longer than the list"),
    ],
)
def test_C_takes_each_lists_own_length_where_neither_cutoff_nor_k_is_given(
    run: Run, top_k: int | None, expected: float
) -> None:
    qrels: Qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    grading = graded(run, qrels, "RR", top_k=top_k, corpus=4)
    null = retrieved_at_random(grading, 200, 0)
    assert null.expected == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("metric", METRICS)
def test_a_corpus_of_one_relevant_document_is_always_found(metric: str) -> None:
    grading = graded({"q": {"d": 1.0}}, {"q": {"d": 1}}, metric, corpus=1)
    null = retrieved_at_random(grading, 200, 0)
    # Of two places the second is empty.
    assert null.expected == (0.5 if metric == "P@2" else 1.0)


@pytest.mark.parametrize("metric", ["AP", "nDCG", "RR", "P@2", "R@2", "Success@2"])
def test_a_corpus_of_two_relevant_documents_is_always_found(metric: str) -> None:
    run: Run = {"q": {"d": 1.0, "e": 0.5}}
    grading = graded(run, {"q": {"d": 1, "e": 1}}, metric, corpus=2)
    assert retrieved_at_random(grading, 200, 0).expected == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("metric", [*METRICS, "nDCG@10", "AP@100", "RR@10", "P@100"])
def test_closed_forms_of_C_hold_at_the_size_of_real_collections(metric: str) -> None:
    # 30 relevant among 200,000; the oracle's closed forms are exact fractions.
    gold = {f"d{i}": 1 + i % 3 for i in range(30)}
    run = {"q": {f"x{i}": float(-i) for i in range(100)}}
    null = retrieved_at_random(graded(run, {"q": gold}, metric, corpus=200_000), 200, 0)
    expected = ref.closed_C(run, {"q": gold}, metric, 200_000)
    assert null.expected == pytest.approx(expected, rel=1e-9)


def test_C_without_a_single_hit_in_all_its_draws_scores_0() -> None:
    # Ten lists of one document in a hundred million: a hit has chance 1e-5 in all.
    run: Run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    grading = graded(run, {"q1": {"a": 1}, "q2": {"b": 1}}, "P@1", corpus=10**8)
    null = retrieved_at_random(grading, 500, 0)
    assert not null.draws.any()
    assert null.expected == pytest.approx(1e-8, rel=1e-12)


# ---- differences -----------------------------------------------------------------


@settings(max_examples=150)
@given(
    case=cases(relevant="abc"),
    metric=st.sampled_from(METRICS),
    level=st.integers(1, 2),
    top_k=st.none() | st.integers(1, 3),
)
def test_differences_are_the_oracles_and_average_to_the_gap(
    case: Case, metric: str, level: int, top_k: int | None
) -> None:
    corpus = corpus_of(case)
    grading = graded(*case, metric, level=level, top_k=top_k)
    if not len(grading.gold.sizes):
        return
    for null in null_models(grading, 200, 1):
        gap = grading.score - null.expected
        assert null.differences.mean() == pytest.approx(gap, abs=1e-12), null.letter
        if null.exact:
            expected = ref.differences(
                *case, metric, null.letter, level, top_k, corpus_size=corpus
            )
            wanted = list(expected.values())
            assert null.differences.tolist() == pytest.approx(wanted, abs=1e-9)
        else:
            rest = grading.scores - null.of_query
            assert null.differences.tolist() == pytest.approx(rest.tolist(), abs=1e-12)


def test_differences_agree_with_values_worked_by_hand() -> None:
    # Lists a, a, b against gold a, a, b: M = [[1,1,0],[1,1,0],[0,0,1]], grand 5/9.
    run: Run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}, "q3": {"b": 1.0}}
    qrels: Qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"b": 1}}
    a, b, c, d = null_models(graded(run, qrels, "P@1", corpus=4), 200, 0)
    # A: 1 - 2/3 - (2/3 - 5/9) = 2/9 twice; 1 - 1/3 - (1/3 - 5/9) = 8/9.
    assert a.differences.tolist() == pytest.approx([2 / 9, 2 / 9, 8 / 9])
    assert d.differences.tolist() == pytest.approx([2 / 9, 2 / 9, 8 / 9])
    # B: w = 1/4, 1/4, 1/2; r = 1/2; c = 2/3, 2/3, 1/3; g_B = 1/2.
    # 1 - 1/2 - 3/4 (1/6) = 3/8 twice; 1 - 1/2 - 3/2 (-1/6) = 3/4.
    assert b.differences.tolist() == pytest.approx([3 / 8, 3 / 8, 3 / 4])
    assert c.differences.tolist() == pytest.approx([3 / 4] * 3)


@pytest.mark.parametrize("metric", METRICS)
def test_one_list_for_all_queries_has_no_gap_to_A(metric: str) -> None:
    run = {query: {"a": 2.0, "b": 1.0} for query in GRADED[1]}
    grading = graded(run, GRADED[1], metric)
    null = permuted(grading, 200, 0)
    assert null.expected == pytest.approx(grading.score, abs=1e-12)
    assert p_value(null, grading.score) == 1.0


# ---- draws -----------------------------------------------------------------------


@pytest.mark.parametrize("letter", BUILDERS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("case", BENCHMARKS)
def test_draws_have_the_whole_distribution_of_the_definition(
    case: Case, metric: str, letter: str
) -> None:
    corpus, n = corpus_of(case), 4000
    bench = ref.benchmark(*case, metric)
    atoms = ATOMS[letter](bench, corpus)
    drawn = BUILDERS[letter](graded(*case, metric, corpus=corpus), n, 1).draws
    possible = np.array(sorted(atoms))
    place = np.abs(drawn[:, None] - possible).argmin(axis=1)
    assert drawn == pytest.approx(possible[place], abs=1e-9)
    observed = np.bincount(place, minlength=len(possible))
    assert_frequencies(
        observed.tolist(), [n * atoms[score] for score in possible.tolist()]
    )
    variance = variance_of(atoms)
    # The variance of n draws errs by sqrt((m4 - m2^2) / n), and by the square of the
    # error of their mean, m2 / n.
    fourth = math.fsum((s - mean_of(atoms)) ** 4 * p for s, p in atoms.items())
    error = 5 * math.sqrt(max(fourth - variance**2, 0) / n) + 25 * variance / n
    assert drawn.var() == pytest.approx(variance, abs=error + 1e-9)


@pytest.mark.parametrize(
    ("top_k", "metric"),
    [
        pytest.param(3, "nDCG@2", id="list longer than the cutoff"),
        pytest.param(1, "nDCG@2", id="list shorter than the cutoff"),
        pytest.param(3, "AP", id="no cutoff"),
        pytest.param(9, "P@2", id="list longer than the corpus"),
    ],
)
def test_C_draws_lists_of_the_length_asked_for(top_k: int, metric: str) -> None:
    corpus, n = corpus_of(GRADED), 4000
    atoms = atoms_C(ref.benchmark(*GRADED, metric, top_k=top_k), corpus)
    grading = graded(*GRADED, metric, top_k=top_k, corpus=corpus)
    drawn = retrieved_at_random(grading, n, 2).draws
    possible = np.array(sorted(atoms))
    place = np.abs(drawn[:, None] - possible).argmin(axis=1)
    observed = np.bincount(place, minlength=len(possible))
    assert_frequencies(observed.tolist(), [n * atoms[s] for s in possible.tolist()])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("case", BENCHMARKS)
def test_p_of_A_is_near_the_share_of_all_permutations(case: Case, metric: str) -> None:
    grading, n = graded(*case, metric), 20_000
    p = p_value(permuted(grading, n, 3), grading.score)
    exact = ref.p_value_A_exact(*case, metric)
    error = math.sqrt(exact * (1 - exact) / n)
    # The run counts as one draw more, which moves p by at most 1/n.
    assert p == pytest.approx(exact, abs=5 * error + 1 / n)


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        pytest.param(0.5, 3 / 5, id="at two draws"),
        pytest.param(0.5 + 9e-13, 3 / 5, id="a rounding error above them"),
        pytest.param(0.5 + 2e-12, 1 / 5, id="more than that above them"),
        pytest.param(0.0, 1.0, id="below all draws"),
        pytest.param(0.9, 1 / 5, id="above all draws: never 0"),
    ],
)
def test_p_counts_the_run_and_the_draws_that_reach_it(
    reached: float, expected: float
) -> None:
    draws = np.array([0.5, 0.25, 0.5, 0.1])
    null = Null("A", 0.3, True, 0.0, draws, np.zeros(2), np.zeros(2))
    assert p_value(null, reached) == expected
    assert p_value(null, reached) == ref.p_value(draws.tolist(), reached)


def test_D_draws_every_label_with_the_chance_promised() -> None:
    # Every query lists one label, and Success@1 tells whether it was drawn. Of the 10
    # memberships a has 4, b 3, c 2, d 1, so three labels a query draw min(1, 3 w).
    qrels: Qrels = {
        "q1": {"a": 1, "b": 2, "c": 1},
        "q2": {"a": 1, "b": 1, "d": 3},
        "q3": {"a": 1, "b": 1},
        "q4": {"a": 1},
        "q5": {"c": 1},
    }
    chances = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
    n = 20_000
    for label, weight in chances.items():
        run = {query: {label: 1.0} for query in qrels}
        null = matched(graded(run, qrels, "Success@1"), n, 4)
        assert not null.exact
        for found, gold in zip(null.of_query.tolist(), qrels.values(), strict=True):
            chance = min(1.0, len(gold) * weight)
            error = math.sqrt(chance * (1 - chance) / n)
            assert found == pytest.approx(chance, abs=5 * error + 1e-12), label


def test_D_gives_a_drawn_label_the_mean_grade_of_the_query() -> None:
    # The graded gain of a label drawn for q1, told by nDCG@1: ideal 3, mean grade 5/3,
    # and "b" is drawn with chance 3 * 1/4. The draws, not the closed form, are asked.
    qrels: Qrels = {"q1": {"a": 3, "b": 1, "c": 1}, "q2": {"d": 1}}
    run: Run = {"q1": {"b": 1.0}}
    null, n = matched(graded(run, qrels, "nDCG@1"), 20_000, 4), 20_000
    # A draw's mean over two queries: 1/2 with chance 1/4, 1/6 with 1/2, else 0.
    atoms = {1 / 2: 1 / 4, 1 / 6: 1 / 2, 0.0: 1 / 4}
    observed = [int(np.isclose(null.draws, score).sum()) for score in atoms]
    assert_frequencies(observed, [n * chance for chance in atoms.values()])


@pytest.mark.parametrize(
    ("shift", "fault"),
    [
        pytest.param(0.9, None, id="within"),
        pytest.param(1.1, "null A: the draws average", id="beyond"),
    ],
)
def test_draws_that_disagree_with_the_closed_form_are_an_internal_error(
    shift: float, fault: str | None
) -> None:
    # 400 draws of 0 and 1, half each: SE = 1/40, so 6 SE = 0.15; 25/(B N) = 1/160.
    values = np.tile([0.0, 1.0], 200)
    allowed = 6 / 40 + 25 / (400 * 10)
    expected = 0.5 + shift * allowed
    null = Null("A", expected, True, 0.0, values, np.zeros(10), np.zeros(10))
    if fault is None:
        _check(null, 10)
        return
    with pytest.raises(InternalError, match=fault):
        _check(null, 10)


# ---- streams ---------------------------------------------------------------------


def test_every_purpose_has_a_stream_of_its_own() -> None:
    tags = [getattr(draws, name) for name in dir(draws) if name.startswith("TAG_")]
    assert len(tags) == len(set(tags)) >= 9
    firsts = {stream(seed, tag).random() for tag in tags for seed in (0, 1)}
    assert len(firsts) == 2 * len(tags)
    assert stream(3, 1).random() == np.random.default_rng([3, 1]).random()


@pytest.mark.parametrize("metric", ["nDCG@3", "AP", "Success@2"])
def test_a_null_draws_the_same_whatever_the_others_do(metric: str) -> None:
    grading = graded(*random_case(0), metric)
    together = null_models(grading, 300, 5)
    for null in reversed(together):
        alone = BUILDERS[null.letter](grading, 300, 5)
        assert alone.draws.tobytes() == null.draws.tobytes(), null.letter
        other = BUILDERS[null.letter](grading, 300, 6)
        assert other.draws.tobytes() != null.draws.tobytes(), null.letter


@pytest.mark.parametrize("letter", ["A", "B", "D"])
@pytest.mark.parametrize("metric", ["nDCG@3", "AP@4", "RR@3", "P@3", "R@3_top1"])
def test_a_query_meets_the_same_labels_whatever_any_list_holds(
    metric: str, letter: str
) -> None:
    # What q3 adds to a draw is told by putting one list for another; that must not
    # depend on what the other queries list, in any draw.
    run, qrels = random_case(1)
    others, _ = random_case(2)
    one, two = run["q3"], {"d0": 3.0, "d1": 2.0, "d2": 1.0}

    def drawn(rest: Run, mine: dict[str, float]) -> Any:
        grading = graded(rest | {"q3": mine}, qrels, metric)
        return BUILDERS[letter](grading, 400, 7).draws

    change = drawn(run, two) - drawn(run, one)
    assert change.any()
    assert drawn(others, two) - drawn(others, one) == pytest.approx(change, abs=1e-12)


@pytest.mark.parametrize("metric", ["nDCG@3", "AP@4", "RR@3", "P@3", "R@3_top1"])
def test_C_draws_the_same_for_every_run_where_corpus_and_cutoff_are_given(
    metric: str,
) -> None:
    (run, qrels), (other, _) = random_case(1), random_case(2)
    del other["q5"]
    one = retrieved_at_random(graded(run, qrels, metric, corpus=30), 300, 7)
    two = retrieved_at_random(graded(other, qrels, metric, corpus=30), 300, 7)
    assert one.draws.tobytes() == two.draws.tobytes()
    assert one.of_query.tobytes() == two.of_query.tobytes()


@pytest.mark.parametrize("metric", METRICS)
def test_an_unjudged_document_and_a_grade_of_0_change_no_draw(metric: str) -> None:
    run, qrels = random_case(1)
    more = {query: row | {"a0": 0, "z9": -1} for query, row in qrels.items()}
    longer = {query: row | {"e": -99.0} for query, row in run.items()}
    plain = null_models(graded(run, qrels, metric, top_k=6, corpus=40), 300, 7)
    extended = null_models(graded(longer, more, metric, top_k=6, corpus=40), 300, 7)
    for one, two in zip(plain, extended, strict=True):
        assert one.draws.tobytes() == two.draws.tobytes(), one.letter
        assert one.differences.tobytes() == two.differences.tobytes(), one.letter


# ---- blocks ----------------------------------------------------------------------


@pytest.fixture(params=[1, 7, 100])
def tiny_blocks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """A switch that makes every block hold so few cells."""

    def switch() -> None:
        monkeypatch.setattr(defaults, "BLOCK_CELLS", request.param)
        monkeypatch.setattr(defaults, "DENSE_BLOCK_CELLS", request.param)
        monkeypatch.setattr(draws.blocks, "__defaults__", (request.param,))

    return switch


def in_bytes(nulls: Sequence[Null]) -> list[tuple[bytes, bytes, bytes]]:
    return [
        (null.draws.tobytes(), null.of_query.tobytes(), null.differences.tobytes())
        for null in nulls
    ]


@pytest.mark.parametrize("metric", [*METRICS, "nDCG@5", "AP@5"])
def test_block_sizes_change_no_bit(
    metric: str, tiny_blocks: Callable[[], None]
) -> None:
    case = random_case(3)
    plain = graded(*case, metric, corpus=20)
    before = in_bytes(null_models(plain, 230, 1))
    tiny_blocks()
    again = graded(*case, metric, corpus=20)
    assert again.matrix.values.tobytes() == plain.matrix.values.tobytes()
    assert in_bytes(null_models(again, 230, 1)) == before


def full_case() -> Case:
    """A case whose M is full: d0 is gold, and listed, everywhere; q5 has no gold."""
    run, qrels = random_case(4)
    for query in qrels:
        run[query] |= {"d0": 1.0}
        qrels[query] |= {"d0": 1}
    qrels["q5"] = {"d0": 0}
    return run, qrels


@pytest.mark.parametrize("metric", METRICS[:-1])
def test_dense_and_sparse_look_ups_of_m_agree_to_the_last_bit(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Writing M out for every cell of a block of one never pays off.
    grading = graded(*full_case(), metric)
    assert relabelled._Table.of(grading.matrix, 250).dense
    dense = in_bytes([permuted(grading, 250, 1), uniform(grading, 250, 1)])
    monkeypatch.setattr(defaults, "DENSE_BLOCK_CELLS", 1)
    assert not relabelled._Table.of(grading.matrix, 250).dense
    assert in_bytes([permuted(grading, 250, 1), uniform(grading, 250, 1)]) == dense


@pytest.mark.parametrize("cells", [20, 150, 1000])
@pytest.mark.parametrize("metric", METRICS[:-1])
def test_block_sizes_change_no_bit_of_a_dense_look_up(
    metric: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of 12 sets a query: one row, about all rows, and several draws of M at once.
    grading = graded(*full_case(), metric)
    monkeypatch.setattr(relabelled._Table, "cells", property(lambda table: cells))
    before = in_bytes([permuted(grading, 250, 1), uniform(grading, 250, 1)])
    monkeypatch.undo()
    assert in_bytes([permuted(grading, 250, 1), uniform(grading, 250, 1)]) == before


def test_draws_compared_in_several_steps_are_all_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grading = graded(*full_case(), "nDCG")
    table = relabelled._Table.of(grading.matrix, 1)
    count, distinct = grading.matrix.shape
    dealt = np.random.default_rng(0).integers(-1, distinct, (7, count), np.int32)
    full = np.zeros((count, distinct + 1))
    full[grading.matrix.rows, grading.matrix.columns] = grading.matrix.values
    plain = full[np.arange(count), dealt].sum(axis=1)
    monkeypatch.setattr(defaults, "BLOCK_CELLS", 2 * len(grading.matrix.rows))
    # What is left unwritten is seen.
    monkeypatch.setattr(np, "empty", lambda size: np.full(size, np.nan))
    assert table._compared(dealt).tolist() == pytest.approx(plain, abs=1e-12)


def test_m_is_compared_cell_by_cell_where_it_is_sparse() -> None:
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(60)}
    qrels = {f"q{i}": {"a": 1, f"d{i}": 1} for i in range(60)}
    assert not relabelled._Table.of(graded(run, qrels, "P@1").matrix, 1000).dense


# ---- the random numbers themselves -----------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_permutations_are_uniform(count: int) -> None:
    rows = 24_000
    found = Counter(map(tuple, permutations(stream(1, 1), rows, count).tolist()))
    every = list(orders(range(count)))
    assert set(found) <= set(every)
    assert_frequencies([found[p] for p in every], [rows / len(every)] * len(every))


@pytest.mark.parametrize(("count", "rows"), [(1 << 16, 1200), (1 << 18, 600)])
def test_the_same_number_comes_first_no_oftener_than_by_chance(
    count: int, rows: int
) -> None:
    # With keys that tie often those of the least numbers would be first, row for row.
    rng, firsts = stream(12, 1), []
    for _ in range(rows // 20):
        firsts.extend(permutations(rng, 20, count)[:, [0, -1]].T.reshape(-1).tolist())
    sides = np.array(firsts).reshape(-1, 2, 20).swapaxes(0, 1).reshape(2, -1)
    for side in sides:
        pairs = sum(n * (n - 1) / 2 for n in Counter(side.tolist()).values())
        expected = rows * (rows - 1) / 2 / count
        assert pairs <= 1.5 * expected + 3 * math.sqrt(expected) + 1


@pytest.mark.parametrize("count", [5, 64, 65, 1000, 65_537])
def test_permutations_hold_every_number_once(count: int) -> None:
    found = permutations(stream(2, 1), 3, count)
    assert np.array_equal(np.sort(found, axis=1), np.tile(np.arange(count), (3, 1)))
    assert not np.array_equal(found[0], found[1])


class CoarseRandomness:
    """A stream whose words of 32 bits are all 0 but for a few of their top bits."""

    def __init__(self, seed: int, bits: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._mask = np.uint64(((1 << bits) - 1 << 32 - bits) * 0x1_0000_0001)

    def integers(self, low: int, high: int, shape: Any, kind: Any) -> Any:
        return self._rng.integers(low, high, shape, kind) & self._mask

    def permutation(self, count: int) -> Any:
        return self._rng.permutation(count)

    def random(self, shape: Any) -> Any:
        return self._rng.random(shape)


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_keys_that_tie_leave_permutations_uniform_where_numbers_are_random(
    bits: int,
) -> None:
    rows, rng = 24_000, np.random.default_rng(3)
    places = permutations(CoarseRandomness(4, bits), rows, 4)  # type: ignore[arg-type]
    assert (len(np.unique(places, axis=0)) == 1) == (bits == 0)
    numbered = rng.permuted(np.tile(np.arange(4), (rows, 1)), axis=1)
    found = Counter(map(tuple, np.take_along_axis(numbered, places, 1).tolist()))
    every = list(orders(range(4)))
    assert_frequencies([found[p] for p in every], [rows / 24] * 24)


def test_A_numbers_its_queries_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    # All keys tie, so that the numbering, new with each seed, is the permutation.
    # Three queries of four find their own document and no other; the last, none.
    monkeypatch.setattr(relabelled, "stream", lambda s, t: CoarseRandomness(s, 0))
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(4)}
    run = {f"q{i}": {f"d{i}" if i < 3 else "x": 1.0} for i in range(4)}
    found: Counter[float] = Counter()
    for seed in range(1200):
        drawn = permuted(graded(run, qrels, "P@1"), 200, seed).draws
        assert len(set(drawn.tolist())) == 1
        found[float(drawn[0]) * 4] += 1
    matches = Counter(sum(p[i] == i for i in range(3)) for p in orders(range(4)))
    assert_frequencies(
        [found[k] for k in sorted(matches)],
        [1200 * matches[k] / 24 for k in sorted(matches)],
    )


def test_D_numbers_its_labels_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    # Four labels alike, two a query: drawn together are those that lie half a circle
    # apart. All keys tie, so that only the numbering, new with each seed, can bring
    # a and b together, in one case of three.
    monkeypatch.setattr(marginals, "stream", lambda s, t: CoarseRandomness(s, 0))
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1, "d": 1}}
    grading = graded({"q1": {"a": 2.0, "b": 1.0}}, qrels, "P@2")
    together = sum(
        matched(grading, 200, seed).draws.max() == 0.5 for seed in range(900)
    )
    assert_frequencies([together, 900 - together], [300, 600])


@pytest.mark.parametrize("count", [3, 700])
def test_repeated_things_stand_side_by_side_in_the_same_order(count: int) -> None:
    times = np.random.default_rng(6).integers(1, 4, count)
    once = permutations(stream(7, 1), 50, count)
    again = permutations(stream(7, 1), 50, count, np.repeat(np.arange(count), times))
    for order, found in zip(once, again, strict=True):
        assert np.array_equal(found, np.repeat(order, times[order]))


@pytest.mark.parametrize("total", [40, 41, 80, 81, 400])
def test_labels_end_where_those_before_them_add_up_to(total: int) -> None:
    # Up to twice as many memberships as labels they are sorted, beyond added up.
    counts = np.ones(40, np.int32)
    np.add.at(counts, np.random.default_rng(8).integers(0, 40, total - 40), 1)
    found = marginals._RandomOrders(counts, stream(9, 1)).ends(30)
    for order, ends in zip(permutations(stream(9, 1), 30, 40), found, strict=True):
        place = 0
        for label in order:
            place += counts[label]
            assert ends[label] == place
    assert place == total


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.97])
def test_trials_succeed_with_their_chance_one_by_one(chance: float) -> None:
    rows, width = 4000, 5 if chance > 0.01 else 500
    trials = Trials(chance, stream(1, 2))
    found = np.zeros((rows, width), bool)
    found.reshape(-1)[trials.successes(rows * width)] = True
    sums = np.bincount(found.sum(axis=1), minlength=width + 1)
    expected = rows * stats.binom(width, chance).pmf(np.arange(width + 1))
    assert_frequencies(sums.tolist(), expected.tolist())
    # One trial says nothing of the next.
    flat = found.reshape(-1)
    both = int((flat[1:] & flat[:-1]).sum())
    share = chance**2
    spread = math.sqrt(len(flat) * share * (1 + 2 * chance))
    assert abs(both - len(flat) * share) < 5 * spread + 1


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0), (1.0, 1)])
def test_trials_without_chance_or_without_doubt(chance: float, share: int) -> None:
    trials = Trials(chance, stream(1, 2))
    for count in (0, 1, 7):
        assert trials.successes(count).tolist() == list(range(count * share))


@pytest.mark.parametrize("chance", [1e-15, 0.003, 0.4, 1.0])
def test_trials_asked_for_piece_by_piece_are_the_same(chance: float) -> None:
    whole = Trials(chance, stream(3, 2)).successes(5000)
    pieces, trials, first = [], Trials(chance, stream(3, 2)), 0
    for count in (0, 1, 2, 997, 0, 3000, 1000):
        pieces.append(trials.successes(count) + first)
        first += count
    assert np.array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize(
    ("counts", "sizes", "cell"),
    [
        pytest.param([1], [4], 0, id="one of four"),
        pytest.param([2], [4], 0, id="two of four"),
        pytest.param([4], [4], 0, id="all of four"),
        pytest.param([3], [5], 0, id="three of five"),
        pytest.param([0, 2, 1, 3], [5, 4, 3, 3], 1, id="two of four among others"),
        pytest.param([0, 2, 1, 3], [5, 4, 3, 3], 2, id="one of three among others"),
        pytest.param([0, 2, 1, 3], [5, 4, 3, 3], 3, id="all of three among others"),
    ],
)
def test_different_numbers_are_a_uniform_ordered_sample(
    counts: list[int], sizes: list[int], cell: int
) -> None:
    n = 12_000
    many, large = np.tile(counts, n), np.tile(sizes, n)
    drawn = different_numbers(many, large, stream(5, 1)).reshape(n, sum(counts))
    first = sum(counts[:cell])
    mine = drawn[:, first : first + counts[cell]]
    every = list(orders(range(sizes[cell]), counts[cell]))
    found = Counter(map(tuple, mine.tolist()))
    assert set(found) <= set(every)
    assert_frequencies([found[p] for p in every], [n / len(every)] * len(every))


def test_different_numbers_take_one_number_each_and_no_heed_of_blocks(
    tiny_blocks: Callable[[], None],
) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 30, 400)
    counts = np.minimum(rng.integers(0, 9, 400), sizes)
    one = stream(5, 2)
    before = different_numbers(counts, sizes, one)
    other = stream(5, 2)
    other.random(int(counts.sum()))
    assert one.random() == other.random()
    tiny_blocks()
    assert np.array_equal(different_numbers(counts, sizes, stream(5, 2)), before)


def test_a_deck_too_large_to_lay_out_is_dealt_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, 400)
    counts = np.minimum(rng.integers(0, 9, 400), sizes)
    before = different_numbers(counts, sizes, stream(5, 2))
    monkeypatch.setattr(random_lists, "_LARGEST_DECK", 3)
    assert np.array_equal(different_numbers(counts, sizes, stream(5, 2)), before)


def test_different_numbers_of_a_large_size_reach_its_end() -> None:
    # 3000 pairs below 10^6: the largest misses the end by a 6000th on the average.
    n, size = 3000, 10**6
    drawn = different_numbers(np.full(n, 2), np.full(n, size), stream(5, 3))
    assert 0.99 * size < drawn.max() < size
    assert drawn.mean() == pytest.approx(size / 2, rel=0.03)
    one, two = drawn.reshape(n, 2).T
    assert (one != two).all()


@pytest.mark.parametrize(
    ("relevant", "drawn", "corpus"),
    [
        *((0, 3, 9), (3, 0, 9), (1, 1, 1), (4, 4, 4), (3, 5, 6), (5, 3, 6)),
        *((20, 10, 100), (500, 1000, 8_841_823), (70, 1000, 5000), (1, 10, 10**6)),
        *((30, 1000, 10**10), (3, 5, 10**15)),
    ],
)
def test_hypergeometric_chances_are_those_of_scipy_and_of_whole_numbers(
    relevant: int, drawn: int, corpus: int
) -> None:
    found = hypergeometric(relevant, drawn, corpus)
    hits = range(min(relevant, drawn) + 1)
    assert len(found) == len(hits)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    if corpus < 10**7:  # scipy 1.17 does not come back from larger ones
        theirs = stats.hypergeom(corpus, relevant, drawn).pmf(hits)
        assert found == pytest.approx(theirs, rel=1e-6, abs=1e-12)
    ways = [
        math.comb(relevant, k) * math.comb(corpus - relevant, drawn - k) for k in hits
    ]
    exact = [way / math.comb(corpus, drawn) for way in ways[:40]]
    assert found[:40] == pytest.approx(exact, rel=1e-6, abs=1e-12)


def test_the_hypergeometric_chances_hold_far_from_no_hit() -> None:
    # e^700 times as likely as no hit at all: their ratios fit in no double.
    found = hypergeometric(2_000, 1_000, 4_000)
    expected = stats.hypergeom(4_000, 2_000, 1_000).pmf(np.arange(1_001))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-200)


def test_cells_behind_too_large_a_deck_are_dealt_as_well() -> None:
    size = random_lists._LARGEST_DECK + 1
    sizes = np.array([size] * 3 + [2] * 20)
    numbers = different_numbers(np.full(23, 2), sizes, np.random.default_rng(1))
    pairs = numbers.reshape(-1, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert sorted(pairs[3].tolist()) == [0, 1]
