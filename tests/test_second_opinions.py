"""Other people's statistics on the same data: scipy, falsify-eval, a saddlepoint."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import two_benchmarks
from numpy.testing import assert_allclose
from scipy import optimize, stats  # type: ignore[import-untyped,unused-ignore]
from tiny import graded

from falsify_cli import gate
from falsify_cli.columns import Floats, Ints
from falsify_cli.grading import Grading
from falsify_cli.interval import Groups, Interval, intervals
from falsify_cli.nulls import null_models, p_value

ROOT = Path(__file__).parents[1]


def interval_of(differences: Floats, n_boot: int) -> Interval:
    """One interval at alpha 0.05, every query for itself."""
    groups = Groups.singletons(len(differences))
    return intervals([differences], groups, alpha=0.05, n_boot=n_boot, seed=1)[0]


def single_label_grading(labels: Ints, firsts: Ints) -> Grading:
    """Success@1 of queries with one relevant and one listed document each."""
    run = {f"q{i}": {f"d{first}": 1.0} for i, first in enumerate(firsts)}
    qrels = {f"q{i}": {f"d{label}": 1} for i, label in enumerate(labels)}
    return graded(run, qrels, "Success@1", corpus=10)


# --- scipy: the p-value of null A, and Clopper and Pearson's interval ---


@pytest.mark.parametrize("seed", range(6))
def test_p_of_null_a_is_scipys_permutation_p_value(seed: int) -> None:
    # Success@1, one relevant document a query: the score of a dealt key is the number
    # of queries whose first document is the dealt label, so scipy may permute labels
    # against first documents. 7 queries have 5040 permutations, all of them taken.
    rng = np.random.default_rng(seed)
    labels, firsts = rng.integers(0, 3, 7), rng.integers(0, 3, 7)
    grading = single_label_grading(labels, firsts)
    exact = stats.permutation_test(
        (labels,),
        lambda dealt: float((dealt == firsts).sum()),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=np.inf,
    )
    draws = 20_000
    p = p_value(null_models(grading, draws, seed)[0], grading.score)
    error = math.sqrt(exact.pvalue * (1 - exact.pvalue) / draws)
    assert abs(p - exact.pvalue) <= 5 * error + 2 / draws


@pytest.mark.parametrize(("won", "count"), [(0, 12), (3, 12), (20, 25), (30, 30)])
def test_on_differences_of_plus_and_minus_one_the_interval_is_clopper_pearsons(
    won: int, count: int
) -> None:
    differences = np.repeat([1.0, -1.0], [won, count - won])
    ours = interval_of(differences, n_boot=20_000)
    theirs = stats.binomtest(won, count).proportion_ci(1 - 0.05 / 4, method="exact")
    # d = +1 or -1 is a win or a loss; a share x of wins has the mean 2x - 1.
    assert abs(ours.low - (2 * theirs.low - 1)) <= 4 * ours.low_error + 1e-3
    assert abs(ours.high - (2 * theirs.high - 1)) <= 4 * ours.high_error + 1e-3


# --- Lugannani and Rice: the ends as the number of resamples grows ---


def saddlepoint_chance(coefficients: Floats) -> float:
    """P(sum of c_i E_i <= 0) for standard exponentials E_i.

    Source: Lugannani & Rice, 1980; K(t) = -sum log(1 - c_i t).
    """
    low = 1 / coefficients.min() if coefficients.min() < 0 else -1e9
    high = 1 / coefficients.max() if coefficients.max() > 0 else 1e9
    slack = 1e-10 * (high - low)
    t = optimize.brentq(
        lambda t: (coefficients / (1 - coefficients * t)).sum(),
        low + slack,
        high - slack,
    )
    k = -np.log1p(-coefficients * t).sum()
    curvature = ((coefficients / (1 - coefficients * t)) ** 2).sum()
    w, u = math.copysign(math.sqrt(-2 * k), t), t * math.sqrt(curvature)
    return float(stats.norm.cdf(w) + stats.norm.pdf(w) * (1 / w - 1 / u))


def saddlepoint_low(differences: Floats, alpha: float) -> float:
    """Where the weighted mean with an imaginary -1 lies with chance alpha / 8."""
    values = np.append(differences, -1.0)
    return float(
        optimize.brentq(
            lambda x: saddlepoint_chance(values - x) - alpha / 8,
            values.min() + 1e-6,
            values.mean() - 1e-6,
        )
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [15, 40, 120])
def test_the_ends_meet_their_saddlepoint_limit(seed: int, count: int) -> None:
    rng = np.random.default_rng([seed, count])
    differences = rng.beta(0.4, 0.6, count) - 0.3
    ours = interval_of(differences, n_boot=4000)
    # The approximation itself is good to a percent of the interval's half width.
    slack = 0.01 * (ours.high - ours.low)
    low = saddlepoint_low(differences, 0.05)
    high = -saddlepoint_low(-differences, 0.05)
    assert abs(ours.low - low) <= 4 * ours.low_error + slack
    assert abs(ours.high - high) <= 4 * ours.high_error + slack


# --- falsify-eval: nulls B and C, where both define the same thing ---


@pytest.mark.parametrize("seed", range(3))
def test_nulls_b_and_c_are_those_of_falsify_eval_where_definitions_agree(
    seed: int,
) -> None:
    # falsify-eval 0.2.0, one label a query and reciprocal rank over five documents:
    # its B draws from the distinct labels, its C from the pool. Its A permutes the
    # distinct labels among themselves, and its D knows one label a query.
    falsify_eval = pytest.importorskip("falsify_eval")
    rng = np.random.default_rng(seed)
    pool = [f"d{i}" for i in range(25)]
    gold = rng.choice(pool[:8], 30).tolist()
    lists = [rng.permutation(pool)[:5].tolist() for _ in gold]

    def reciprocal_rank(retrieved: list[str], label: str, _: object) -> float:
        return 1 / (retrieved.index(label) + 1) if label in retrieved else 0.0

    theirs = falsify_eval.four_null_gate(
        lists, gold, [1] * 30, reciprocal_rank, item_pool=pool, k=5, n_trials=1500
    )
    ours = gate(
        {f"q{i}": {d: -float(r) for r, d in enumerate(x)} for i, x in enumerate(lists)},
        {f"q{i}": {label: 1} for i, label in enumerate(gold)},
        "RR@5",
        corpus=25,
    )
    assert_allclose(ours.score, theirs["real_mean"], atol=1e-12)
    for letter in "BC":
        # 1500 means of 30 reciprocal ranks with a spread of at most 0.4 each.
        error = 0.4 / math.sqrt(30 * 1500)
        expected = ours.nulls[letter].expected
        assert abs(expected - theirs["null_means"][letter]) < 5 * error


# --- the page on two public benchmarks ---


@pytest.mark.shared
def test_the_page_on_two_benchmarks_shows_what_the_program_finds(shared: Path) -> None:
    page = (ROOT / "docs" / "two-public-benchmarks.md").read_text("utf-8")
    rows = [
        *two_benchmarks.our_rows(shared / "data"),
        *two_benchmarks.single_label_rows(shared / "data"),
    ]
    assert len(rows) == 14
    for row in rows:
        assert row in page


def test_a_label_beside_37_others_hardly_moves_a_score() -> None:
    # Two queries of one label each: kept, the query's own judgment still scores for
    # another's label: a over {a: 1, b: 1} has 1 / (1 + 1/log2 3); alone it has 0.
    judged = {"a": 1}
    assert two_benchmarks.lone_label(["a"], "b", judged) == 0
    kept = two_benchmarks.kept_labels(["a"], "b", judged)
    assert kept == pytest.approx(1 / (1 + 1 / math.log2(3)))
