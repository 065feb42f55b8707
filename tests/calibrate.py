"""How often the gate errs, measured on benchmarks whose true gaps are known.

    python tests/calibrate.py [--minutes 20] [--workers 2] [--quick]

Draws benchmarks from the processes of processes.py at N = 5 .. 1000, with the skill
set so that the smallest true gap is 0, tau, 2 tau, 0.2 or 0.4, and judges each with
the program's own functions: mappings read, joined, graded, four nulls, intervals,
states. Prints Markdown. --minutes scales the number of benchmarks by a fixed table,
not by the clock, and every benchmark has a stream of its own, so that neither the
machine nor the number of workers changes a digit.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import add
from typing import TypeVar

import numpy as np
from processes import (
    JUNK,
    LETTERS,
    PROCESSES,
    Ints,
    Population,
    Process,
    Rng,
    Truth,
    population,
    stream,
    truth,
)

from falsify_cli import defaults
from falsify_cli.benchmark import join
from falsify_cli.grading import grade
from falsify_cli.hint import Moments, queries_to_settle
from falsify_cli.interval import Groups, Interval, intervals
from falsify_cli.metrics import parse_metric
from falsify_cli.nulls import Nulls, null_models, p_value
from falsify_cli.read import Keep, qrels_of_mapping, run_of_mapping
from falsify_cli.verdict import State, Verdict, state_of, verdict_of
from falsify_cli.version import __version__

TAU, ALPHA = defaults.TAU, defaults.ALPHA
# The fewest draws that the program takes: enough for p, and the least powerful.
N_BOOT = defaults.N_BOOT_LEAST
SIZES = (5, 10, 20, 40, 80, 150, 300, 1000)
GAPS = (0.0, TAU, 2 * TAU, 0.2, 0.4)
# Benchmarks of each cell at 20 minutes, by N: at the boundary, and elsewhere.
BOUNDARY = dict(zip(SIZES, (800, 800, 800, 800, 600, 400, 240, 40), strict=True))
ELSEWHERE = dict(zip(SIZES, (100, 100, 100, 100, 80, 60, 40, 10), strict=True))
CHEATED = dict(zip(SIZES, (60, 60, 60, 60, 40, 30, 16, 4), strict=True))
PARAPHRASED, PILOTS = 300, 16
LEAST = 2
# Queries simulated for each true gap.
TRUTH_QUERIES, QUICK_TRUTH_QUERIES = 60_000, 4_000
MOST_HINTED = 1_000

# What is required, in shares of benchmarks.
FALSE_PASS, FALSE_PASS_ANYWHERE, FALSE_FAIL, COVERAGE = 0.02, 0.05, 0.025, 0.95
HINTS_SETTLE = (0.65, 0.95)

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


# --- one benchmark through the program ---


@dataclass(frozen=True)
class Judged:
    """What the program says of one benchmark, null by null."""

    score: float
    nulls: Nulls
    spans: list[Interval]
    states: list[State]

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return verdict_of(self.states)

    @property
    def gaps(self) -> list[float]:
        """The gap to each null."""
        return [self.score - null.expected for null in self.nulls]

    def covers(self, gaps: Sequence[float]) -> list[bool]:
        """Whether each null's interval holds its true gap."""
        pairs = zip(self.spans, gaps, strict=True)
        return [span.low <= gap <= span.high for span, gap in pairs]


