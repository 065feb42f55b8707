"""Run and qrels dictionaries in; the numbers `falsify` must compute out, the slow way.

The oracle: written from the design alone, without a look at the program. Loops and
dictionaries, `Fraction` where a number is rational, full enumeration of each null's
definition; `closed_*` repeat the design's formulas for cases too large to enumerate.
A run is {query: {document: score}}, qrels are {query: {document: grade}}.
"""

# The nulls are called A, B, C and D everywhere, so functions carry these letters.
# ruff: noqa: N802

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, pairwise, permutations, product
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from scipy import integrate, optimize  # type: ignore[import-untyped,unused-ignore]

Number: TypeAlias = Fraction | float
Gold: TypeAlias = Mapping[str, int]
Run: TypeAlias = Mapping[str, Mapping[str, float]]
Qrels: TypeAlias = Mapping[str, Gold]

TAU = 0.05
ALPHA = 0.05
SLACK = 1e-12  # a null score this little below the run's counts as reaching it


# ---- small helpers -------------------------------------------------------------


def as_bytes(text: str) -> bytes:
    """Return the UTF-8 bytes of an id; ids are ordered by these.

    >>> sorted(["é", "z"], key=as_bytes)
    ['z', 'é']
    """
    return text.encode()


def mean(values: Iterable[Number]) -> Number:
    """Average: a Fraction if all values are Fractions, else a float.

    >>> mean([Fraction(1), Fraction(1, 3)])
    Fraction(2, 3)
    """
    listed = list(values)
    if all(isinstance(value, Fraction) for value in listed):
        return sum((Fraction(value) for value in listed), Fraction(0)) / len(listed)
    return math.fsum(float(value) for value in listed) / len(listed)


def parse(metric: str) -> tuple[str, int | None, bool]:
    """Split an ir_measures name into (family, cutoff, strict single gold).

    Raises ValueError on any other name.

    >>> parse("nDCG@10"), parse("AP"), parse("R@5_top1")
    (('nDCG', 10, False), ('AP', None, False), ('R', 5, True))
    """
    found = re.fullmatch(r"(nDCG|AP|RR|P|R|Success)(?:@(\d+))?(_top1)?", metric)
    if found is None:
        raise ValueError(f"unknown metric {metric!r}")
    family, cutoff, strict = found.groups()
    if cutoff is None and family in {"P", "R", "Success"}:
        raise ValueError(f"{family} needs a cutoff, got {metric!r}")
    if strict is not None and family != "R":
        raise ValueError(f"only R@k has a _top1 form, got {metric!r}")
    return family, None if cutoff is None else int(cutoff), strict is not None


