"""The rule from intervals and p-values to an exit code, at every boundary."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import reference as ref
from tiny import Case, random_case

from falsify_cli import defaults, gate
from falsify_cli.interval import Interval
from falsify_cli.nulls.draws import TAG_WEIGHTS, stream
from falsify_cli.verdict import (
    ExitCode,
    State,
    Verdict,
    exit_code,
    state_of,
    verdict_of,
    worst,
)

TAU, ALPHA = 0.05, 0.05


def state(
    delta: float,
    low: float,
    high: float,
    p: float,
    *,
    silent: bool = False,
    tau: float = TAU,
    alpha: float = ALPHA,
) -> str:
    span = Interval(low, high, 1 - alpha / 4, 0.0, 0.0)
    return str(state_of(delta, span, p, tau=tau, alpha=alpha, silent=silent))


@pytest.mark.parametrize(
    ("low", "p", "expected"),
    [
        pytest.param(0.0499999, 0.001, "open", id="end just under tau"),
        pytest.param(0.05, 0.001, "pass", id="end at tau"),
        pytest.param(0.0500001, 0.001, "pass", id="end just over tau"),
        pytest.param(0.2, 0.0124999, "pass", id="p just under alpha/4"),
        pytest.param(0.2, 0.0125, "pass", id="p at alpha/4"),
        pytest.param(0.2, 0.0125001, "open", id="p just over alpha/4"),
        pytest.param(0.0499999, 0.0125001, "open", id="neither"),
    ],
)
def test_a_null_passes_by_its_lower_end_and_its_p(
    low: float, p: float, expected: str
) -> None:
    assert state(0.3, low, 0.5, p) == expected


@pytest.mark.parametrize(
    ("delta", "high", "expected"),
    [
        pytest.param(0.0499999, 0.0999999, "fail", id="both just under"),
        pytest.param(0.05, 0.0999999, "open", id="gap at tau"),
        pytest.param(0.0500001, 0.0999999, "open", id="gap just over tau"),
        pytest.param(0.0499999, 0.1, "open", id="end at twice tau"),
        pytest.param(0.0499999, 0.1000001, "open", id="end just over twice tau"),
        pytest.param(-0.9, -0.8, "fail", id="far below"),
    ],
)
def test_a_null_fails_by_its_gap_and_its_upper_end(
    delta: float, high: float, expected: str
) -> None:
    assert state(delta, -0.95, high, 1.0) == expected
    assert state(delta, -0.95, high, 0.001) == expected


@pytest.mark.parametrize(
    ("delta", "low", "high", "p"),
    [
        pytest.param(0.0, -0.01, 0.01, 1.0, id="would fail"),
        pytest.param(0.5, 0.4, 0.6, 0.001, id="would pass"),
        pytest.param(0.1, 0.0, 0.2, 0.5, id="would be open"),
    ],
)
def test_a_silent_null_says_nothing_whatever_its_numbers(
    delta: float, low: float, high: float, p: float
) -> None:
    assert state(delta, low, high, p, silent=True) == "silent"


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_states_agree_with_the_oracle_on_a_grid(tau: float, alpha: float) -> None:
    for delta, low, high, p in itertools.product(
        (0.0, tau / 2, tau, 1.5 * tau),
        (-0.1, tau / 2, tau, 1.1 * tau),
        (tau, 1.9 * tau, 2 * tau, 0.9),
        (0.0, alpha / 8, alpha / 4, alpha / 2, 1.0),
    ):
        expected = ref.state(delta, low, high, p, tau=tau, alpha=alpha)
        assert state(delta, low, high, p, tau=tau, alpha=alpha) == expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param("pass pass pass pass", Verdict.PASS, id="all pass"),
        pytest.param("pass pass pass open", Verdict.UNDER_NS, id="one open"),
        pytest.param("silent silent pass silent", Verdict.UNDER_NS, id="one gold set"),
        pytest.param("pass silent pass pass", Verdict.UNDER_NS, id="one silent"),
        pytest.param("silent silent fail silent", Verdict.FAIL, id="C fails alone"),
        pytest.param("open pass pass fail", Verdict.FAIL, id="a fail beats an open"),
        pytest.param("pass pass pass fail", Verdict.FAIL, id="one fail"),
    ],
)
def test_the_verdict_follows_the_states(states: str, expected: Verdict) -> None:
    assert verdict_of(State(name) for name in states.split()) is expected
    assert ref.verdict(states.split()) == str(expected)


def test_the_verdict_of_every_four_states_is_the_oracles() -> None:
    for four in itertools.product(State, repeat=4):
        assert str(verdict_of(four)) == ref.verdict([str(s) for s in four])


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        pytest.param([Verdict.PASS], Verdict.PASS, id="one"),
        pytest.param([Verdict.PASS, Verdict.UNDER_NS], Verdict.UNDER_NS, id="2 < 1"),
        pytest.param([Verdict.UNDER_NS, Verdict.FAIL], Verdict.FAIL, id="fail worst"),
        pytest.param([Verdict.FAIL, Verdict.PASS], Verdict.FAIL, id="order of no heed"),
    ],
)
def test_the_worst_verdict_counts(verdicts: list[Verdict], expected: Verdict) -> None:
    assert worst(verdicts) is worst(reversed(verdicts)) is expected


@pytest.mark.parametrize(
    ("verdict", "plain", "exit_zero", "allow_under_ns"),
    [
        pytest.param(Verdict.PASS, 0, 0, 0, id="PASS"),
        pytest.param(Verdict.FAIL, 1, 0, 1, id="FAIL"),
        pytest.param(Verdict.UNDER_NS, 3, 0, 0, id="UNDER-NS"),
    ],
)
def test_the_exit_code_follows_the_verdict_and_what_is_forgiven(
    verdict: Verdict, plain: int, exit_zero: int, allow_under_ns: int
) -> None:
    assert exit_code(verdict) == plain
    assert exit_code(verdict, exit_zero=True) == exit_zero
    assert exit_code(verdict, allow_under_ns=True) == allow_under_ns
    assert exit_code(verdict, exit_zero=True, allow_under_ns=True) == exit_zero


def test_exit_codes_are_the_published_ones() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "PASS": 0,
        "FAIL": 1,
        "NO_VERDICT": 2,
        "UNDER_NS": 3,
        "FAULT": 70,
        "INTERRUPTED": 130,
    }


def test_the_rule_is_read_at_the_published_margin_and_error_rate() -> None:
    assert (defaults.TAU, defaults.ALPHA) == (ref.TAU, ref.ALPHA) == (TAU, ALPHA)
    assert [str(verdict) for verdict in Verdict] == ["PASS", "FAIL", "UNDER-NS"]


# ---- the whole chain -------------------------------------------------------------


def spoilt(seed: int, queries: int, found: int) -> Case:
    """Queries of which so many list their gold document first, the others last of 8."""
    run, qrels = random_case(seed, queries)
    for place, query in enumerate(run):
        gold = f"gold {place}"
        qrels[query][gold] = 2
        run[query][gold] = 1.0 if place < found else -9.0
    return run, qrels


@pytest.mark.parametrize("grouped", [False, True], ids=["queries", "groups"])
@pytest.mark.parametrize("metric", ["nDCG@3", "P@1", "R@2", "R@3_top1"])
@pytest.mark.parametrize(
    ("queries", "found"),
    [
        pytest.param(12, 0, id="few, poor"),
        pytest.param(12, 12, id="few, good"),
        pytest.param(40, 20, id="some, middling"),
        pytest.param(40, 40, id="some, good"),
        pytest.param(90, 0, id="more, poor"),
    ],
)
def test_the_gate_comes_to_the_verdict_the_oracle_comes_to(
    queries: int, found: int, metric: str, grouped: bool, tmp_path: Path
) -> None:
    run, qrels = spoilt(3, queries, found)
    names = [
        f"g{i % (2 * queries // 3):03}" if grouped else f"{i}" for i in range(queries)
    ]
    pairs = dict(zip(qrels, names, strict=True))
    groups_file = tmp_path / "groups"
    groups_file.write_text("".join(f"{q} {group}\n" for q, group in pairs.items()))
    corpus, n_boot, seed = 500, 250, 5
    judged = gate(
        run,
        qrels,
        metric,
        corpus=corpus,
        n_boot=n_boot,
        seed=seed,
        group=groups_file if grouped else None,
    )
    ordered = sorted(qrels, key=str.encode)
    groups = [pairs[query] for query in ordered] if grouped else None
    count = len(set(names))
    states, hints = [], {}
    for letter, null in judged.nulls.items():
        d = ref.differences(run, qrels, metric, letter, corpus_size=corpus)
        listed = [d[query] for query in ordered]
        low, high = ref.interval(
            listed,
            ref.rows_for(n_boot, count),
            ALPHA,
            stream(seed, TAG_WEIGHTS),
            groups,
        )
        assert null.delta == pytest.approx(ref.mean(listed), abs=1e-12)
        assert null.interval.low == pytest.approx(low, abs=1e-12)
        assert null.interval.high == pytest.approx(high, abs=1e-12)
        expected = ref.state(float(ref.mean(listed)), low, high, null.p_value)
        assert str(null.state) == expected
        states.append(expected)
        if expected == "open":
            hints[letter] = hinted(listed, groups)
    assert str(judged.verdict) == ref.verdict(states)
    assert {h.null: h.queries for h in judged.results[0].hints} == hints


def hinted(d: list[float], groups: list[str] | None) -> int | None:
    """The hint in queries, or in groups: the sum of each over the mean size."""
    if groups is None:
        return ref.hint(d)
    every = sorted(set(groups))
    sums = [
        sum(x for x, group in zip(d, groups, strict=True) if group == name)
        for name in every
    ]
    return ref.hint([total * len(every) / len(d) for total in sums])


def test_a_gap_of_tau_does_not_fail_for_its_last_bit() -> None:
    delta = math.nextafter(0.065, 0)
    span = Interval(0.01, 0.1, 0.9875, 0.0, 0.0)
    for gap, state in ((delta, State.OPEN), (delta - 1e-9, State.FAIL)):
        found = state_of(gap, span, 0.001, tau=0.065, alpha=0.05, silent=False)
        assert found is state
