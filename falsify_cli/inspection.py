"""Qrels -> Inspection: what a benchmark can and cannot tell, before there is a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Ints, sums_at
from falsify_cli.gold import Gold
from falsify_cli.interval import Groups
from falsify_cli.judgement import BenchmarkFacts, Judgement, Parameters, Result
from falsify_cli.metrics import KERNELS, Metric, companion_of
from falsify_cli.notices import paraphrase_notice, resampling_notice
from falsify_cli.nulls.marginals import label_counts
from falsify_cli.power import least_gap, queries_for
from falsify_cli.read import FileFacts
from falsify_cli.systems import Ground, ideal_lists
from falsify_cli.verdict import State
from falsify_cli.version import __version__

SCHEMA = "falsify.inspection/1"

# The constant list's length under a metric without a cutoff: one screen of results.
CONSTANT_DEPTH = 10
# The gaps to plan for: twice the usual margin, a solid one, a large one.
GAPS = (0.1, 0.2, 0.4)

# Below this few honest systems pass and few cheats fail.
_FEW_QUERIES = 40
# From here on a list hits one of the relevant documents by luck.
_MANY_RELEVANT = 5
# A label this common is worth showing to everybody.
_COMMON_LABEL = 0.3


@dataclass(frozen=True, slots=True)
class Spread:
    """A count a query: its mean, least and most over all judged queries."""

    mean: float
    least: int
    most: int

    @classmethod
    def of(cls, counts: Ints) -> Spread:
        """Summarise (N,) counts."""
        return cls(float(counts.mean()), int(counts.min()), int(counts.max()))


@dataclass(frozen=True, slots=True)
class Labels:
    """How concentrated the labels are: the documents that are gold for some query.

    sets: distinct gold sets. sharing: queries that share the commonest one.
    commonest: the label most queries have, and share, of the queries that have any,
    those that have it. effective: the number of labels that would be as spread out
    if all were equally common, 1 / sum of w_l squared.
    """

    sets: int
    sharing: int
    count: int
    commonest: str
    share: float
    effective: float


@dataclass(frozen=True, slots=True)
class Constant:
    """The best list that is the same for every query, as far as could be found.

    exact: no constant list of this length scores more; else the greedy choice.
    """

    documents: tuple[str, ...]
    score: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found.

    grades: how many judgments of each. constant: None under a measure without a
    kernel. random: what retrieval at random scores. ideal: the gate's answer on the
    ideal lists. least_gap: the smallest true gap that this many queries, or groups,
    would PASS with 80% power. queries_for: about how many a gap needs.
    """

    qrels: FileFacts
    parameters: Parameters
    metric: str
    judged: Spread
    relevant: Spread
    grades: dict[int, int]
    labels: Labels
    constant: Constant | None
    ideal: Judgement
    least_gap: float | None
    queries_for: dict[float, int | None]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def facts(self) -> BenchmarkFacts:
        """The benchmark in counts."""
        return self.ideal.benchmark

    @property
    def random(self) -> float:
        """What lists drawn from the corpus score: null C's expectation."""
        return self.ideal.nulls["C"].expected

    @property
    def units(self) -> tuple[int, str]:
        """What the interval resamples: so many queries, or groups of them."""
        if self.facts.groups is None:
            return self.facts.queries_judged, "queries"
        return self.facts.groups, "groups"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ideal = self.ideal.to_dict()["results"][0]
        return {
            "schema": SCHEMA,
            "version": __version__,
            "inputs": {"qrels": asdict(self.qrels)},
            "parameters": asdict(self.parameters),
            "metric": self.metric,
            "benchmark": asdict(self.facts),
            "judged_per_query": asdict(self.judged),
            "relevant_per_query": asdict(self.relevant),
            "grades": {str(grade): count for grade, count in self.grades.items()},
            "labels": asdict(self.labels),
            "scores": {
                "ideal": self.ideal.score,
                "constant": None if self.constant is None else asdict(self.constant),
                "random": self.random,
            },
            "ideal": {"verdict": ideal["verdict"], "nulls": ideal["nulls"]},
            "power": {
                "least_gap": self.least_gap,
                "queries_for": {str(gap): n for gap, n in self.queries_for.items()},
            },
            "warnings": list(self.warnings),
            "notices": list(self.notices),
        }