# ---- order, gold, score --------------------------------------------------------


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Order documents: score descending as doubles, ties by id descending as bytes.

    >>> ranked({"a": 1.0, "b": 1.0, "c": 2.0, "B": 1.0})
    ['c', 'b', 'a', 'B']
    """
    return sorted(scores, key=lambda doc: (scores[doc], as_bytes(doc)), reverse=True)


def top1(gold: Gold, level: int = 1) -> dict[str, int]:
    """Keep the highest-graded relevant document, as {document: 1}.

    Ties in grade go to the smallest id as bytes; {} if nothing is relevant.

    >>> top1({"c": 2, "b": 2, "a": 1})
    {'b': 1}
    """
    relevant = [doc for doc in gold if gold[doc] >= level]
    if not relevant:
        return {}
    best = max(gold[doc] for doc in relevant)
    return {min((doc for doc in relevant if gold[doc] == best), key=as_bytes): 1}


def gold_set(metric: str, judged: Gold, level: int = 1) -> dict[str, int]:
    """Return the documents that are gold for this metric, with their gains.

    nDCG: grade >= 1 whatever the level, the gain is the grade. Others: grade >= level,
    the gain is 1: a metric that ignores grades sees no difference between two sets
    that differ in nothing else. Documents in order of id, so that equal sets are equal
    item by item.

    >>> judged = {"b": 2, "a": 1, "c": 0, "d": -1}
    >>> gold_set("nDCG@3", judged, level=2), gold_set("P@3", judged, level=2)
    ({'a': 1, 'b': 2}, {'b': 1})
    """
    family, _, strict = parse(metric)
    if strict:
        return top1(judged, level)
    graded = family == "nDCG"
    least = 1 if graded else level
    return {
        doc: judged[doc] if graded else 1
        for doc in sorted(judged, key=as_bytes)
        if judged[doc] >= least
    }


def discounted_gain(grades: Iterable[int]) -> float:
    """Sum the grades, linear, each over log2(rank + 1).

    >>> discounted_gain([3, 0, 1])
    3.5
    """
    return math.fsum(
        grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1)
    )


def score_labels(
    metric: str, ranking: Sequence[str], labels: Gold, own: Gold
) -> Number:
    """Score a list against labels whose ideal and number of relevant are `own`'s.

    labels, own: gold sets (see gold_set); the same one except under null D.
    Returns a Fraction, or a float for nDCG; 0 if `own` is empty.

    >>> score_labels("AP@3", ["x", "a", "b"], {"a": 1, "b": 1}, {"a": 1, "b": 1})
    Fraction(7, 12)
    """
    family, cutoff, _ = parse(metric)
    if not own:
        return Fraction(0)
    seen = list(ranking) if cutoff is None else list(ranking[:cutoff])
    if family == "nDCG":
        ideal = discounted_gain(sorted(own.values(), reverse=True)[:cutoff])
        return discounted_gain(labels.get(doc, 0) for doc in seen) / ideal
    ranks = [rank for rank, doc in enumerate(seen, start=1) if doc in labels]
    if family == "P":
        assert cutoff is not None
        return Fraction(len(ranks), cutoff)
    if family == "R":
        return Fraction(len(ranks), len(own))
    if family == "Success":
        return Fraction(1 if ranks else 0)
    if family == "RR":
        return Fraction(1, ranks[0]) if ranks else Fraction(0)
    precisions = [Fraction(hit, rank) for hit, rank in enumerate(ranks, start=1)]
    return sum(precisions, Fraction(0)) / len(own)


def score(metric: str, ranking: Sequence[str], gold: Gold, level: int = 1) -> float:
    """Score one ranked list against one query's judgments, of any grade.

    >>> score("nDCG@2", ["x", "a"], {"a": 1, "b": -2})
    0.6309297535714575
    """
    own = gold_set(metric, gold, level)
    return float(score_labels(metric, ranking, own, own))


# ---- the benchmark -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Judged queries with their lists (ordered and cut) and gold sets.

    queries: sorted by id as bytes. lengths: each list before --top-k cut it, 0 where
    the run does not answer. Every dictionary has exactly the keys in `queries`.
    """

    metric: str
    queries: list[str]
    rankings: dict[str, list[str]]
    lengths: dict[str, int]
    golds: dict[str, dict[str, int]]
    top_k: int | None

    def cell(self, query: str, gold: Gold) -> Number:
        """Return one cell of M: this query's list against any gold set."""
        return score_labels(self.metric, self.rankings[query], gold, gold)

    def scores(self) -> dict[str, Number]:
        """Return s_q, the run's score on each query, exact where rational."""
        return {query: self.cell(query, self.golds[query]) for query in self.queries}


def gold_sets(
    qrels: Qrels, metric: str, level: int = 1, queries: Iterable[str] | None = None
) -> dict[str, dict[str, int]]:
    """Return each judged query's gold set, or that of the named queries; may be {}.

    >>> gold_sets({"q2": {"a": 0}, "q1": {"a": 1, "b": 0}}, "P@1")
    {'q1': {'a': 1}, 'q2': {}}
    """
    wanted = sorted(qrels if queries is None else queries, key=as_bytes)
    return {query: gold_set(metric, qrels[query], level) for query in wanted}


def distinct_gold_sets(golds: Mapping[str, Gold]) -> list[dict[str, int]]:
    """Return the distinct non-empty gold sets, as (document, gain) pairs, sorted.

    >>> distinct_gold_sets({"q1": {"b": 1}, "q2": {"a": 1}, "q3": {"b": 1}, "q4": {}})
    [{'a': 1}, {'b': 1}]
    """
    found: list[dict[str, int]] = []
    for gold in golds.values():
        if gold and dict(gold) not in found:
            found.append(dict(gold))
    return sorted(found, key=lambda gold: sorted((as_bytes(d), gold[d]) for d in gold))