def judged(
    run: Run,
    qrels: Qrels,
    process: Process,
    seed: int,
    groupings: Sequence[Groups | None] = (None,),
) -> list[Judged]:
    """Judge a benchmark as `gate` does, once for each grouping of its queries.

    Left out: the scores by pytrec_eval, a tenth of the time, and the companion
    metric, half of it; neither has a say in the verdict.
    """
    metric = parse_metric(process.metric)
    read = run_of_mapping(run, Keep(metric.cutoff))
    benchmark = join(read, qrels_of_mapping(qrels))
    grading = grade(benchmark, metric, top_k=None, corpus=process.corpus)
    nulls = null_models(grading, N_BOOT, seed)
    silent = len(grading.gold.sizes) == 1
    found = []
    for groups in groupings:
        spans = intervals(
            [null.differences for null in nulls],
            groups or Groups.singletons(len(grading)),
            alpha=ALPHA,
            n_boot=N_BOOT,
            seed=seed,
        )
        states = [
            state_of(
                grading.score - null.expected,
                span,
                p_value(null, grading.score),
                tau=TAU,
                alpha=ALPHA,
                silent=silent and null.letter != "C",
            )
            for null, span in zip(nulls, spans, strict=True)
        ]
        found.append(Judged(grading.score, nulls, spans, states))
    return found


def drawn(people: Population, chosen: Ints, skilled: Ints) -> tuple[Run, Qrels]:
    """Run and qrels of some queries of a population, ids in the order given."""
    rows = list(enumerate(zip(chosen.tolist(), skilled.tolist(), strict=True)))
    return (
        {f"q{i:04}": people.runs[lists][query] for i, (query, lists) in rows},
        {f"q{i:04}": people.qrels[query] for i, (query, _) in rows},
    )


def sample(people: Population, count: int, skill: float, rng: Rng) -> tuple[Run, Qrels]:
    """Draw a benchmark of N = count queries."""
    chosen = rng.integers(len(people.golds), size=count)
    return drawn(people, chosen, (rng.random(count) < skill).astype(int))


