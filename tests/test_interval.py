"""The interval against its limit, against loops, and against values worked by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli import defaults
from falsify_cli.interval import (
    Groups,
    Interval,
    _end,
    end_rank,
    intervals,
    rows_of,
)
from falsify_cli.nulls import draws
from falsify_cli.nulls.draws import TAG_WEIGHTS, stream

# Ten differences of a middling run, and the groups of the same ten queries.
MIXED = [0.9, -0.3, 0.2, 0.5, 0.1, 0.8, 0.0, 0.4, 0.6, 0.25]
SIX_GROUPS = "aabbbcdeff"


def groups_of(names: str | None, count: int) -> Groups:
    if names is None:
        return Groups.singletons(count)
    every = sorted(set(names))
    return Groups.of(np.array([every.index(name) for name in names]))


def interval(
    d: list[float] | npt.NDArray[np.float64],
    names: str | None = None,
    *,
    alpha: float = 0.05,
    n_boot: int = 1000,
    seed: int = 0,
) -> Interval:
    (found,) = intervals(
        [np.array(d)],
        groups_of(names, len(d)),
        alpha=alpha,
        n_boot=n_boot,
        seed=seed,
    )
    return found


# ---- against the definition ------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "names"),
    [
        pytest.param(MIXED, None, id="ten"),
        pytest.param(MIXED, SIX_GROUPS, id="six groups"),
        pytest.param(MIXED, "a" * 10, id="one group"),
        pytest.param([0.5, -0.25, 0.1], None, id="three"),
        pytest.param([0.3], None, id="one"),
        pytest.param([-1.4, 0.2, 1.3], None, id="beyond -1 and 1"),
        pytest.param([0.0] * 40, None, id="all zero"),
    ],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_ends_are_those_that_a_loop_reads_off_the_same_weights(
    d: list[float], names: str | None, alpha: float
) -> None:
    # The oracle takes its exponentials row by row from the same stream.
    rows = ref.rows_for(200, len(set(names or range(len(d)))))
    expected = ref.interval(
        d, rows, alpha, stream(8, TAG_WEIGHTS), None if names is None else list(names)
    )
    found = interval(d, names, alpha=alpha, n_boot=200, seed=8)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40)
@given(
    d=st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=1, max_size=12),
    data=st.data(),
)
def test_ends_lie_within_a_few_resampling_errors_of_their_limit(
    d: list[float], data: st.DataObject
) -> None:
    names = data.draw(
        st.none() | st.text(st.sampled_from("abc"), min_size=len(d), max_size=len(d))
    )
    low, high = ref.limit_interval(d, groups=None if names is None else list(names))
    found = interval(d, names, n_boot=3000, seed=1)
    assert found.low == pytest.approx(low, abs=5 * found.low_error + 1e-9)
    assert found.high == pytest.approx(high, abs=5 * found.high_error + 1e-9)


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [
        # Section 6 of the design: a perfect run on n distinct answers, d = 1 - 1/n.
        pytest.param(3, -0.693, 0.939, id="3"),
        pytest.param(8, -0.006, None, id="8"),
        pytest.param(9, 0.075, None, id="9"),
        pytest.param(20, 0.513, 0.961, id="20"),
    ],
)
def test_a_perfect_run_meets_the_anchors(
    n: int, low: float, high: float | None
) -> None:
    found = interval([1 - 1 / n] * n, n_boot=20_000)
    assert found.low == pytest.approx(low, abs=4 * found.low_error + 5e-4)
    if high is not None:
        assert found.high == pytest.approx(high, abs=4 * found.high_error + 5e-4)


@pytest.mark.parametrize("d", [-0.4, 0.0, 0.7, 1.0])
@pytest.mark.parametrize("n", [1, 3, 10, 50])
def test_equal_differences_have_the_closed_form(n: int, d: float) -> None:
    q = (0.05 / 8) ** (1 / n)
    found = interval([d] * n, n_boot=3000)
    low, high = q * d - (1 - q), q * d + (1 - q)
    assert found.low == pytest.approx(low, abs=5 * found.low_error + 1e-9)
    assert found.high == pytest.approx(high, abs=5 * found.high_error + 1e-9)


@pytest.mark.parametrize(("n", "ones"), [(5, 0), (5, 2), (5, 5), (30, 3), (80, 60)])
def test_two_valued_data_have_the_clopper_pearson_interval(n: int, ones: int) -> None:
    # On -1 and +1 the imaginary query stands at the end of the scale. scipy 1.17,
    # binomtest(...).proportion_ci(1 - alpha / 4, "exact").
    stats: Any = pytest.importorskip("scipy.stats")
    exact = stats.binomtest(ones, n).proportion_ci(1 - 0.05 / 4, "exact")
    found = interval([1.0] * ones + [-1.0] * (n - ones), n_boot=5000)
    assert found.level == 1 - 0.05 / 4
    low, high = 2 * exact.low - 1, 2 * exact.high - 1
    assert found.low == pytest.approx(low, abs=5 * found.low_error + 1e-9)
    assert found.high == pytest.approx(high, abs=5 * found.high_error + 1e-9)


# ---- ranks and rows --------------------------------------------------------------


ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


@pytest.mark.parametrize("alpha", [*ALPHAS, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
def test_the_rank_of_an_end_is_the_floor_taken_in_whole_numbers(alpha: float) -> None:
    exact = Fraction(str(alpha)) / 8
    rows = [*range(1, 3000), 9_999, 10_000, 12_799, 15_999, 99_999, 10**6 - 1, 10**6]
    assert [end_rank(n, alpha) for n in rows] == [
        math.floor((n + 1) * exact) for n in rows
    ]


@pytest.mark.parametrize(
    ("rows", "rank"),
    [
        pytest.param(159, 1, id="exactly one"),
        pytest.param(158, 0, id="just under one"),
        pytest.param(200, 1, id="the fewest rows"),
        pytest.param(1000, 6, id="1001 / 160 = 6.26"),
        pytest.param(10_000, 62, id="the default"),
    ],
)
def test_the_rank_of_an_end_by_hand(rows: int, rank: int) -> None:
    assert end_rank(rows, 0.05) == rank


@pytest.mark.parametrize(
    ("n_boot", "groups", "rows"),
    [
        pytest.param(1000, 1, 10_000, id="one group"),
        pytest.param(1000, 1000, 10_000, id="ten times up to 1,000"),
        pytest.param(1000, 1001, 9_000, id="just beyond"),
        pytest.param(1000, 3000, 3_000, id="10,000 // 3,000 = 3"),
        pytest.param(1000, 10_001, 1_000, id="never fewer than n_boot"),
        pytest.param(200, 50, 2_000, id="in proportion to n_boot"),
    ],
)
def test_few_queries_are_resampled_more_often(
    n_boot: int, groups: int, rows: int
) -> None:
    assert rows_of(n_boot, groups) == rows == ref.rows_for(n_boot, groups)


# ---- properties ------------------------------------------------------------------


@pytest.mark.parametrize("names", [None, SIX_GROUPS], ids=["single", "grouped"])
@pytest.mark.parametrize("by", [0.5, 1.5])
def test_stretching_about_the_imaginary_query_stretches_the_end(
    by: float, names: str | None
) -> None:
    # Every resample is a weighted mean of the differences and of -1 (or +1), so
    # stretching about that value stretches each, and so their order statistic.
    d = np.array(MIXED)
    plain = interval(d, names)
    low = interval(by * (d + 1) - 1, names).low
    high = interval(by * (d - 1) + 1, names).high
    assert low == pytest.approx(by * (plain.low + 1) - 1, abs=1e-12)
    assert high == pytest.approx(by * (plain.high - 1) + 1, abs=1e-12)


@pytest.mark.parametrize("names", [None, SIX_GROUPS], ids=["single", "grouped"])
def test_turning_the_differences_round_turns_the_interval_round(
    names: str | None,
) -> None:
    plain, turned = interval(MIXED, names), interval([-d for d in MIXED], names)
    assert (turned.low, turned.high) == (-plain.high, -plain.low)
    assert (turned.low_error, turned.high_error) == (plain.high_error, plain.low_error)


@pytest.mark.parametrize("size", [1, 3], ids=["single", "grouped"])
def test_adding_to_every_difference_moves_both_ends_by_nearly_as_much(
    size: int,
) -> None:
    # By 0.2 less the imaginary group's share of a resample: one of 401 on the average,
    # and hardly ever ten times that.
    d = np.resize(np.array(MIXED), 400 * size)
    groups = Groups.of(np.repeat(np.arange(400), size))
    for plain, moved in itertools.pairwise(
        intervals([d, d + 0.2], groups, alpha=0.05, n_boot=1000, seed=0)
    ):
        assert 0.2 * (1 - 10 / 401) < moved.low - plain.low < 0.2
        assert 0.2 * (1 - 10 / 401) < moved.high - plain.high < 0.2


@settings(max_examples=40)
@given(
    d=st.lists(st.floats(-1, 1), min_size=1, max_size=8),
    raised=st.integers(0, 7),
)
def test_raising_one_difference_lowers_no_end(d: list[float], raised: int) -> None:
    higher = [value + 0.1 * (i == raised % len(d)) for i, value in enumerate(d)]
    before, after = interval(d, n_boot=200), interval(higher, n_boot=200)
    assert after.low >= before.low
    assert after.high >= before.high


def test_groups_of_one_query_each_are_no_groups_bit_for_bit() -> None:
    assert interval(MIXED, "abcdefghij") == interval(MIXED)


def test_paraphrases_count_as_one_query_when_grouped() -> None:
    # Ten copies of three queries, grouped: the interval of the three, and as wide.
    d = [0.3, 0.8, -0.1]
    names = "".join(name * 10 for name in "abc")
    grouped = interval(np.repeat(d, 10), names)
    plain = interval(d)
    assert grouped.low == pytest.approx(plain.low, abs=1e-12)
    assert grouped.high == pytest.approx(plain.high, abs=1e-12)
    assert interval(np.repeat(d, 10)).low > plain.low + 0.3


def test_all_nulls_meet_the_same_resamples() -> None:
    d, other = np.array(MIXED), np.array(MIXED[::-1]) / 2
    groups = Groups.singletons(10)
    both = intervals([d, other], groups, alpha=0.05, n_boot=300, seed=2)
    assert both == [
        *intervals([d], groups, alpha=0.05, n_boot=300, seed=2),
        *intervals([other], groups, alpha=0.05, n_boot=300, seed=2),
    ]
    again = intervals([d], groups, alpha=0.05, n_boot=300, seed=3)
    assert again != both[:1]


@pytest.mark.parametrize("cells", [1, 7, 1000])
@pytest.mark.parametrize("names", [None, SIX_GROUPS], ids=["single", "grouped"])
def test_block_sizes_change_no_bit(
    names: str | None, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = interval(MIXED, names, n_boot=230)
    monkeypatch.setattr(defaults, "BLOCK_CELLS", cells)
    monkeypatch.setattr(draws.blocks, "__defaults__", (cells,))
    assert interval(MIXED, names, n_boot=230) == before


@pytest.mark.parametrize(
    ("d", "n_boot"),
    [
        pytest.param(MIXED, 1000, id="ten queries"),
        pytest.param([0.3, 0.8, -0.1], 200, id="three queries, few rows"),
        pytest.param([0.6] * 60, 1000, id="equal differences"),
    ],
)
def test_the_resampling_error_is_how_far_seeds_throw_an_end(
    d: list[float], n_boot: int
) -> None:
    # 60 seeds tell a spread to within 10%; the error itself is read off few rows.
    found = [interval(d, n_boot=n_boot, seed=seed) for seed in range(60)]
    for ends, errors in (
        ([i.low for i in found], [i.low_error for i in found]),
        ([i.high for i in found], [i.high_error for i in found]),
    ):
        assert 0.6 < np.mean(errors) / np.std(ends, ddof=1) < 1.7


def test_the_resampling_error_is_half_the_distance_of_two_ranks() -> None:
    # 639 rows: t = 640 / 160 = 4, so the ranks 4 - 2 and 4 + 2.
    d, rows = MIXED * 2000, 639
    weights = stream(0, TAG_WEIGHTS).standard_exponential((rows, 20_001))
    weights /= weights.sum(axis=1, keepdims=True)
    lows = np.sort(weights[:, :-1] @ np.array(d) - weights[:, -1])
    found = interval(d, n_boot=rows)
    assert found.low == pytest.approx(lows[3], abs=1e-12)
    assert found.low_error == pytest.approx((lows[5] - lows[1]) / 2, abs=1e-12)


def test_the_error_of_an_end_stays_within_the_resamples() -> None:
    # Rank 1 less 1 is no rank: from the first to the second resample, halved.
    assert _end(np.array([0.0, 1.0, 3.0, 6.0]), 1) == (0.0, 0.5)
    # Rank 4 of 4: from the second to the last.
    assert _end(np.array([0.0, 1.0, 3.0, 6.0]), 4) == (6.0, 2.5)