def benchmark(
    run: Run,
    qrels: Qrels,
    metric: str,
    level: int = 1,
    top_k: int | None = None,
    answered_only: bool = False,
) -> Benchmark:
    """Settle order, ties and gaps.

    All judged queries stay (or the answered ones, on request); run queries without
    judgments go; a query that the run does not answer has an empty list.
    Raises ValueError if no query is shared or no document is relevant anywhere.
    """
    answered = [query for query in qrels if run.get(query)]
    if not answered:
        raise ValueError("no query has both judgments and results")
    queries = sorted(answered if answered_only else qrels, key=as_bytes)
    golds = gold_sets(qrels, metric, level, queries)
    if not any(golds.values()):
        raise ValueError("no document is relevant for any query")
    full = {query: ranked(run.get(query, {})) for query in queries}
    return Benchmark(
        metric,
        queries,
        {query: full[query][:top_k] for query in queries},
        {query: len(full[query]) for query in queries},
        golds,
        top_k,
    )


def mean_score(
    run: Run,
    qrels: Qrels,
    metric: str,
    level: int = 1,
    top_k: int | None = None,
    answered_only: bool = False,
) -> float:
    """Return the mean over all judged queries, as `trec_eval -c` does.

    >>> mean_score({"q1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"a": 1}}, "P@1")
    0.5
    """
    bench = benchmark(run, qrels, metric, level, top_k, answered_only)
    return float(mean(bench.scores().values()))


# ---- null A: the gold sets dealt out again -------------------------------------


def matrix(bench: Benchmark) -> dict[tuple[str, str], Number]:
    """Return {(query, owner): query's list against owner's gold set}."""
    return {
        (query, owner): bench.cell(query, bench.golds[owner])
        for query in bench.queries
        for owner in bench.queries
    }


def null_scores_A(bench: Benchmark) -> list[Number]:
    """Return the mean null score of each of the N! permutations."""
    cells = matrix(bench)
    return [
        mean(
            cells[query, owner]
            for query, owner in zip(bench.queries, dealt, strict=True)
        )
        for dealt in permutations(bench.queries)
    ]


def query_means_A(bench: Benchmark) -> dict[str, Number]:
    """Return each query's mean over all N gold sets, its own included."""
    cells = matrix(bench)
    return {
        query: mean(cells[query, owner] for owner in bench.queries)
        for query in bench.queries
    }


