"""Processes that benchmarks are drawn from, and the true gaps to the four nulls.

A process is a population of 2,000 queries, made once by seed: each has a gold set, a
list that a skilled system returns and one that an unskilled system returns. A
benchmark is N queries drawn from it independently, with replacement; each shows the
skilled list with chance `skill`. What a null is expected to score is linear in the
lists, so every true gap is linear in skill: gap = blind + skill * (skilled - blind).
The two ends are worked out here, by plain loops and sums over whole arrays that share
no line with the program; see Truth for how, and how exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from zlib import crc32

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rng = np.random.Generator
GoldSet = dict[int, int]  # document -> grade
Golds = Callable[[Rng], GoldSet]
Lists = Callable[[Rng, GoldSet], Iterable[int]]  # best first; cut at the cutoff

POPULATION = 2_000
LETTERS = "ABCD"
# Documents from here on are judged for no query.
JUNK = 100_000
# Pairs of a query and a gold set that one step of the truth holds at once.
_PAIRS = 1 << 21


def stream(name: str, *numbers: int) -> Rng:
    """A random stream of its own for whatever is named."""
    return np.random.default_rng([crc32(name.encode()), *numbers])


# --- gold sets ---


def single(weights: Floats) -> Golds:
    """One relevant document a query, drawn in proportion to its weight."""
    chances = weights / weights.sum()
    return lambda rng: {int(rng.choice(len(chances), p=chances)): 1}


def zipf(labels: int, top: float = 0.0) -> Floats:
    """Weights 1/rank; where a top is given, that is the first label's share."""
    weights = 1 / np.arange(1.0, labels + 1)
    if top:
        weights[0] = weights[1:].sum() * top / (1 - top)
    return weights


def several(
    documents: int, mean: float, *, topics: int = 1, grades: int = 1, always: float = 0
) -> Golds:
    """About so many relevant documents a query, popular ones oftener.

    topics: a query's documents come from one of so many equal parts. always: the
    chance that document 0 is relevant as well.
    """
    part = documents // topics
    chances = zipf(part) ** 0.5 / (zipf(part) ** 0.5).sum()

    def gold(rng: Rng) -> GoldSet:
        size = min(1 + int(rng.poisson(mean - 1)), part)
        found = rng.choice(part, size, replace=False, p=chances)
        found += part * int(rng.integers(topics))
        graded = dict(
            zip(found.tolist(), rng.integers(1, grades + 1, size).tolist(), strict=True)
        )
        return graded | ({0: 1} if rng.random() < always else {})

    return gold


def one_of(sets: int, size: int) -> Golds:
    """One of a few disjoint gold sets, as in a list of frequent questions."""

    def gold(rng: Rng) -> GoldSet:
        first = size * int(rng.integers(sets))
        return dict.fromkeys(range(first, first + size), 1)

    return gold


def few_or_many(documents: int, many: int) -> Golds:
    """Half the queries have one relevant document, half of them have many."""
    few_gold, many_gold = several(documents, 1), several(documents, many)
    return lambda rng: (few_gold if rng.random() < 0.5 else many_gold)(rng)


def sometimes(gold: Golds, share: float) -> Golds:
    """No relevant document at all for the other queries."""
    return lambda rng: gold(rng) if rng.random() < share else {}


# --- lists ---


def junk(rng: Rng, gold: GoldSet) -> Iterable[int]:
    """Documents that nobody has judged."""
    documents: list[int] = (JUNK + rng.choice(2_000, 20, replace=False)).tolist()
    return documents


def constant(documents: int) -> Lists:
    """The same list for every query: the most popular documents."""
    return lambda rng, gold: chain(range(documents), junk(rng, gold))


def by_popularity(weights: Floats) -> Lists:
    """Documents drawn in proportion to their weight, for no query in particular."""
    logs = np.log(weights / weights.sum())

    def draw(rng: Rng, gold: GoldSet) -> Iterable[int]:
        order = np.argsort(-(logs + rng.gumbel(size=len(logs))))
        return chain(order.tolist(), junk(rng, gold))

    return draw


def random_documents(documents: int) -> Lists:
    """Judged documents at random."""
    return by_popularity(np.ones(documents))


def led_by(first: int, then: Lists) -> Lists:
    """The documents 0 .. first - 1 on top of every list."""
    return lambda rng, gold: chain(range(first), then(rng, gold))


def unless_gold(first: int, then: Lists) -> Lists:
    """One document on top of every list but of those whose query it answers."""
    return lambda rng, gold: chain([first] * (first not in gold), then(rng, gold))


