"""What the gate found, as small frozen values, and as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falsify_cli.columns import Floats
from falsify_cli.interval import Interval
from falsify_cli.read import FileFacts
from falsify_cli.ties import Ties
from falsify_cli.verdict import ExitCode, State, Verdict, exit_code

SCHEMA = "falsify.report/1"


@dataclass(frozen=True, slots=True)
class Parameters:
    """What was asked for; None where the user gave nothing."""

    tau: float
    alpha: float
    n_boot: int
    seed: int
    top_k: int | None
    rel_level: int
    queries: str
    corpus: int | str | None
    strict: bool
    drop_self: bool
    group: str | None


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """What run and qrels are, in counts.

    relevant_per_query: mean over all judged queries. corpus_source: "given", or
    "seen" where the documents of run and qrels stand in for the corpus. groups: of
    queries, where they were given.
    """

    queries_judged: int
    queries_answered: int
    queries_without_relevant: int
    queries_ignored: int
    relevant_per_query: float
    distinct_gold_sets: int
    corpus_size: int
    corpus_source: str
    groups: int | None


@dataclass(frozen=True, slots=True)
class NullResult:
    """One null model beside the run; scores and gaps in metric units."""

    letter: str
    expected: float
    exact: bool
    standard_error: float
    draws_mean: float
    delta: float
    interval: Interval
    p_value: float
    state: State
    meaning: str


@dataclass(frozen=True, slots=True)
class Hint:
    """About how many queries would settle an open null; None where none would."""

    null: str
    queries: int | None
    text: str


@dataclass(frozen=True, slots=True)
class QueryScore:
    """One query's score, and what each null is expected to score on it."""

    query: str
    score: float
    expected: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class PerQuery(Sequence[QueryScore]):
    """The scores of all N queries, made into values as they are asked for.

    queries: N ids. scores: (N,). expected: of each null by letter, (N,).
    """

    queries: list[str]
    scores: Floats
    expected: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        expected = {k: float(values[index]) for k, values in self.expected.items()}
        return QueryScore(self.queries[index], float(self.scores[index]), expected)


@dataclass(frozen=True, slots=True)
class Result:
    """The run under one metric.

    own_verdict: of this metric alone; verdict: under --strict the worse of it and
    the companion's. depth: the rank beyond which nothing counts. judged_share: of
    the listed documents that deep.
    """

    metric: str
    score: float
    verdict: Verdict
    own_verdict: Verdict
    depth: int | None
    judged_share: float
    nulls: Mapping[str, NullResult]
    ties: Ties | None
    hints: tuple[Hint, ...]
    notices: tuple[str, ...]
    companion: Result | None
    per_query: PerQuery


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of the gate: a result for each metric, and the worst verdict."""

    version: str
    run: FileFacts
    qrels: FileFacts
    parameters: Parameters
    benchmark: BenchmarkFacts
    verdict: Verdict
    results: tuple[Result, ...]
    notices: tuple[str, ...]

    @property
    def score(self) -> float:
        """The run's score under the first metric."""
        return self.results[0].score

    @property
    def nulls(self) -> Mapping[str, NullResult]:
        """The four nulls under the first metric, by letter."""
        return self.results[0].nulls

    @property
    def exit_code(self) -> ExitCode:
        """What the command exits with where nothing is forgiven."""
        return exit_code(self.verdict)

    def to_dict(
        self, *, per_query: bool = False, exit_code: int | None = None
    ) -> dict[str, Any]:
        """The report as plain values, numbers at 12 significant digits.

        per_query: with the scores of every query. exit_code: what the command
        exits with, if not what the verdict alone says.
        """
        plain = {
            "schema": SCHEMA,
            "version": self.version,
            "inputs": {"run": _input(self.run), "qrels": _input(self.qrels)},
            "parameters": _fields(self.parameters),
            "benchmark": _fields(self.benchmark),
            "verdict": str(self.verdict),
            "exit_code": int(self.exit_code if exit_code is None else exit_code),
            "results": [
                _result(result, per_query, self.notices) for result in self.results
            ],
        }
        rounded = _rounded(plain)
        assert isinstance(rounded, dict)
        return rounded


def _input(facts: FileFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "sha256": facts.sha256,
        "lines": facts.lines,
        "notes": list(facts.notes),
    }


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _result(
    result: Result, per_query: bool, of_inputs: tuple[str, ...] = ()
) -> dict[str, Any]:
    companion = result.companion
    plain = _fields(result)
    plain |= {
        "verdict": str(result.verdict),
        "own_verdict": str(result.own_verdict),
        "nulls": {letter: _null(null) for letter, null in result.nulls.items()},
        "ties": None if result.ties is None else _fields(result.ties),
        "hints": [_fields(hint) for hint in result.hints],
        "notices": [*of_inputs, *result.notices],
        "companion": None if companion is None else _result(companion, per_query),
    }
    del plain["per_query"]
    if per_query:
        plain["per_query"] = [
            {"query": row.query, "score": row.score, "expected": dict(row.expected)}
            for row in result.per_query
        ]
    return plain


def _null(null: NullResult) -> dict[str, Any]:
    interval = null.interval
    plain = _fields(null)
    del plain["letter"]
    plain["state"] = str(null.state)
    plain["interval"] = {
        "low": interval.low,
        "high": interval.high,
        "level": interval.level,
        "resampling_error": max(interval.low_error, interval.high_error),
    }
    return plain


def _rounded(value: Any) -> Any:
    """Round floats to 12 significant digits: more would be noise of the machine."""
    if isinstance(value, float):
        return float(f"{value:.12g}") + 0.0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