def expected_A(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return E_A by running through all N! permutations (N up to 7 or so)."""
    return float(mean(null_scores_A(benchmark(run, qrels, metric, level, top_k))))


def closed_A(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return E_A as the mean over all N x N cells of M."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(query_means_A(bench).values()))


def p_value_A_exact(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return the share of all N! permutations that score at least the run's mean."""
    bench = benchmark(run, qrels, metric, level, top_k)
    reached = mean(bench.scores().values())
    nulls = null_scores_A(bench)
    return sum(1 for null in nulls if null >= reached - SLACK) / len(nulls)


# ---- null B: a distinct gold set each ------------------------------------------


def query_means_B(bench: Benchmark) -> dict[str, Number]:
    """Return each query's mean over the U distinct non-empty gold sets."""
    sets = distinct_gold_sets(bench.golds)
    return {
        query: mean(bench.cell(query, gold) for gold in sets) for query in bench.queries
    }


def null_scores_B(bench: Benchmark) -> list[Number]:
    """Return the mean null score of each of the U^N joint choices."""
    sets = distinct_gold_sets(bench.golds)
    rows = [[bench.cell(query, gold) for gold in sets] for query in bench.queries]
    return [mean(choice) for choice in product(*rows)]


def expected_B(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return E_B by giving each query each of the U distinct gold sets."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(query_means_B(bench).values()))


# ---- null C: K documents from the corpus ---------------------------------------


def list_length_C(bench: Benchmark, query: str) -> int:
    """Return K: --top-k, else the metric's cutoff, else the list's own length."""
    _, cutoff, _ = parse(bench.metric)
    if bench.top_k is not None:
        return bench.top_k
    return bench.lengths[query] if cutoff is None else cutoff


def query_means_C(bench: Benchmark, corpus_size: int) -> dict[str, Number]:
    """Return each query's mean over all ordered lists of K of the N_c documents.

    The corpus is the query's gold documents and nameless others, the rest of it.
    Raises ValueError if the gold documents do not fit in.
    """
    means: dict[str, Number] = {}
    for query in bench.queries:
        gold = bench.golds[query]
        if len(gold) > corpus_size:
            raise ValueError(f"{len(gold)} gold documents in a corpus of {corpus_size}")
        others = [f"not gold {i}" for i in range(corpus_size - len(gold))]
        depth = min(list_length_C(bench, query), corpus_size)
        means[query] = mean(
            score_labels(bench.metric, drawn, gold, gold)
            for drawn in permutations([*gold, *others], depth)
        )
    return means


def expected_C(
    run: Run,
    qrels: Qrels,
    metric: str,
    corpus_size: int,
    top_k: int | None = None,
    level: int = 1,
) -> float:
    """Return E_C by running through every ordered list (small corpora)."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(query_means_C(bench, corpus_size).values()))


def closed_query_C(
    metric: str, gold: Gold, corpus_size: int, list_length: int
) -> Number:
    """Return one query's expected score under C, by the formulas of section 5.

    >>> closed_query_C("RR@3", {"a": 1}, 10, 3)
    Fraction(11, 60)
    """
    family, cutoff, _ = parse(metric)
    g, size = len(gold), corpus_size
    n = min(list_length, size)
    if cutoff is not None:
        n = min(n, cutoff)
    if g == 0:
        return Fraction(0)
    if family == "P":
        assert cutoff is not None
        return Fraction(n, cutoff) * Fraction(g, size)
    if family == "R":
        return Fraction(n, size)
    if family == "Success":
        return 1 - Fraction(math.comb(size - g, n), math.comb(size, n))
    if family == "RR":
        total = Fraction(0)
        for rank in range(1, n + 1):
            ways = Fraction(math.comb(size - rank, g - 1), math.comb(size, g))
            total += Fraction(1, rank) * ways
        return total
    if family == "AP":
        harmonic = sum((Fraction(1, rank) for rank in range(1, n + 1)), Fraction(0))
        others = Fraction(g - 1, size - 1) if size > 1 else Fraction(0)
        return Fraction(1, size) * (harmonic + others * (n - harmonic))
    discounts = math.fsum(1 / math.log2(rank + 1) for rank in range(1, n + 1))
    ideal = discounted_gain(sorted(gold.values(), reverse=True)[:cutoff])
    return sum(gold.values()) / size * discounts / ideal


def closed_query_means_C(bench: Benchmark, corpus_size: int) -> dict[str, Number]:
    """Return each query's expected score under C in closed form."""
    return {
        query: closed_query_C(
            bench.metric, bench.golds[query], corpus_size, list_length_C(bench, query)
        )
        for query in bench.queries
    }


def closed_C(
    run: Run,
    qrels: Qrels,
    metric: str,
    corpus_size: int,
    top_k: int | None = None,
    level: int = 1,
) -> float:
    """Return E_C in closed form, for a corpus of any size."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(closed_query_means_C(bench, corpus_size).values()))


# ---- null D: labels drawn in proportion to how often they are gold ---------------


def label_weights(golds: Mapping[str, Gold]) -> dict[str, Fraction]:
    """Return w_l: the queries whose gold holds l, over all gold memberships.

    >>> label_weights({"q1": {"a": 1, "b": 1}, "q2": {"a": 2}})
    {'a': Fraction(2, 3), 'b': Fraction(1, 3)}
    """
    held: dict[str, int] = {}
    for gold in golds.values():
        for doc in gold:
            held[doc] = held.get(doc, 0) + 1
    total = sum(held.values())
    return {doc: Fraction(held[doc], total) for doc in sorted(held, key=as_bytes)}


def labels_drawn(
    order: Sequence[str],
    weights: Mapping[str, Fraction],
    grades: Sequence[int],
    u: Number,
    v: int,
) -> dict[str, int]:
    """Return the {label: grade} that one order, one u and one v give one query.

    Label l owns [lo, hi) of length w_l; it is drawn iff an integer lies in
    [g lo - u, g hi - u). The first such integer is its slot. A label drawn twice is
    drawn once, and its second slot stays empty.

    >>> halves = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    >>> labels_drawn(["b", "a"], halves, [3, 1], u=Fraction(1, 4), v=1)
    {'b': 1, 'a': 3}
    """
    g = len(grades)
    drawn: dict[str, int] = {}
    low = Fraction(0)
    for label in order:
        high = low + weights[label]
        slot = math.ceil(g * low - u)
        if slot < g * high - u:
            drawn[label] = grades[(slot + v) % g]
        low = high
    return drawn


def pieces_of_u(
    order: Sequence[str], weights: Mapping[str, Fraction], g: int
) -> list[tuple[Fraction, Fraction]]:
    """Cut [0, 1) where g lo - u or g hi - u is an integer for some label."""
    cuts = {Fraction(0), Fraction(1)}
    edge = Fraction(0)
    for label in order:
        edge += weights[label]
        cuts.add(g * edge % 1)
    return list(pairwise(sorted(cuts)))


def query_mean_D(
    metric: str, ranking: Sequence[str], gold: Gold, weights: Mapping[str, Fraction]
) -> Number:
    """Return one query's mean over all orders of the labels, all u and all v."""
    if not gold:
        return Fraction(0)
    grades = list(gold.values())
    per_order: list[Number] = []
    for order in permutations(weights):
        total: Number = Fraction(0)
        for left, right in pieces_of_u(order, weights, len(gold)):
            middle = (left + right) / 2
            total += (right - left) * mean(
                score_labels(
                    metric,
                    ranking,
                    labels_drawn(order, weights, grades, middle, v),
                    gold,
                )
                for v in range(len(gold))
            )
        per_order.append(total)
    return mean(per_order)


def query_means_D(bench: Benchmark) -> dict[str, Number]:
    """Return each query's expected score under D, by enumeration (6 labels or so)."""
    weights = label_weights(bench.golds)
    return {
        query: query_mean_D(
            bench.metric, bench.rankings[query], bench.golds[query], weights
        )
        for query in bench.queries
    }


def expected_D(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return E_D by enumeration of label orders, u and v."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(query_means_D(bench).values()))


def closed_query_means_D(bench: Benchmark) -> dict[str, Number]:
    """Return each query's expected score under D where section 5 has a closed form.

    At most one gold document a query: any metric, the plain draw from w. Several: P,
    R and nDCG, from the inclusion probabilities min(1, g w) and the mean grade.
    Raises ValueError elsewhere.
    """
    family, cutoff, _ = parse(bench.metric)
    weights = label_weights(bench.golds)
    single = all(len(gold) <= 1 for gold in bench.golds.values())
    if not single and family not in {"P", "R", "nDCG"}:
        raise ValueError(f"D has no closed form for {bench.metric} on several golds")
    means: dict[str, Number] = {}
    for query in bench.queries:
        gold, ranking = bench.golds[query], bench.rankings[query]
        g = len(gold)
        total: Number = Fraction(0)
        if g > 0 and single:
            (grade,) = gold.values()
            for label, weight in weights.items():
                hit = score_labels(bench.metric, ranking, {label: grade}, gold)
                total += weight * hit
        elif g > 0:
            mean_grade = Fraction(sum(gold.values()), g)
            ideal = discounted_gain(sorted(gold.values(), reverse=True)[:cutoff])
            for rank, doc in enumerate(ranking[:cutoff], start=1):
                chance = min(Fraction(1), g * weights.get(doc, Fraction(0)))
                if family == "P":
                    assert cutoff is not None
                    total += chance / cutoff
                elif family == "R":
                    total += chance / g
                else:
                    total += chance * mean_grade / math.log2(rank + 1) / ideal
        means[query] = total
    return means


def closed_D(
    run: Run, qrels: Qrels, metric: str, level: int = 1, top_k: int | None = None
) -> float:
    """Return E_D in closed form; raises ValueError where there is none."""
    bench = benchmark(run, qrels, metric, level, top_k)
    return float(mean(closed_query_means_D(bench).values()))


def capped_queries(golds: Mapping[str, Gold]) -> list[str]:
    """Return the queries with a label whose g w exceeds 1, rarer than it should be.

    >>> capped_queries({"q1": {"a": 1, "b": 1}, "q2": {"a": 1}})
    ['q1']
    """
    largest = max(label_weights(golds).values())
    return [query for query, gold in golds.items() if len(gold) * largest > 1]


# ---- section 6: differences and interval -----------------------------------------


def differences(
    run: Run,
    qrels: Qrels,
    metric: str,
    null: str,
    level: int = 1,
    top_k: int | None = None,
    corpus_size: int | None = None,
) -> dict[str, float]:
    """Return {query: d_q} for the null "A", "B", "C" or "D"; their mean is delta.

    C and D use the closed forms; D without one is enumerated, so keep that small.
    Raises ValueError for C without a corpus size.
    """
    bench = benchmark(run, qrels, metric, level, top_k)
    golds = bench.golds
    scores = bench.scores()
    if null == "A" or (null == "D" and all(len(golds[q]) == 1 for q in golds)):
        return _differences_A(bench)
    if null == "B":
        return _differences_B(bench)
    if null == "C":
        if corpus_size is None:
            raise ValueError("null C needs a corpus size")
        nulls = closed_query_means_C(bench, corpus_size)
    else:
        try:
            nulls = closed_query_means_D(bench)
        except ValueError:
            nulls = query_means_D(bench)
    return {query: float(scores[query] - nulls[query]) for query in bench.queries}


def _differences_A(bench: Benchmark) -> dict[str, float]:
    """d_q = s_q - rowmean_q - (colmean_q - grandmean)."""
    cells, scores = matrix(bench), bench.scores()
    grand = mean(cells.values())
    answer: dict[str, float] = {}
    for query in bench.queries:
        row = mean(cells[query, owner] for owner in bench.queries)
        column = mean(cells[other, query] for other in bench.queries)
        answer[query] = float(scores[query] - row - (column - grand))
    return answer


def _differences_B(bench: Benchmark) -> dict[str, float]:
    """d_q = s_q - r_q - N w_q (c_q - g_B), w_j = 1 / (U x multiplicity of G_j).

    A query without gold has no column to weigh: w_j = 0.
    """
    cells, scores = matrix(bench), bench.scores()
    n, u = len(bench.queries), len(distinct_gold_sets(bench.golds))
    weights: dict[str, Fraction] = {}
    for query in bench.queries:
        gold = bench.golds[query]
        same = [other for other in bench.queries if bench.golds[other] == gold]
        weights[query] = Fraction(1, u * len(same)) if gold else Fraction(0)
    columns = {j: mean(cells[i, j] for i in bench.queries) for j in bench.queries}
    grand: Number = Fraction(0)
    for j in bench.queries:
        grand += weights[j] * columns[j]
    answer: dict[str, float] = {}
    for query in bench.queries:
        row: Number = Fraction(0)
        for j in bench.queries:
            row += weights[j] * cells[query, j]
        pull = n * weights[query] * (columns[query] - grand)
        answer[query] = float(scores[query] - row - pull)
    return answer


def rows_for(n_boot: int, n: int) -> int:
    """Return the number of resamples for N queries.

    >>> rows_for(1000, 50), rows_for(1000, 3000), rows_for(1000, 20000)
    (10000, 3000, 1000)
    """
    return n_boot * max(1, min(10, 10000 // n))


def end_rank(rows: int, alpha: float = ALPHA) -> int:
    """Return t = floor((rows + 1) alpha / 8), alpha read as the decimal it shows.

    >>> end_rank(10000), end_rank(159)
    (62, 1)
    """
    return math.floor((rows + 1) * Fraction(str(alpha)) / 8)


def _group_sums(
    d: Sequence[float], groups: Sequence[str] | None
) -> tuple[list[float], list[int]]:
    """Return the sum of d and the number of queries of each group, by id as bytes.

    Without groups each query is its own, in the order given.
    """
    if groups is None:
        return [float(value) for value in d], [1] * len(d)
    sums: list[float] = []
    sizes: list[int] = []
    for name in sorted(set(groups), key=as_bytes):
        members = [
            value for value, group in zip(d, groups, strict=True) if group == name
        ]
        sums.append(math.fsum(members))
        sizes.append(len(members))
    return sums, sizes


def interval_ends(
    d: Sequence[float],
    rows: int,
    rng: np.random.Generator,
    groups: Sequence[str] | None = None,
) -> tuple[list[float], list[float]]:
    """Return all resampled lower and all upper ends, each sorted ascending.

    One standard exponential a group and one, the last of its row, for the imaginary
    group of mean size, whose every query has difference -1 (lower) or +1 (upper).
    """
    sums, sizes = _group_sums(d, groups)
    mean_size = sum(sizes) / len(sizes)
    lowers: list[float] = []
    uppers: list[float] = []
    for _ in range(rows):
        *weights, imaginary = rng.standard_exponential(len(sums) + 1).tolist()
        top = math.fsum(
            weight * total for weight, total in zip(weights, sums, strict=True)
        )
        bottom = math.fsum(
            weight * size for weight, size in zip(weights, sizes, strict=True)
        )
        bottom += imaginary * mean_size
        lowers.append((top - imaginary * mean_size) / bottom)
        uppers.append((top + imaginary * mean_size) / bottom)
    return sorted(lowers), sorted(uppers)


def interval(
    d: Sequence[float],
    rows: int,
    alpha: float,
    rng: np.random.Generator,
    groups: Sequence[str] | None = None,
) -> tuple[float, float]:
    """Return (lower, upper), two-sided 1 - alpha/4, as section 6 defines it."""
    lowers, uppers = interval_ends(d, rows, rng, groups)
    t = end_rank(rows, alpha)
    return lowers[t - 1], uppers[-t]


def chance_not_positive(coefficients: Sequence[float]) -> float:
    """Return P(sum_i c_i E_i <= 0), E_i independent standard exponentials.

    Gil-Pelaez inversion of the characteristic function prod 1 / (1 - i c_i s), in the
    real form of Imhof (Biometrika 1961): 1/2 - (1/pi) int_0^oo sin(theta) / (s rho) ds,
    theta = sum atan(c_i s), rho = prod sqrt(1 + c_i^2 s^2). Good to about 1e-11.

    >>> round(chance_not_positive([1.0, -3.0]), 10)  # 3 / (1 + 3)
    0.75
    """
    scale = math.sqrt(math.fsum(c * c for c in coefficients))
    times = Counter(c / scale for c in coefficients).items()

    def integrand(s: float) -> float:
        theta = math.fsum(k * math.atan(c * s) for c, k in times)
        log_rho = math.fsum(k * math.log1p((c * s) ** 2) for c, k in times) / 2
        return math.sin(theta) / s * math.exp(-log_rho)

    accuracy: dict[str, Any] = {"epsabs": 1e-12, "epsrel": 1e-11, "limit": 2000}
    near, _ = integrate.quad(integrand, 0.0, 8.0, **accuracy)
    far, _ = integrate.quad(integrand, 8.0, math.inf, **accuracy)
    return 0.5 - (float(near) + float(far)) / math.pi


def exact_chance_at_most(values: Sequence[Fraction], t: Fraction) -> Fraction:
    """Return P(sum_i w_i values_i <= t), w uniform on the simplex, exactly.

    values must be distinct: 1 - sum_i ((v_i - t)_+)^(n-1) / prod_j (v_i - v_j), the
    divided difference of a truncated power (Curry & Schoenberg 1966). Hopeless in
    floats, harmless in Fractions.

    >>> exact_chance_at_most([Fraction(0), Fraction(1)], Fraction(1, 3))
    Fraction(1, 3)
    """
    above = Fraction(0)
    for i, value in enumerate(values):
        if value > t:
            term = (value - t) ** (len(values) - 1)
            for j, other in enumerate(values):
                if j != i:
                    term /= value - other
            above += term
    return 1 - above


def _limit_lower(
    d: Sequence[float], alpha: float, groups: Sequence[str] | None
) -> float:
    """Solve P(lower end <= t) = alpha/8 for t.

    A ratio of weighted sums is <= t iff a weighted sum with coefficients
    (sum_g - t size_g) is <= 0, and the weights' common divisor drops out.
    """
    sums, sizes = _group_sums(d, groups)
    mean_size = sum(sizes) / len(sizes)
    all_sums, all_sizes = [*sums, -mean_size], [*sizes, mean_size]
    averages = [total / size for total, size in zip(all_sums, all_sizes, strict=True)]

    def excess(t: float) -> float:
        coefficients = [
            total - t * size for total, size in zip(all_sums, all_sizes, strict=True)
        ]
        return chance_not_positive(coefficients) - alpha / 8

    if max(averages) == min(averages):
        return min(averages)
    found = optimize.brentq(excess, min(averages), max(averages), xtol=1e-12)
    return float(found)


def limit_interval(
    d: Sequence[float], alpha: float = ALPHA, groups: Sequence[str] | None = None
) -> tuple[float, float]:
    """Return (lower, upper) as rows go to infinity, without simulation.

    The upper end is the lower end of -d, mirrored.

    >>> low, high = limit_interval([2 / 3] * 3)
    >>> round(low, 3), round(high, 3)
    (-0.693, 0.939)
    """
    mirrored = [-value for value in d]
    return _limit_lower(d, alpha, groups), -_limit_lower(mirrored, alpha, groups)


def p_value(null_scores: Sequence[float], reached: float) -> float:
    """Return (1 + draws that reach the run's mean score) / (1 + draws).

    >>> p_value([0.1, 0.5, 0.9], 0.5)
    0.75
    """
    at_least = sum(1 for null in null_scores if null >= reached - SLACK)
    return (1 + at_least) / (1 + len(null_scores))


# ---- section 7: states, verdict, hint --------------------------------------------


def state(
    delta: float,
    low: float,
    high: float,
    p: float,
    silent: bool = False,
    tau: float = TAU,
    alpha: float = ALPHA,
) -> str:
    """Return one null's state: pass, fail, silent or open.

    silent: the null is A, B or D and there is a single gold set (U = 1). It goes first:
    such a null's gap is 0 whatever the system, so a "fail" would say nothing about it.

    >>> state(0.3, 0.05, 0.5, 0.0125), state(0.04, -0.1, 0.09, 1.0)
    ('pass', 'fail')
    """
    if silent:
        return "silent"
    if low >= tau and p <= alpha / 4:
        return "pass"
    if delta < tau and high < 2 * tau:
        return "fail"
    return "open"


def verdict(states: Sequence[str]) -> str:
    """Return FAIL if a null fails, PASS if all pass, else UNDER-NS.

    >>> verdict(["pass", "open", "fail", "pass"])
    'FAIL'
    """
    if "fail" in states:
        return "FAIL"
    if all(each == "pass" for each in states):
        return "PASS"
    return "UNDER-NS"


def unrounded_hint(
    d: Sequence[float], silent: bool = False, tau: float = TAU, alpha: float = ALPHA
) -> int | None:
    """Return the smallest n that settles the null with chance 80%, by section 7.

    d: this run's differences. None where more queries of this kind will not settle it.
    """
    size = len(d)
    m = math.fsum(d) / size
    m2 = math.fsum((value - m) ** 2 for value in d) / size
    m3 = math.fsum((value - m) ** 3 for value in d) / size
    if silent or abs(m - tau) < 0.005:
        return None
    z = NormalDist().inv_cdf(1 - alpha / 8)
    low_side = m >= tau
    sign = -1 if low_side else 1
    skew = m3 / m2**1.5 if m2 > 0 else 0.0
    for n in count(1):
        a = n + 1
        mu = (n * m + sign) / a
        e = m - mu
        f = sign - mu
        k2 = (n * (m2 + e**2) + f**2) / a
        k3 = (n * (m3 + 3 * m2 * e + e**3) + f**3) / a
        sd = math.sqrt(k2 / (a + 1))
        gamma = 2 * k3 / ((a + 1) * (a + 2) * sd**3) if sd > 0 else 0.0
        end = mu + sd * (sign * z + gamma * (z**2 - 1) / 6)
        spread = math.sqrt(m2 / n) * max(0.2, 1 + sign * z * skew / (2 * math.sqrt(n)))
        if low_side and end - 0.84 * spread >= tau:
            return n
        if not low_side and end + 0.84 * spread < 2 * tau:
            return n
    raise AssertionError("unreachable: end goes to m, which is on the right side")


def one_figure(n: int) -> int:
    """Round to one significant figure; a tie goes to the even digit.

    >>> one_figure(7), one_figure(96), one_figure(149), one_figure(25)
    (7, 100, 100, 20)
    """
    return int(float(f"{n:.0e}"))


def hint(
    d: Sequence[float], silent: bool = False, tau: float = TAU, alpha: float = ALPHA
) -> int | None:
    """Return unrounded_hint to one significant figure."""
    n = unrounded_hint(d, silent, tau, alpha)
    return None if n is None else one_figure(n)


# ---- ties ------------------------------------------------------------------------


def tie_range(
    scores: Mapping[str, float],
    gold: Gold,
    metric: str,
    level: int = 1,
    top_k: int | None = None,
) -> tuple[float, float]:
    """Return the lowest and highest score that any order of tied documents gives.

    >>> tie_range({"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 1}, "RR")
    (0.5, 1.0)
    """
    blocks = [
        [doc for doc in scores if scores[doc] == value]
        for value in sorted(set(scores.values()), reverse=True)
    ]
    found: list[float] = []
    for orders in product(*(permutations(block) for block in blocks)):
        ranking = [doc for order in orders for doc in order]
        found.append(score(metric, ranking[:top_k], gold, level))
    return min(found), max(found)
