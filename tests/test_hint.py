"""How many queries would settle a null: against the formula written as a loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli import hint
from falsify_cli.hint import Moments, one_figure, queries_to_settle
from falsify_cli.interval import Groups, intervals

DIFFERENCES = st.lists(
    st.floats(-1, 1).map(lambda x: round(x, 2)), min_size=1, max_size=12
)


def unrounded(d: list[float], tau: float = 0.05, alpha: float = 0.05) -> int | None:
    """The number before it is rounded to one figure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hint, "one_figure", lambda number: number)
        return hinted(d, tau, alpha)


def hinted(d: list[float], tau: float = 0.05, alpha: float = 0.05) -> int | None:
    return queries_to_settle(Moments.of(np.array(d)), tau, alpha)


@given(
    d=DIFFERENCES.filter(lambda d: abs(math.fsum(d) / len(d) - 0.05) > 0.02),
    alpha=st.sampled_from([0.05, 0.2]),
)
def test_the_hint_is_the_first_number_the_loop_comes_to(
    d: list[float], alpha: float
) -> None:
    expected = ref.unrounded_hint(d, alpha=alpha)
    assert expected is not None
    assert unrounded(d, alpha=alpha) == expected
    assert hinted(d, alpha=alpha) == ref.one_figure(expected)


@settings(max_examples=30)
@given(d=DIFFERENCES, tau=st.sampled_from([0.01, 0.1, 0.3]))
def test_the_hint_follows_tau(d: list[float], tau: float) -> None:
    if abs(math.fsum(d) / len(d) - tau) > 0.02:
        assert hinted(d, tau) == ref.hint(d, tau=tau)


@pytest.mark.parametrize(
    "d",
    [
        pytest.param([-0.1, -0.1, -0.1, 0.0, 0.9], id="low, long tail above"),
        pytest.param([0.4, 0.4, 0.4, 0.4, -0.9], id="low, long tail below"),
        pytest.param([-0.2, -0.2, -0.2, 0.7], id="high, long tail above"),
        pytest.param([0.2, 0.2, 0.2, -0.7], id="high, long tail below"),
        pytest.param([1.0] * 5, id="all at the end of the scale"),
        pytest.param([-1.0] * 5, id="all at the other end"),
        pytest.param([0.07, 0.05, 0.06], id="a gap just over the margin"),
        pytest.param([0.0] * 7, id="no gap at all"),
        pytest.param([0.9], id="one query"),
        pytest.param([1.4, -1.2, 0.3], id="beyond the scale"),
        pytest.param(
            [0.12] * 30 + [1.0], id="low, a tail that all but stops the spread"
        ),
        pytest.param([0.0] * 39 + [-0.9], id="high, a tail that does the same"),
    ],
)
def test_the_hint_agrees_with_the_loop_on_awkward_pilots(d: list[float]) -> None:
    assert unrounded(d) == ref.unrounded_hint(d)
    assert hinted(d) == ref.hint(d)


@pytest.mark.parametrize(
    ("d", "hopeless"),
    [
        pytest.param(0.0449, False, id="just far enough below"),
        pytest.param(0.0451, True, id="too near below"),
        pytest.param(0.05, True, id="at tau"),
        pytest.param(0.0549, True, id="too near above"),
        pytest.param(0.0551, False, id="just far enough above"),
    ],
)
def test_no_number_settles_a_gap_next_to_tau(d: float, hopeless: bool) -> None:
    assert (hinted([d, d]) is None) == hopeless
    assert (ref.hint([d, d]) is None) == hopeless


def test_a_number_of_thousands_is_found_as_well() -> None:
    # Spread 0.45 and 0.02 beyond tau: about ((2.5 + 0.84) 0.45 / 0.02)^2 queries.
    d = [0.07 + 0.45, 0.07 - 0.45]
    found = unrounded(d)
    assert found == ref.unrounded_hint(d)
    assert found is not None
    assert 5000 < found < 6500


@pytest.mark.parametrize(
    "number", [1, 2, 1023, 1024, 1025, 1026, 3072, 3073, 65_536, 65_537, 200_000]
)
def test_no_number_is_skipped_where_the_search_goes_on(number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hint, "_settles", lambda numbers, *_: numbers >= number)
        assert unrounded([0.5]) == number


@pytest.mark.parametrize("d", [[0.06, 0.3, 0.6, -0.2, 0.5], [0.0, 0.1, -0.1, 0.02]])
def test_the_hinted_number_of_queries_like_these_settles_it(d: list[float]) -> None:
    number = hinted(d)
    assert number is not None
    repeated = np.resize(np.array(d), math.ceil(number / len(d)) * len(d))
    (found,) = intervals(
        [repeated],
        Groups.singletons(len(repeated)),
        alpha=0.05,
        n_boot=1000,
        seed=0,
    )
    assert found.low >= 0.05 if np.mean(d) >= 0.05 else found.high < 0.1


def test_moments_are_those_of_the_list() -> None:
    # 0, 0, 3: mean 1; squares 1, 1, 4 average 2; cubes -1, -1, 8 average 2.
    assert Moments.of(np.array([0.0, 0.0, 3.0])) == Moments(1.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("number", "rounded"),
    [(1, 1), (7, 7), (10, 10), (14, 10), (16, 20), (25, 20), (35, 40), (96, 100)],
)
def test_one_figure_is_left(number: int, rounded: int) -> None:
    assert one_figure(number) == rounded


def test_one_figure_rounds_as_the_oracle_does() -> None:
    numbers = [*range(1, 3000), *range(95_000, 105_000, 50)]
    assert [one_figure(n) for n in numbers] == [ref.one_figure(n) for n in numbers]