# --- tallies ---


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over benchmarks.

    covered: (6,) benchmarks where the true gap lies in the interval of A, B, C, D, in
    all four, and in all four but those of silent nulls, which claim nothing.
    gaps, squares: (4,) sums of the gaps seen, and of their squares.
    """

    benchmarks: int = 0
    passes: int = 0
    fails: int = 0
    covered: tuple[int, ...] = (0,) * 6
    gaps: tuple[float, ...] = (0.0,) * 4
    squares: tuple[float, ...] = (0.0,) * 4

    @classmethod
    def of(cls, one: Judged, gaps: Sequence[float]) -> Tally:
        """Count one benchmark."""
        covers = one.covers(gaps)
        spoken = [
            held or state is State.SILENT
            for held, state in zip(covers, one.states, strict=True)
        ]
        return cls(
            1,
            int(one.verdict is Verdict.PASS),
            int(one.verdict is Verdict.FAIL),
            (*map(int, covers), int(all(covers)), int(all(spoken))),
            tuple(one.gaps),
            tuple(gap * gap for gap in one.gaps),
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.benchmarks + other.benchmarks,
            self.passes + other.passes,
            self.fails + other.fails,
            tuple(map(add, self.covered, other.covered)),
            tuple(map(add, self.gaps, other.gaps)),
            tuple(map(add, self.squares, other.squares)),
        )

    def deviations(self, truth: Truth, skill: float) -> list[float]:
        """How far the mean gaps lie from the true ones, in standard errors."""
        found = []
        for place, gap in enumerate(truth.gaps(skill)):
            mean = self.gaps[place] / self.benchmarks
            variance = max(self.squares[place] / self.benchmarks - mean**2, 0)
            error = math.hypot(
                math.sqrt(variance / self.benchmarks), truth.error[place]
            )
            found.append((mean - gap) / max(error, 1e-6))
        return found

    def error(self, share: float) -> float:
        """The binomial standard error of a true share over so many benchmarks."""
        return math.sqrt(share * (1 - share) / max(self.benchmarks, 1))

    @property
    def passed(self) -> float:
        """The share of PASS."""
        return self.passes / max(self.benchmarks, 1)

    @property
    def failed(self) -> float:
        """The share of FAIL."""
        return self.fails / max(self.benchmarks, 1)

    @property
    def joint(self) -> float:
        """The share of benchmarks where all four intervals hold the true gap."""
        return self.covered[4] / max(self.benchmarks, 1)

    @property
    def spoken(self) -> float:
        """The same, silent nulls left out."""
        return self.covered[5] / max(self.benchmarks, 1)


@dataclass(frozen=True)
class Cell:
    """Benchmarks of one process, size and true gap, from one replicate to another."""

    process: str
    count: int
    gap: float
    truth: Truth
    replicates: range

    @property
    def skill(self) -> float:
        """The skill that has the gap; only cells that have one are made."""
        skill = self.truth.skill_for(self.gap)
        assert skill is not None
        return skill

    def rng(self, purpose: str, replicate: int) -> Rng:
        """The stream of one benchmark."""
        key = f"{purpose} {self.process}"
        return stream(key, self.count, round(1000 * self.gap), replicate)


def tally_of(cell: Cell) -> Tally:
    """Draw and judge the benchmarks of a cell."""
    people, skill = population(cell.process), cell.skill
    gaps, total = cell.truth.gaps(skill), Tally()
    for replicate in cell.replicates:
        rng = cell.rng("cell", replicate)
        run, qrels = sample(people, cell.count, skill, rng)
        (one,) = judged(run, qrels, people.process, replicate)
        total += Tally.of(one, gaps)
    return total


# --- cheats ---

Cheat = Callable[[list[list[str]], list[str], Rng, Process], list[list[str]]]


def _constant(
    golds: list[list[str]], popular: list[str], rng: Rng, process: Process
) -> list[list[str]]:
    return [popular] * len(golds)


def _sampled(
    golds: list[list[str]], popular: list[str], rng: Rng, process: Process
) -> list[list[str]]:
    memberships = [doc for gold in golds for doc in gold]
    return [rng.permutation(memberships).tolist() for _ in golds]


def _of_another(
    golds: list[list[str]], popular: list[str], rng: Rng, process: Process
) -> list[list[str]]:
    order = rng.permutation(len(golds))
    answers: list[list[str]] = [[]] * len(golds)
    for mine, theirs in zip(order, np.roll(order, 1), strict=True):
        answers[mine] = golds[theirs]
    return answers


def _random(
    golds: list[list[str]], popular: list[str], rng: Rng, process: Process
) -> list[list[str]]:
    depth = process.cutoff
    return [
        [f"d{doc}" for doc in rng.choice(process.corpus, depth, replace=False)]
        for _ in golds
    ]


def _hub(
    golds: list[list[str]], popular: list[str], rng: Rng, process: Process
) -> list[list[str]]:
    return [popular[:1] + row for row in _random(golds, popular, rng, process)]


CHEATS: dict[str, Cheat] = {
    "constant popular list": _constant,
    "lists sampled by popularity": _sampled,
    "another query's answers": _of_another,
    "random lists": _random,
    "hub document first": _hub,
}
CHEATED_PROCESSES = (
    "single gold, uniform over 50",
    "single gold, Zipf with a 35% label",
    "two labels only",
    "several gold, mean 5, graded",
    "several gold, mean 38, dense corpus",
)


def cheated(cheat: str, qrels: Qrels, process: Process, rng: Rng) -> Run:
    """The run of a cheat that has seen the qrels, but not which query is whose."""
    golds = [[doc for doc, grade in row.items() if grade] for row in qrels.values()]
    times: dict[str, int] = {}
    for gold in golds:
        for doc in gold:
            times[doc] = times.get(doc, 0) + 1
    popular = sorted(times, key=lambda doc: (-times[doc], doc))
    lists = CHEATS[cheat](golds, popular, rng, process)
    depth = process.cutoff
    others = [f"d{JUNK + place}" for place in range(depth)]
    return {
        query: {
            doc: float(-rank)
            for rank, doc in enumerate(islice(dict.fromkeys([*row, *others]), depth))
        }
        for query, row in zip(qrels, lists, strict=True)
    }


@dataclass(frozen=True)
class CheatTask:
    """Benchmarks of one process and size, met by one cheat."""

    cheat: str
    process: str
    count: int
    replicates: range


def tally_of_cheat(task: CheatTask) -> Tally:
    """Draw benchmarks and judge the cheat on each."""
    people, total = population(task.process), Tally()
    for replicate in task.replicates:
        rng = stream(f"{task.cheat} {task.process}", task.count, replicate)
        _, qrels = sample(people, task.count, 0, rng)
        run = cheated(task.cheat, qrels, people.process, rng)
        (one,) = judged(run, qrels, people.process, replicate)
        total += Tally.of(one, (0,) * 4)
    return total


# --- paraphrases ---

NEEDS, PARAPHRASES = 30, 10
# How often a paraphrase gets what its need gets, skilled list or blind one.
FAITHFUL = 0.9
PARAPHRASED_PROCESSES = (
    "single gold, uniform over 50",
    "single gold, uniform over 1,000",
    "zero-inflated, a tenth without gold",
    "several gold, mean 5, graded",
    "several gold, mean 38",
    "eight gold sets of three",
)


def tallies_of_paraphrases(cell: Cell) -> tuple[Tally, Tally]:
    """Judge ten paraphrases of N needs, without groups and with.

    Their true gaps are those of N queries: repeating gold sets changes no null, and a
    paraphrase shows the skilled list as often as its need does.
    """
    people, skill = population(cell.process), cell.skill
    gaps, totals = cell.truth.gaps(skill), [Tally(), Tally()]
    need = np.repeat(np.arange(cell.count), PARAPHRASES)
    for replicate in cell.replicates:
        rng = cell.rng("paraphrases", replicate)
        chosen = rng.integers(len(people.golds), size=cell.count)[need]
        of_need = (rng.random(cell.count) < skill)[need]
        own = rng.random(len(need)) < skill
        skilled = np.where(rng.random(len(need)) < FAITHFUL, of_need, own)
        run, qrels = drawn(people, chosen, skilled.astype(int))
        both = judged(run, qrels, people.process, replicate, (None, Groups.of(need)))
        for place, one in enumerate(both):
            totals[place] += Tally.of(one, gaps)
    return totals[0], totals[1]


# --- hints ---

PILOT_SIZES = (10, 20, 40)
PILOT_GAPS = (0.0, 2 * TAU, 0.2, 0.4)


@dataclass(frozen=True, slots=True)
class Hinted:
    """Pilots that came out UNDER-NS, and what became of their largest hint.

    hopeless: no number was named for some open null. beyond: more queries than are
    simulated. followed: a fresh benchmark was drawn. settled: the null was not open.
    """

    hopeless: int = 0
    beyond: int = 0
    followed: int = 0
    settled: int = 0

    def __add__(self, other: Hinted) -> Hinted:
        return Hinted(
            self.hopeless + other.hopeless,
            self.beyond + other.beyond,
            self.followed + other.followed,
            self.settled + other.settled,
        )

    @property
    def share(self) -> float:
        """Settled of followed."""
        return self.settled / max(self.followed, 1)


def largest_hint(pilot: Judged) -> tuple[int, int] | None:
    """The null that takes longest to settle, and its number of queries."""
    numbers = [
        (queries_to_settle(Moments.of(null.differences), TAU, ALPHA), place)
        for place, null in enumerate(pilot.nulls)
        if pilot.states[place] is State.OPEN
    ]
    known = [(number, place) for number, place in numbers if number is not None]
    return max(known) if len(known) == len(numbers) and known else None


def hinted_of(cell: Cell) -> Hinted:
    """Follow the hints of the pilots of a cell."""
    people, skill, total = population(cell.process), cell.skill, Hinted()
    for replicate in cell.replicates:
        rng = cell.rng("pilot", replicate)
        run, qrels = sample(people, cell.count, skill, rng)
        (pilot,) = judged(run, qrels, people.process, replicate)
        if pilot.verdict is Verdict.UNDER_NS:
            total += _followed(pilot, people, skill, rng, replicate)
    return total


def _followed(
    pilot: Judged, people: Population, skill: float, rng: Rng, seed: int
) -> Hinted:
    hint = largest_hint(pilot)
    if hint is None:
        return Hinted(hopeless=1)
    number, place = hint
    if number > MOST_HINTED:
        return Hinted(beyond=1)
    run, qrels = sample(people, number, skill, rng)
    (fresh,) = judged(run, qrels, people.process, seed + 1)
    settled = fresh.states[place] is not State.OPEN
    return Hinted(followed=1, settled=int(settled))


# --- the plan, and its work ---


@dataclass
class Found:
    """All that was measured, by what it is about."""

    truths: dict[tuple[str, int], Truth] = field(default_factory=dict)
    cells: dict[tuple[str, int, float], Tally] = field(default_factory=dict)
    cheats: dict[tuple[str, str, int], Tally] = field(default_factory=dict)
    paraphrases: dict[str, tuple[Tally, Tally]] = field(default_factory=dict)
    hints: dict[tuple[str, int, float], Hinted] = field(default_factory=dict)


Task = TypeVar("Task")
Answer = TypeVar("Answer")


def spread(
    workers: int, work: Callable[[Task], Answer], tasks: Sequence[Task]
) -> list[Answer]:
    """Do all tasks, in their order or at once; the answers in their order."""
    answers = []
    with multiprocessing.Pool(workers) as pool:
        for answer in pool.imap(work, tasks, chunksize=1):
            answers.append(answer)
            done = f"{work.__name__} {len(answers)} of {len(tasks)}"
            print(f"\r{done:50}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answers


def scaled(number: int, scale: float) -> range:
    """The replicates of a cell; never fewer than LEAST."""
    return range(max(LEAST, round(number * scale)))


def cells_of(
    truths: dict[tuple[str, int], Truth],
    gaps: Sequence[float],
    replicates: Callable[[int, float], range],
) -> list[Cell]:
    """The cells whose gap some skill has."""
    return [
        Cell(name, count, gap, true, replicates(count, gap))
        for (name, count), true in truths.items()
        for gap in gaps
        if true.skill_for(gap) is not None
    ]


def _truth_of(task: tuple[str, int, int]) -> Truth:
    return truth(*task)


def measure(scale: float, workers: int) -> Found:
    """Do all the work; scale: 1 is 20 minutes on two cores."""
    names = [process.name for process in PROCESSES]
    places = [(name, count) for name in names for count in sorted({*SIZES, NEEDS})]
    queries = TRUTH_QUERIES if scale else QUICK_TRUTH_QUERIES
    tasks_of_truth = [(*place, queries) for place in places]
    every = dict(zip(places, spread(workers, _truth_of, tasks_of_truth), strict=True))
    found = Found({key: true for key, true in every.items() if key[1] in SIZES})
    cells = cells_of(
        found.truths,
        GAPS,
        lambda count, gap: scaled(
            (BOUNDARY if gap == TAU else ELSEWHERE)[count], scale
        ),
    )
    for cell, tally in zip(cells, spread(workers, tally_of, cells), strict=True):
        found.cells[cell.process, cell.count, cell.gap] = tally
    tasks = [
        CheatTask(cheat, name, count, scaled(CHEATED[count], scale))
        for name in CHEATED_PROCESSES
        for cheat in CHEATS
        for count in SIZES
    ]
    for task, tally in zip(tasks, spread(workers, tally_of_cheat, tasks), strict=True):
        found.cheats[task.cheat, task.process, task.count] = tally
    of_needs = {(name, NEEDS): every[name, NEEDS] for name in PARAPHRASED_PROCESSES}
    cells = cells_of(of_needs, [TAU], lambda count, gap: scaled(PARAPHRASED, scale))
    for cell, both in zip(
        cells, spread(workers, tallies_of_paraphrases, cells), strict=True
    ):
        found.paraphrases[cell.process] = both
    pilots = {key: true for key, true in found.truths.items() if key[1] in PILOT_SIZES}
    cells = cells_of(pilots, PILOT_GAPS, lambda count, gap: scaled(PILOTS, scale))
    for cell, hinted in zip(cells, spread(workers, hinted_of, cells), strict=True):
        found.hints[cell.process, cell.count, cell.gap] = hinted
    return found


# --- requirements ---


@dataclass(frozen=True)
class Check:
    """A bound on a share, cell by cell.

    shares: of each cell, with its benchmarks. above: whether more is worse. errors:
    how many binomial standard errors a cell may lie beyond the bound. required: False
    for a row that is only shown.
    """

    what: str
    bound: float
    shares: dict[str, tuple[float, int]]
    above: bool = True
    errors: float = 2
    required: bool = True

    def _excess(self, cell: str) -> float:
        share, _ = self.shares[cell]
        return share - self.bound if self.above else self.bound - share

    def _error(self, cell: str) -> float:
        return math.sqrt(self.bound * (1 - self.bound) / self.shares[cell][1])

    @property
    def beyond(self) -> list[str]:
        """The cells beyond the bound at all."""
        return [cell for cell in self.shares if self._excess(cell) > 1e-12]

    @property
    def missed(self) -> list[str]:
        """The cells beyond the bound by more than its errors."""
        return [
            cell
            for cell in self.beyond
            if self._excess(cell) > self.errors * self._error(cell)
        ]

    @property
    def pooled(self) -> float:
        """The share over all benchmarks."""
        total = sum(count for _, count in self.shares.values())
        return sum(share * count for share, count in self.shares.values()) / total

    def row(self) -> list[str]:
        """A line of the table of requirements."""
        worst = max(self.shares, key=self._excess)
        share, count = self.shares[worst]
        return [
            self.what,
            f"{'≤' if self.above else '≥'} {percent(self.bound)}",
            percent(self.pooled),
            f"{percent(share)} ± {percent(self._error(worst))} of {count}: {worst}",
            f"{len(self.beyond)} of {len(self.shares)}",
            f"{len(self.missed)}",
        ]


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f}%"


def checks_of(found: Found) -> list[Check]:
    """Everything that is required, cell by cell."""
    cells = {
        f"{name}, N={count}, gap {gap:g}": (gap, tally)
        for (name, count, gap), tally in found.cells.items()
    }
    shares: dict[str, dict[str, tuple[float, int]]] = {
        part: {} for part in ("boundary", "any", "fail", "joint", "spoken")
    }
    for cell, (gap, tally) in cells.items():
        if gap == TAU:
            shares["boundary"][cell] = tally.passed, tally.benchmarks
        if gap <= TAU:
            shares["any"][cell] = tally.passed, tally.benchmarks
        if gap >= 2 * TAU:
            shares["fail"][cell] = tally.failed, tally.benchmarks
        shares["joint"][cell] = tally.joint, tally.benchmarks
        shares["spoken"][cell] = tally.spoken, tally.benchmarks
    cheats = {
        f"{cheat}, {name}, N={count}": (tally.passed, tally.benchmarks)
        for (cheat, name, count), tally in found.cheats.items()
    }
    grouped = {
        name: (tally.passed, tally.benchmarks)
        for name, (_, tally) in found.paraphrases.items()
    }
    return [
        Check("false PASS, gap tau", FALSE_PASS, shares["boundary"]),
        Check("false PASS, gap 0 or tau", FALSE_PASS_ANYWHERE, shares["any"]),
        Check("FAIL, gap 2 tau or more", FALSE_FAIL, shares["fail"]),
        Check(
            "intervals of all nulls that speak, jointly",
            COVERAGE,
            shares["spoken"],
            above=False,
            errors=3,
        ),
        # A silent null claims nothing; its interval may miss the mean over benchmarks.
        Check(
            "all four, silent ones too (not required)",
            COVERAGE,
            shares["joint"],
            above=False,
            errors=3,
            required=False,
        ),
        Check("PASS of a cheat", 0.0, cheats, errors=0),
        Check("false PASS of paraphrases, grouped", FALSE_PASS, grouped),
        *_hint_checks(found),
    ]


def _hint_checks(found: Found) -> list[Check]:
    by_process: dict[str, Hinted] = {}
    for (name, _, _), hinted in found.hints.items():
        by_process[name] = by_process.get(name, Hinted()) + hinted
    total = sum(by_process.values(), Hinted())
    shares = {"all processes": (total.share, max(total.followed, 1))}
    low, high = HINTS_SETTLE
    return [
        Check("hinted number settles", low, shares, above=False),
        Check("hinted number settles", high, shares),
    ]


# --- Markdown ---


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, and an empty line."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def report(found: Found) -> Iterator[str]:
    """All tables."""
    checks = checks_of(found)
    yield "### What is required\n"
    yield from table(
        ["share of benchmarks", "bound", "pooled", "worst cell", "beyond", "missed"],
        (check.row() for check in checks),
    )
    for check in checks:
        mark = "MISSED" if check.required else "beyond"
        yield from (f"* {mark}: {check.what}: {cell}" for cell in check.missed)
    yield from _truth_lines(found)
    yield "### False PASS at a true gap of tau\n"
    yield from _boundary_table(found)
    yield "### By process and gap, all N together\n"
    yield from _pooled_table(found, "process", 0)
    yield "### By N and gap, all processes together\n"
    yield from _pooled_table(found, "N", 1)
    yield "### Cheats: PASS, and FAIL, of all benchmarks\n"
    yield from _cheat_table(found)
    yield "### Ten paraphrases of 30 needs, at a true gap of tau\n"
    yield from _paraphrase_table(found)
    yield "### Hints of UNDER-NS pilots\n"
    yield from _hint_table(found)


def _truth_lines(found: Found) -> Iterator[str]:
    """How exact the true gaps are, by themselves and against the gaps seen."""
    error = max(max(true.error) for true in found.truths.values())
    yield f"Largest standard error of a true gap: {error:.4f}."
    seen = {
        f"{name}, N={count}, null {letter}": value
        for (name, count, gap), tally in found.cells.items()
        if gap == TAU and tally.benchmarks >= BOUNDARY[300]
        for letter, value in zip(
            LETTERS,
            tally.deviations(
                found.truths[name, count], found.truths[name, count].skill_for(gap) or 0
            ),
            strict=True,
        )
    }
    if seen:
        root = math.sqrt(sum(value**2 for value in seen.values()) / len(seen))
        worst = max(seen, key=lambda key: abs(seen[key]))
        yield (
            f"Mean gaps seen less true gaps, in standard errors, over {len(seen)} "
            f"pairs of cell and null: root mean square {root:.2f}, "
            f"largest {seen[worst]:+.1f} ({worst})."
        )
    yield ""


def _boundary_table(found: Found) -> Iterator[str]:
    names = dict.fromkeys(name for name, _ in found.truths)
    rows = []
    for name in names:
        tallies = [found.cells.get((name, count, TAU)) for count in SIZES]
        rows.append([name, *("" if t is None else percent(t.passed) for t in tallies)])
    some = [
        sum(
            (t for (_, n, gap), t in found.cells.items() if (n, gap) == (count, TAU)),
            Tally(),
        )
        for count in SIZES
    ]
    rows.append(["**all**", *(percent(tally.passed) for tally in some)])
    first = [found.cells[next(iter(names)), count, TAU] for count in SIZES]
    rows.append(["benchmarks a cell", *(f"{tally.benchmarks}" for tally in first)])
    errors = (f"± {percent(tally.error(FALSE_PASS))}" for tally in first)
    rows.append(["standard error at 2%", *errors])
    yield from table(["process", *(f"N={count}" for count in SIZES)], rows)


def _pooled_table(found: Found, what: str, part: int) -> Iterator[str]:
    pooled: dict[tuple[str, float], Tally] = {}
    for key, tally in found.cells.items():
        place = (f"{key[part]}", key[2])
        pooled[place] = pooled.get(place, Tally()) + tally
    yield from table(
        [what, "gap", *TALLY_HEAD],
        (
            [name, f"{gap:g}", *tally_row(tally)]
            for (name, gap), tally in pooled.items()
        ),
    )


TALLY_HEAD = (
    "benchmarks",
    "PASS",
    "FAIL",
    "UNDER-NS",
    *LETTERS,
    "jointly",
    "but silent",
)


def tally_row(tally: Tally) -> list[str]:
    """The counts of a tally as percentages; coverage null by null, and jointly."""
    under = 1 - tally.passed - tally.failed
    covered = (count / max(tally.benchmarks, 1) for count in tally.covered)
    return [
        f"{tally.benchmarks}",
        *map(percent, (tally.passed, tally.failed, under, *covered)),
    ]


def _cheat_table(found: Found) -> Iterator[str]:
    rows = []
    for cheat in CHEATS:
        row = [cheat]
        for count in SIZES:
            tallies = [
                t for (c, _, n), t in found.cheats.items() if (c, n) == (cheat, count)
            ]
            total = sum(tallies, Tally())
            row.append(f"{total.passes}, {total.fails} of {total.benchmarks}")
        rows.append(row)
    yield from table(["cheat", *(f"N={count}" for count in SIZES)], rows)


def _paraphrase_table(found: Found) -> Iterator[str]:
    yield from table(
        ["process", "benchmarks", "PASS without groups", "with groups", "jointly"],
        (
            [
                name,
                f"{plain.benchmarks}",
                percent(plain.passed),
                percent(grouped.passed),
                f"{percent(plain.joint)}, {percent(grouped.joint)}",
            ]
            for name, (plain, grouped) in found.paraphrases.items()
        ),
    )


def _hint_table(found: Found) -> Iterator[str]:
    by: dict[tuple[str, str], Hinted] = {}
    for (name, count, gap), hinted in found.hints.items():
        for place in ((f"N={count}", f"{gap:g}"), (name, "all"), ("**all**", "all")):
            by[place] = by.get(place, Hinted()) + hinted
    yield from table(
        [
            "pilots",
            "gap",
            "UNDER-NS",
            "no number",
            "beyond 1,000",
            "followed",
            "settled",
        ],
        (
            [
                what,
                gap,
                f"{h.hopeless + h.beyond + h.followed}",
                f"{h.hopeless}",
                f"{h.beyond}",
                f"{h.followed}",
                percent(h.share),
            ]
            for (what, gap), h in sorted(by.items(), key=lambda item: item[0])
        ),
    )


def every_cell(found: Found) -> Iterator[str]:
    """One table of all cells."""
    rows = []
    for (name, count, gap), tally in found.cells.items():
        true = found.truths[name, count]
        skill = true.skill_for(gap) or 0.0
        gaps = [f"{value:+.3f}" for value in true.gaps(skill)]
        rows.append([name, f"{count}", f"{gap:g}", " ".join(gaps), *tally_row(tally)])
    yield from table(["process", "N", "gap", "true gaps A-D", *TALLY_HEAD], rows)


def main() -> int:
    """Measure and print; 1 where a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="about, on two cores")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="see that it runs")
    parser.add_argument("--cells", action="store_true", help="also one line a cell")
    asked = parser.parse_args()
    scale = 0.0 if asked.quick else asked.minutes / 20
    found = measure(scale, asked.workers)
    print(f"falsify {__version__}, numpy {np.__version__}, n_boot {N_BOOT}\n")
    for line in report(found):
        print(line)
    for line in every_cell(found) if asked.cells else ():
        print(line)
    return int(any(check.missed for check in checks_of(found) if check.required))


if __name__ == "__main__":
    sys.exit(main())