def finding(chance: float, others: Lists) -> Lists:
    """At every rank the next relevant document with a chance, else another one."""

    def ranked(rng: Rng, gold: GoldSet) -> Iterable[int]:
        left = rng.permutation(list(gold)).tolist()
        rest = (doc for doc in others(rng, gold) if doc not in gold)
        while True:
            found = left and rng.random() < chance
            following = left.pop() if found else next(rest, None)
            if following is None:
                return
            yield following

    return ranked


def as_many_guesses(documents: int) -> Lists:
    """Knows how many answers a query has but not which: popular ones, or none."""
    popular = constant(documents)
    return lambda rng, gold: (popular if len(gold) > 2 else junk)(rng, gold)


# --- processes ---


@dataclass(frozen=True)
class Process:
    """A distribution over queries, gold sets and lists.

    measure, cutoff: the metric, of kernels alone. corpus: documents null C draws
    from. documents: 0 .. documents - 1 are relevant to some query.
    """

    name: str
    measure: str
    cutoff: int
    corpus: int
    documents: int
    gold: Golds
    skilled: Lists
    blind: Lists

    @property
    def metric(self) -> str:
        """The metric's name."""
        return f"{self.measure}@{self.cutoff}"


_SKEWED = zipf(60, 0.35)

PROCESSES = (
    Process(
        *("single gold, uniform over 50", "RR", 10, 10_000, 50),
        single(np.ones(50)),
        finding(0.6, random_documents(50)),
        random_documents(50),
    ),
    Process(
        *("single gold, uniform over 1,000", "R", 10, 20_000, 1_000),
        single(np.ones(1_000)),
        finding(0.5, junk),
        junk,
    ),
    Process(
        *("single gold, Zipf with a 35% label", "nDCG", 10, 10_000, 60),
        single(_SKEWED),
        finding(0.5, by_popularity(_SKEWED)),
        by_popularity(_SKEWED),
    ),
    Process(
        *("wrong popular answers on top", "nDCG", 10, 10_000, 60),
        single(_SKEWED),
        led_by(3, finding(0.8, junk)),
        constant(10),
    ),
    Process(
        *("popular list or the answer first", "Success", 5, 10_000, 60),
        single(_SKEWED),
        finding(1.0, constant(10)),
        constant(10),
    ),
    Process(
        *("two labels only", "Success", 1, 10_000, 2),
        single(np.array([0.6, 0.4])),
        finding(1.0, junk),
        random_documents(2),
    ),
    Process(
        *("a hub document on top of every list", "RR", 10, 10_000, 60),
        single(zipf(60, 0.30)),
        led_by(1, finding(0.9, junk)),
        led_by(1, junk),
    ),
    Process(
        *("a hub everywhere but where it answers", "RR", 10, 10_000, 60),
        single(zipf(60, 0.30)),
        finding(1.0, junk),
        unless_gold(0, junk),
    ),
    Process(
        *("a rare hub on top of every list", "RR", 10, 10_000, 100),
        single(np.append(3.0, np.ones(99))),
        led_by(1, finding(1.0, junk)),
        led_by(1, junk),
    ),
    Process(
        *("a hub in every gold set and list", "nDCG", 10, 10_000, 300),
        several(300, 3, always=0.95),
        led_by(1, finding(0.5, junk)),
        led_by(1, junk),
    ),
    Process(
        *("a hub in 39% of gold sets", "P", 5, 10_000, 300),
        several(300, 8, always=0.39),
        led_by(1, finding(0.7, by_popularity(zipf(300) ** 0.5))),
        constant(5),
    ),
    Process(
        *("near-perfect, a 92% label", "RR", 10, 10_000, 20),
        single(zipf(20, 0.92)),
        finding(1.0, constant(10)),
        constant(10),
    ),
    Process(
        *("zero-inflated, a tenth without gold", "nDCG", 10, 20_000, 400),
        sometimes(single(np.ones(400)), 0.9),
        finding(1.0, junk),
        junk,
    ),
    Process(
        *("several gold, mean 5, graded", "nDCG", 10, 10_000, 400),
        several(400, 5, topics=8, grades=3),
        finding(0.6, random_documents(400)),
        by_popularity(zipf(400) ** 0.5),
    ),
    Process(
        *("several gold, mean 5, average precision", "AP", 10, 10_000, 400),
        several(400, 5, topics=8),
        finding(0.8, random_documents(400)),
        random_documents(400),
    ),
    Process(
        *("several gold, mean 5, clustered", "Success", 5, 10_000, 400),
        several(400, 5, topics=20),
        finding(0.5, random_documents(400)),
        by_popularity(zipf(400) ** 0.5),
    ),
    Process(
        *("several gold, mean 38", "nDCG", 10, 3_600, 600),
        several(600, 38, grades=2),
        finding(0.7, by_popularity(zipf(600) ** 0.5)),
        by_popularity(zipf(600) ** 0.5),
    ),
    Process(
        *("several gold, mean 38, dense corpus", "P", 5, 2_700, 600),
        several(600, 38, topics=4),
        finding(0.8, random_documents(600)),
        random_documents(600),
    ),
    Process(
        *("eight gold sets of three", "R", 10, 10_000, 24),
        one_of(8, 3),
        finding(0.4, junk),
        random_documents(24),
    ),
    Process(
        *("knows how many answers, not which", "nDCG", 10, 10_000, 300),
        few_or_many(300, 12),
        finding(0.6, as_many_guesses(300)),
        as_many_guesses(300),
    ),
)
BY_NAME = {process.name: process for process in PROCESSES}