def inspect(ground: Ground) -> Inspection:
    """Look at a benchmark alone.

    Raises what the gate raises.
    """
    ideal, p = ground.judge(ideal_lists(ground)), ground.parameters
    (result,), facts = ideal.results, ideal.benchmark
    best = min(null.delta for null in result.nulls.values())
    silent = any(null.state is State.SILENT for null in result.nulls.values())
    units = facts.groups or facts.queries_judged
    grades, counts = np.unique(ground.qrels.grade, return_counts=True)
    relevant = ground.qrels.query[ground.relevant]
    labels, constant = _labels(ground), _constant(ground)
    spread = Spread.of(np.bincount(relevant, minlength=len(ground)))
    warnings = (
        *_warnings(ground.metric, facts, spread, labels),
        *_paraphrases(ground.gold, facts),
    )
    return Inspection(
        ground.qrels.facts,
        p,
        ground.metric.name,
        Spread.of(np.bincount(ground.qrels.query, minlength=len(ground))),
        spread,
        dict(zip(grades.tolist(), counts.tolist(), strict=True)),
        labels,
        constant,
        ideal,
        None if silent else least_gap(units, best, p),
        {
            gap: None if silent else queries_for(gap, best, p.tau, p.alpha)
            for gap in GAPS
        },
        warnings,
        (*ground.notices, *_notices(result, p, warnings)),
    )


def _labels(ground: Ground) -> Labels:
    gold = ground.gold
    documents, counts = label_counts(gold)
    first = int(np.argmax(counts))
    asked = int((gold.sets >= 0).sum())
    weights = counts / counts.sum()
    return Labels(
        len(gold.sizes),
        int(gold.multiplicities.max()),
        len(documents),
        ground.qrels.vocabulary.ids[int(documents[first])],
        float(counts[first] / asked),
        float(1 / (weights**2).sum()),
    )


def _constant(ground: Ground) -> Constant | None:
    """The constant list that takes, rank by rank, what raises the mean most."""
    if ground.metric.measure not in KERNELS:
        return None
    p = ground.parameters
    depths = [k for k in (ground.metric.cutoff, p.top_k) if k is not None]
    depth = min(depths, default=CONSTANT_DEPTH)
    codes, gain = best_constant_list(ground.gold, ground.metric, depth)
    return Constant(
        tuple(ground.universe.names(codes)),
        gain / len(ground),
        KERNELS[ground.metric.measure].linear,
    )


def best_constant_list(gold: Gold, metric: Metric, depth: int) -> tuple[Ints, float]:
    """One list for all queries, chosen greedily, and the sum of its scores.

    For a linear measure this is sorting by value, and no list does better. For RR,
    Success and AP it is what adds most at each rank; Success then reaches at least
    63% of the best list's score (Nemhauser, Wolsey & Fisher, 1978).
    Returns (k,) documents by code, k at most depth.
    """
    kernel = KERNELS[metric.measure]
    shares = gold.multiplicities / kernel.norms(gold, metric.cutoff)
    shares = shares[gold.owners]
    places, left = np.zeros(len(gold.sizes), np.int64), np.ones(len(shares), np.bool_)
    chosen, total, size = [], 0.0, int(gold.documents.max()) + 1
    for rank in range(1, depth + 1):
        ranks = np.full(len(shares), rank)
        values = kernel.values(ranks, gold.grades, places[gold.owners])
        gains = sums_at(gold.documents, np.where(left, values * shares, 0.0), size)
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        chosen.append(best)
        total += float(gains[best])
        here = gold.documents == best
        places[gold.owners[here]] += 1
        left &= ~here
    return np.array(chosen, np.int64), total


def _warnings(
    metric: Metric, facts: BenchmarkFacts, relevant: Spread, labels: Labels
) -> Iterator[str]:
    """What makes a benchmark a weak witness."""
    units = facts.groups or facts.queries_judged
    if units < _FEW_QUERIES:
        noun = "queries" if facts.groups is None else "groups of queries"
        yield (
            f"{units} {noun}, fewer than {_FEW_QUERIES}: expect UNDER-NS of all but "
            f"very good systems."
        )
    if relevant.mean > _MANY_RELEVANT and not metric.top1:
        companion = companion_of(metric, defaults.COMPANION_CUTOFF).name
        yield (
            f"{relevant.mean:.1f} relevant documents a query, more than "
            f"{_MANY_RELEVANT}: finding any of them is easy; look at the companion "
            f"metric as well (-m {companion}, or gate --strict)."
        )
    if labels.sets == 1:
        yield "One gold set: no metric can tell whether a system reads the query."
    elif labels.share > _COMMON_LABEL:
        yield (
            f"{labels.commonest} is relevant to {labels.share:.0%} of the queries: "
            f"showing it to everybody pays."
        )


def _paraphrases(gold: Gold, facts: BenchmarkFacts) -> list[str]:
    if facts.groups is not None:
        return []
    return paraphrase_notice(gold, Groups.singletons(facts.queries_judged))


def _notices(
    result: Result, parameters: Parameters, said: tuple[str, ...]
) -> Iterator[str]:
    """What the gate says of the ideal lists but for what is said or of no interest."""
    for null in result.nulls.values():
        said += (*resampling_notice(null.letter, null.interval, parameters.tau),)
    yield from (line for line in result.notices if line not in said)
