"""Intervals and p-values -> states -> verdict -> exit code: the rule."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from falsify_cli.interval import Interval


class Verdict(str, Enum):
    """What the gate says of a run under one metric."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDER_NS = "UNDER-NS"

    def __str__(self) -> str:
        return self.value


class State(str, Enum):
    """What one null says: cleared, not cleared, nothing at all, or too little."""

    PASS = "pass"
    FAIL = "fail"
    SILENT = "silent"
    OPEN = "open"

    def __str__(self) -> str:
        return self.value


class ExitCode(IntEnum):
    """Process exit codes; public, listed in the README."""

    PASS = 0
    FAIL = 1
    NO_VERDICT = 2
    UNDER_NS = 3
    FAULT = 70
    INTERRUPTED = 130


# How far two computations of one mean score may lie apart, in metric units.
_ROUNDING = 1e-12

# From worst to best; several metrics, or a metric and its companion, take the worst.
_SEVERITY = (Verdict.FAIL, Verdict.UNDER_NS, Verdict.PASS)

_EXIT_CODES = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.UNDER_NS: ExitCode.UNDER_NS,
}


def state_of(
    delta: float,
    interval: Interval,
    p_value: float,
    *,
    tau: float,
    alpha: float,
    silent: bool,
) -> State:
    """Tell one null's state.

    delta: the gap, in metric units. silent: the null cannot tell anything apart on
    this benchmark.
    """
    if silent:
        return State.SILENT
    if interval.low >= tau and p_value <= alpha / 4:
        return State.PASS
    # A gap of tau itself is no failure, however its last bit was rounded.
    if delta < tau - _ROUNDING and interval.high < 2 * tau:
        return State.FAIL
    return State.OPEN


def verdict_of(states: Iterable[State]) -> Verdict:
    """PASS where all pass, FAIL where one fails, else UNDER-NS."""
    states = list(states)
    if State.FAIL in states:
        return Verdict.FAIL
    passed = all(state is State.PASS for state in states)
    return Verdict.PASS if passed else Verdict.UNDER_NS


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts."""
    return min(verdicts, key=_SEVERITY.index)


def exit_code(
    verdict: Verdict, *, exit_zero: bool = False, allow_under_ns: bool = False
) -> ExitCode:
    """The code a verdict exits with; the two options forgive it."""
    forgiven = exit_zero or (allow_under_ns and verdict is Verdict.UNDER_NS)
    return ExitCode.PASS if forgiven else _EXIT_CODES[verdict]