# --- a metric, in whole arrays ---


def score(measure: str, grades: Floats, sizes: Floats, ideals: Floats) -> Floats:
    """Score lists: grades (..., K) best first, 0 where not relevant.

    sizes, ideals: (...) relevant documents and ideal gain of each, not 0.

    >>> score("AP", np.array([[0, 1, 1]]), np.array([2.0]), np.ones(1)).tolist()
    [0.5833333333333333]
    """
    ranks = np.arange(1, grades.shape[-1] + 1)
    hits = grades > 0
    if measure == "nDCG":
        return np.asarray((grades / np.log2(ranks + 1)).sum(-1) / ideals)
    if measure == "RR":
        first = (np.cumsum(hits, -1) == 1) & hits
        return np.asarray((first / ranks).sum(-1))
    if measure == "AP":
        return np.asarray((hits * np.cumsum(hits, -1) / ranks).sum(-1) / sizes)
    if measure == "P":
        return np.asarray(hits.mean(-1))
    if measure == "R":
        return np.asarray(hits.sum(-1) / sizes)
    return np.asarray(hits.any(-1).astype(float))


# --- the population ---


@dataclass(frozen=True, eq=False)
class Population:
    """The queries of a process.

    golds: of each query. sets: (P,) number of each query's gold set, -1 where it is
    empty. grades: (U, documents) of each set. skilled, blind: (P, K) lists.
    """

    process: Process
    golds: list[GoldSet]
    sets: Ints
    grades: Floats
    skilled: Ints
    blind: Ints

    @classmethod
    def of(cls, process: Process) -> Population:
        """Make the queries of a process, always the same ones."""
        rng, depth = stream(process.name), process.cutoff
        golds = [process.gold(rng) for _ in range(POPULATION)]
        keys = [tuple(sorted(gold.items())) for gold in golds]
        if process.measure != "nDCG":
            keys = [tuple((doc, 1) for doc, _ in key) for key in keys]
        distinct = sorted({key for key in keys if key})
        number = {key: place for place, key in enumerate(distinct)} | {(): -1}
        grades = np.zeros((len(distinct), process.documents))
        for row, key in zip(grades, distinct, strict=True):
            row[[doc for doc, _ in key]] = [grade for _, grade in key]
        skilled, blind = (
            np.array([_cut(ranked(rng, gold), depth) for gold in golds])
            for ranked in (process.skilled, process.blind)
        )
        sets = np.array([number[key] for key in keys])
        return cls(process, golds, sets, grades, skilled, blind)

    @cached_property
    def sizes(self) -> Floats:
        """(U,) relevant documents of each set."""
        return np.asarray((self.grades > 0).sum(1).astype(float))

    @cached_property
    def ideals(self) -> Floats:
        """(U,) the best gain there is, down to the cutoff."""
        best = -np.sort(-self.grades, axis=1)[:, : self.process.cutoff]
        discounts = 1 / np.log2(np.arange(2, best.shape[1] + 2))
        return np.asarray((best * discounts).sum(1))

    @cached_property
    def means(self) -> Floats:
        """(U,) the mean grade of each set's relevant documents."""
        return np.asarray(self.grades.sum(1) / self.sizes)

    @cached_property
    def runs(self) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        """The blind and the skilled lists as the program takes them."""
        blind, skilled = (
            [
                {f"d{doc}": float(-rank) for rank, doc in enumerate(row)}
                for row in lists.tolist()
            ]
            for lists in (self.blind, self.skilled)
        )
        return blind, skilled

    @cached_property
    def qrels(self) -> list[dict[str, int]]:
        """The gold sets as the program takes them; a judged document at least."""
        return [
            {f"d{doc}": grade for doc, grade in gold.items()} or {"none": 0}
            for gold in self.golds
        ]

    def against_every_set(self, lists: Ints) -> Floats:
        """(P, U) every list against every gold set."""
        padded = np.pad(self.grades, ((0, 0), (0, 1)))
        measure = self.process.measure
        rows = [
            score(measure, padded[:, row], self.sizes, self.ideals)
            for row in np.minimum(lists, self.process.documents)
        ]
        return np.array(rows)


