"""Qrels -> Controls: does the gate know good systems from cheats on this benchmark?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import count
from typing import Any

from falsify_cli.columns import Floats
from falsify_cli.errors import UsageError
from falsify_cli.judge import Progress
from falsify_cli.judgement import BenchmarkFacts, Judgement, Parameters, Result
from falsify_cli.read import STDIN, FileFacts
from falsify_cli.systems import (
    DocumentLists,
    Ground,
    ideal_lists,
    partly_ideal_lists,
    pool_lists,
    popular_lists,
    random_lists,
    same_lists,
    sampled_lists,
    shuffled_lists,
    wrong_lists,
)
from falsify_cli.verdict import ExitCode, Verdict
from falsify_cli.version import __version__

SCHEMA = "falsify.controls/1"

# The share of the ideal score that a good system gets: the better half of what is
# published, and far from both ends.
GOOD_SHARE = 0.6

# The most controls there are, for the progress bar.
_MOST = 9


class Expected(str, Enum):
    """The verdict a control must come out with."""

    PASS = "PASS"
    NO_PASS = "not PASS"
    ANY = "any"

    def __str__(self) -> str:
        return self.value


class Outcome(str, Enum):
    """Whether the benchmark told a control for what it is."""

    RIGHT = "yes"
    OPEN = "cannot tell"
    WRONG = "WRONG"
    REPORTED = "-"

    def __str__(self) -> str:
        return self.value


class Answer(str, Enum):
    """Whether the benchmark, with this metric, can catch a cheat at all."""

    YES = "YES"
    PARTLY = "PARTLY"
    NO = "NO"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Control:
    """One system whose right verdict is known, and what the gate said of it."""

    name: str
    what: str
    expected: Expected
    judgement: Judgement

    @property
    def result(self) -> Result:
        """The gate's result under the one metric."""
        return self.judgement.results[0]

    @property
    def outcome(self) -> Outcome:
        """Whether the verdict is the right one."""
        verdict = self.result.own_verdict
        if self.expected is Expected.ANY:
            return Outcome.REPORTED
        if verdict is Verdict.UNDER_NS:
            return Outcome.OPEN
        passes = verdict is Verdict.PASS
        right = passes is (self.expected is Expected.PASS)
        return Outcome.RIGHT if right else Outcome.WRONG

    @property
    def queries_needed(self) -> int | None:
        """About how many queries would bring out the right verdict; None: no number.

        A good system must beat every null, a cheat is caught by any one of them.
        """
        hints = {hint.null: hint.queries for hint in self.result.hints}
        if self.expected is Expected.PASS:
            numbers = list(hints.values())
            return None if None in numbers else max(filter(None, numbers), default=None)
        tau = self.judgement.parameters.tau
        beaten_by = [
            number
            for letter, number in hints.items()
            if number is not None and self.result.nulls[letter].delta < tau
        ]
        return min(beaten_by, default=None)


@dataclass(frozen=True, slots=True)
class Controls:
    """All controls of one benchmark under one metric."""

    controls: tuple[Control, ...]
    qrels: FileFacts
    parameters: Parameters
    notices: tuple[str, ...]

    def __iter__(self) -> Iterator[Control]:
        return iter(self.controls)

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.controls[0].result.metric

    @property
    def facts(self) -> BenchmarkFacts:
        """The benchmark as the oracle meets it."""
        return self.controls[0].judgement.benchmark

    @property
    def good(self) -> list[Control]:
        """Those that must pass."""
        return [c for c in self if c.expected is Expected.PASS]

    @property
    def cheats(self) -> list[Control]:
        """Those that must not."""
        return [c for c in self if c.expected is Expected.NO_PASS]

    @property
    def caught(self) -> list[Control]:
        """The cheats that are known as such."""
        return [c for c in self.cheats if c.outcome is Outcome.RIGHT]

    @property
    def answer(self) -> Answer:
        """YES where all comes out right, NO where something comes out wrong.

        Between them, PARTLY where some cheat is caught, and NO where none is.
        """
        outcomes = [c.outcome for c in self]
        if Outcome.WRONG in outcomes or not self.caught:
            return Answer.NO
        return Answer.PARTLY if Outcome.OPEN in outcomes else Answer.YES

    @property
    def exit_code(self) -> ExitCode:
        """1 where a cheat passes or a good system fails, else 0."""
        wrong = any(c.outcome is Outcome.WRONG for c in self)
        return ExitCode.FAIL if wrong else ExitCode.PASS

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the numbers are those of the gate's own report."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "inputs": {"qrels": asdict(self.qrels)},
            "parameters": asdict(self.parameters),
            "metric": self.metric,
            "benchmark": asdict(self.facts),
            "answer": str(self.answer),
            "exit_code": int(self.exit_code),
            "controls": [_plain(control) for control in self],
            "notices": list(self.notices),
        }


