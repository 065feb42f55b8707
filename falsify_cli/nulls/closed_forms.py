"""What a list drawn at random is expected to score, in closed form.

A list of n different documents from a corpus of N_c, g of them relevant.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from falsify_cli.columns import Floats, kinds_of_pairs, sums_at
from falsify_cli.grading import Grading
from falsify_cli.metrics import discounts, ideal_gains


def expected_random_retrieval(grading: Grading) -> Floats | None:
    """(N,) the expected score of a random list, None where no closed form is known.

    Queries with the same number of relevant documents and the same length of list
    share their value, but for nDCG, whose grades and ideal are the query's own.
    """
    closed = _CLOSED_FORMS.get(grading.metric.measure)
    if closed is None:
        return None
    gold, cutoff = grading.gold, grading.metric.cutoff
    lengths = grading.list_lengths
    seen = lengths if cutoff is None else np.minimum(lengths, cutoff)
    pairs, kinds = kinds_of_pairs(gold.query_sizes, seen)
    values = [closed(g, n, grading.corpus, cutoff or 1) if g else 0.0 for g, n in pairs]
    expected = np.array(values)[kinds]
    if grading.metric.measure == "nDCG":
        expected = expected * _gain_ratios(grading)
    return expected


def _gain_ratios(grading: Grading) -> Floats:
    """(N,) sum of the grades over the ideal gain."""
    gold = grading.gold
    gains = sums_at(gold.owners, gold.grades, len(gold.sizes))
    ratios = gains / ideal_gains(gold, grading.metric.cutoff)
    return np.append(ratios, 0.0)[gold.sets]


def _precision(g: int, n: int, corpus: int, k: int) -> float:
    return n / k * g / corpus


def _recall(g: int, n: int, corpus: int, k: int) -> float:
    return n / corpus


def _success(g: int, n: int, corpus: int, k: int) -> float:
    return 1 - _chance_of_none(g, n, corpus)


def _chance_of_none(g: int, n: int, corpus: int) -> float:
    """C(corpus - g, n) / C(corpus, n), as a product of n factors."""
    return float(np.prod(_chances_of_another_miss(g, n, corpus)))


def _chances_of_another_miss(g: int, n: int, corpus: int) -> Floats:
    """(n,) the chance that rank r holds no relevant document if none did before."""
    left = corpus - np.arange(n, dtype=np.float64)
    return np.maximum(left - g, 0) / left


def _reciprocal_rank(g: int, n: int, corpus: int, k: int) -> float:
    """Sum over r of 1/r times the chance that the first hit stands at rank r."""
    misses = _chances_of_another_miss(g, n, corpus)
    none_before = np.concatenate([[1.0], np.cumprod(misses)[:-1]])[:n]
    return float((none_before * (1 - misses) / np.arange(1, n + 1)).sum())


def _discounted_gain(g: int, n: int, corpus: int, k: int) -> float:
    """The sum of discounts over the corpus; times grades over ideal it is nDCG."""
    return float(discounts(np.arange(1, n + 1)).sum()) / corpus


def _average_precision(g: int, n: int, corpus: int, k: int) -> float:
    harmonic = float((1 / np.arange(1, n + 1)).sum())
    pairs = (g - 1) / (corpus - 1) * (n - harmonic) if corpus > 1 else 0.0
    return (harmonic + pairs) / corpus


_CLOSED_FORMS: dict[str, Callable[[int, int, int, int], float]] = {
    "P": _precision,
    "R": _recall,
    "Success": _success,
    "RR": _reciprocal_rank,
    "nDCG": _discounted_gain,
    "AP": _average_precision,
}