def _cut(documents: Iterable[int], depth: int) -> list[int]:
    """The first so many different documents."""
    return list(islice(dict.fromkeys(islice(documents, 4 * depth)), depth))


@lru_cache(maxsize=6)
def population(name: str) -> Population:
    """The population of a process by name."""
    return Population.of(BY_NAME[name])


# --- the true gaps ---


@dataclass(frozen=True)
class Truth:
    """The expected gaps to A, B, C and D at one number of queries.

    blind, skilled: (4,) at skill 0 and 1. error: (4,) standard errors, the larger of
    both ends. A is exact, from all pairs of the population and the chance 1/N of a
    query to meet its own gold. C is simulated rank by rank. B and D are means over
    simulated benchmarks, with A's exact value as control variate; D takes the chance
    of every label, or, for a metric that is not linear in the labels, draws them.
    """

    blind: tuple[float, ...]
    skilled: tuple[float, ...]
    error: tuple[float, ...]

    def skill_for(self, gap: float) -> float | None:
        """The skill whose smallest gap is this one; None where there is none.

        Four decimals of it, so that no machine's last digit moves a simulation.
        Unskilled lists that are off a gap of 0 by at most 0.005 are taken for it.
        """
        needed = [
            (gap - low) / (high - low)
            for low, high in zip(self.blind, self.skilled, strict=True)
            if low < gap
        ]
        skill = round(max(needed, default=0.0), 4)
        if skill > 1 or abs(min(self.gaps(skill)) - gap) > 0.005:
            return None
        return skill

    def gaps(self, skill: float) -> tuple[float, ...]:
        """The four gaps at a skill."""
        return tuple(
            low + skill * (high - low)
            for low, high in zip(self.blind, self.skilled, strict=True)
        )