def _plain(control: Control) -> dict[str, Any]:
    (result,) = control.judgement.to_dict()["results"]
    kept: Mapping[str, Any] = {key: result[key] for key in ("score", "nulls", "hints")}
    return {
        "name": control.name,
        "what": control.what,
        "expected": str(control.expected),
        "verdict": str(control.result.own_verdict),
        "outcome": str(control.outcome),
        **kept,
    }


def controls(ground: Ground, progress: Progress = lambda done, steps: None) -> Controls:
    """Put systems whose right verdict is known through the gate.

    Raises what the gate raises.
    """
    seed, done = ground.parameters.seed, count(1)
    if ground.parameters.group == STDIN:
        raise UsageError("group: expected a file, as every control reads it, found -")

    def put(system: System) -> Control:
        judgement = ground.judge(system.lists, tied=system.tied)
        progress(next(done), _MOST)
        return Control(system.name, system.what, system.expected, judgement)

    ideal = ideal_lists(ground)
    oracle = put(System("oracle", "the relevant documents, best first", ideal))
    drawn = random_lists(ground, seed)
    random = put(_cheat("random", "documents drawn from the corpus", drawn))
    lists = partly_ideal_lists(
        ground, _scores(oracle), drawn, _scores(random), GOOD_SHARE, seed
    )
    share = f"{GOOD_SHARE:.0%} of the oracle's score"
    good = put(System("good", f"ideal for some queries, else random: {share}", lists))
    others = [put(s) for s in _others(ground, seed) if any(map(len, s.lists))]
    return Controls(
        (oracle, good, random, *others),
        ground.qrels.facts,
        ground.parameters,
        (*ground.notices, *_pool_note(ground)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Lists to put through the gate. tied: all documents of a list score the same."""

    name: str
    what: str
    lists: DocumentLists
    expected: Expected = Expected.PASS
    tied: bool = False


def _cheat(name: str, what: str, lists: DocumentLists, tied: bool = False) -> System:
    return System(name, what, lists, Expected.NO_PASS, tied)


def _others(ground: Ground, seed: int) -> Iterator[System]:
    """The systems that are made without looking at another one's scores.

    A constant score is put on the judged documents of all queries, which makes one
    list for all. On a query's own judged documents it is another matter: choosing
    those is what a retriever is for, and where only relevant documents are judged
    the choice alone is the oracle. So that system, "pool", is reported without an
    expectation, and only where something else than relevant documents is judged.
    """
    for name, what, lists in (
        ("popular", "the documents relevant most often", popular_lists(ground)),
        (
            "sampled",
            "drawn by how often they are relevant",
            sampled_lists(ground, seed),
        ),
        ("shuffled", "another query's ideal list", shuffled_lists(ground, seed)),
        ("anti-oracle", "nothing that is relevant", wrong_lists(ground, seed)),
    ):
        yield _cheat(name, what, lists)
    what = "one score for all judged documents: ids order them"
    yield _cheat("constant", what, same_lists(ground), tied=True)
    if _judged_in_vain(ground):
        what = "the same, for the query's own judged documents alone"
        yield System("pool", what, pool_lists(ground), Expected.ANY, tied=True)


def _scores(control: Control) -> Floats:
    return control.result.per_query.scores


def _judged_in_vain(ground: Ground) -> bool:
    """Whether documents are judged that are not relevant."""
    return not ground.relevant.all()


def _pool_note(ground: Ground) -> list[str]:
    if not _judged_in_vain(ground):
        return []
    text = (
        f"pool: {ground.relevant.mean():.0%} of the judged documents are relevant. A "
        f"system that only reranks a query's judged documents starts from this score, "
        f"not from C's."
    )
    return [text]