def truth(name: str, count: int, queries: int) -> Truth:
    """Work out the true gaps at N = count; queries: to simulate, in benchmarks."""
    people, rng = population(name), stream(name, count)
    chosen = rng.integers(POPULATION, size=(max(queries // count, 40), count))
    random_score, random_error = _random_lists(people, queries, rng)
    ends, errors = [], []
    for lists, matrix in zip(
        (people.blind, people.skilled), _matrices(name), strict=True
    ):
        own = float(_own(matrix, people.sets).mean())
        other = float(_own(matrix.mean(0)[None, :], people.sets).mean())
        a = own / count + (1 - 1 / count) * other
        sampled_a, sampled_b = _relabelled(matrix, people.sets, chosen)
        b, error_b = _controlled(sampled_b, sampled_a, a)
        d, error_d = _controlled(_matched(people, lists, chosen, rng), sampled_a, a)
        ends.append((own - a, own - b, own - random_score, own - d))
        errors.append((0.0, error_b, random_error, error_d))
    blind, skilled = ends
    return Truth(blind, skilled, tuple(map(max, *errors)))


@lru_cache(maxsize=1)
def _matrices(name: str) -> tuple[Floats, Floats]:
    """(P, U) blind and skilled lists against every gold set; 64 MB at most."""
    people = population(name)
    return (
        people.against_every_set(people.blind),
        people.against_every_set(people.skilled),
    )


def _own(matrix: Floats, sets: Ints) -> Floats:
    """(P,) the column of each query's own set; 0 where that is empty."""
    rows = np.arange(len(sets)) % len(matrix)
    return np.where(sets >= 0, matrix[rows, sets], 0.0)


def _controlled(values: Floats, control: Floats, known: float) -> tuple[float, float]:
    """The mean of values, helped by a control whose mean is known; and its error."""
    spread = control - control.mean()
    slope = (values * spread).sum() / max((spread**2).sum(), 1e-12)
    helped = values - slope * (control - known)
    return float(helped.mean()), float(helped.std() / math.sqrt(len(helped)))


def _relabelled(matrix: Floats, sets: Ints, chosen: Ints) -> tuple[Floats, Floats]:
    """(S,) what A, and what B, expects of each simulated benchmark."""
    step = max(1, _PAIRS // chosen.shape[1] ** 2)
    padded = np.pad(matrix, ((0, 0), (0, 1)))  # set -1: an empty one
    a, b = [], []
    for low in range(0, len(chosen), step):
        rows = chosen[low : low + step]
        columns = sets[rows]
        times = (columns[:, :, None] == columns[:, None, :]).sum(2)
        once = np.where(columns >= 0, 1 / times, 0.0)
        means = padded[rows[:, :, None], columns[:, None, :]].mean(1)
        a.append(means.mean(1))
        b.append((means * once).sum(1) / np.maximum(once.sum(1), 1))
    return np.concatenate(a), np.concatenate(b)


def _random_lists(people: Population, queries: int, rng: Rng) -> tuple[float, float]:
    """What null C expects: ranks filled one after another from the corpus."""
    process = people.process
    sets = people.sets[rng.integers(POPULATION, size=4 * queries)]
    some = sets[sets >= 0]
    left, hits = people.sizes[some], np.zeros((len(some), process.cutoff))
    for rank in range(process.cutoff):
        hits[:, rank] = rng.random(len(some)) < left / (process.corpus - rank)
        left = left - hits[:, rank]
    grades = hits * people.means[some, None]
    scores = np.zeros(len(sets))
    scores[sets >= 0] = score(
        process.measure, grades, people.sizes[some], people.ideals[some]
    )
    return float(scores.mean()), float(scores.std() / math.sqrt(len(scores)))


def _matched(people: Population, lists: Ints, chosen: Ints, rng: Rng) -> Floats:
    """(S,) what null D expects, of each simulated benchmark."""
    process = people.process
    linear = process.measure in ("nDCG", "P", "R") or (people.sizes == 1).all()
    step = max(1, _PAIRS // max(process.documents, chosen.shape[1] * 10))
    padded = np.minimum(lists, process.documents)
    found = []
    for low in range(0, len(chosen), step):
        rows = chosen[low : low + step]
        weights = _label_weights(people, rows)
        one = _by_chances if linear else _by_draws
        found.append(one(people, padded[rows], people.sets[rows], weights, rng))
    return np.concatenate(found)


def _label_weights(people: Population, rows: Ints) -> Floats:
    """(s, documents + 1) each document's share of all gold; the last one is none."""
    member = np.pad(people.grades > 0, ((0, 1), (0, 1)))  # row -1: an empty set
    times = np.array([member[people.sets[row]].sum(0) for row in rows], float)
    return np.asarray(times / np.maximum(times.sum(1, keepdims=True), 1))


def _by_chances(
    people: Population, documents: Ints, sets: Ints, weights: Floats, rng: Rng
) -> Floats:
    """Every label for itself: drawn with chance min(1, g w), at the mean grade."""
    depth = people.process.cutoff
    lone = np.eye(depth) * people.means[:, None, None]
    values = score(
        people.process.measure, lone, people.sizes[:, None], people.ideals[:, None]
    )
    values = np.pad(values, ((0, 1), (0, 0)))  # set -1: an empty one
    sizes = np.append(people.sizes, 0.0)[sets]
    listed = np.take_along_axis(weights[:, None, :], documents, 2)
    chances = np.minimum(1, sizes[:, :, None] * listed)
    return np.asarray((chances * values[sets]).sum(2).mean(1))


def _by_draws(
    people: Population, documents: Ints, sets: Ints, weights: Floats, rng: Rng
) -> Floats:
    """One systematic draw a query, in one random order of the labels a benchmark."""
    sizes = np.append(people.sizes, 0.0)[sets]
    order = np.argsort(rng.random(weights.shape), axis=1)
    in_order = np.cumsum(np.take_along_axis(weights, order, 1), 1)
    ends = np.empty_like(in_order)
    np.put_along_axis(ends, order, in_order, 1)
    high = np.take_along_axis(ends[:, None, :], documents, 2)
    wide = np.take_along_axis(weights[:, None, :], documents, 2)
    points = rng.random(sets.shape)[:, :, None]
    first = np.ceil(sizes[:, :, None] * (high - wide) - points)
    hits = (first < sizes[:, :, None] * high - points) & (wide > 0)
    measure = people.process.measure
    scores = score(measure, hits.astype(float), np.maximum(sizes, 1), np.ones(1))
    return np.asarray(scores.mean(1))
