"""Hits -> one score a cell; and the names people type for each metric."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Floats, Ints, positions, sums_at
from falsify_cli.errors import UsageError
from falsify_cli.gold import Gold
from falsify_cli.hits import Hits


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: a measure, its cutoff, and which gold it takes.

    measure: the name of a kernel, or pytrec_eval's name of any other measure.
    level: the lowest relevant grade. top1: the gold is one document a query.
    parameter: what pytrec_eval's name of the measure goes on with, if anything.
    """

    measure: str
    cutoff: int | None = None
    level: int = 1
    top1: bool = False
    parameter: str = ""

    @property
    def name(self) -> str:
        """The name in the form of ir_measures, as the report prints it.

        >>> parse_metric("ndcg_cut_10").name
        'nDCG@10'
        """
        cutoff = "" if self.cutoff is None else f"@{self.cutoff}"
        parameter = f"_{self.parameter}" if self.parameter else ""
        return f"{self.measure}{parameter}{cutoff}{'_top1' if self.top1 else ''}"

    @property
    def gold_level(self) -> int:
        """The lowest grade of its gold."""
        return 1 if self.graded else self.level

    @property
    def graded(self) -> bool:
        """Whether the gain is the grade, and any grade from 1 relevant."""
        return self.measure in _GRADED


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a measure scores a cell: the sum of its hits' values over the owner's norm.

    values: (ranks, grades, places) of the hits -> their values; a place
    counts a cell's hits from 0. norms: (gold, cutoff) -> (U,), one a gold set.
    linear: a hit's value is a weight of its rank times its grade, whatever the
    cell's other hits.
    trec_eval: the name pytrec_eval knows the measure by, without and with cutoff.
    """

    values: Callable[[Ints, Floats, Ints], Floats]
    norms: Callable[[Gold, int | None], Floats]
    trec_eval: tuple[str, str]
    linear: bool = False


def discounts(ranks: Ints) -> Floats:
    """1 / log2(rank + 1). Source: Jarvelin & Kekalainen, 2002."""
    deepest = int(ranks.max(initial=0))
    discounts: Floats = _discount_table(1 << deepest.bit_length())[ranks]
    return discounts


@lru_cache(maxsize=4)
def _discount_table(size: int) -> Floats:
    """(size,) the discount of each rank; numpy's own log2 is another elsewhere."""
    return np.array([0.0] + [1 / math.log2(rank + 1) for rank in range(1, size)])


def ideal_gains(gold: Gold, cutoff: int | None) -> Floats:
    """(U,) the DCG of each set's best list, from all its judgments."""
    order = np.lexsort((-gold.grades, gold.owners))
    ranks = np.arange(len(order)) - gold.starts[gold.owners] + 1
    gains = gold.grades[order] * discounts(ranks)
    if cutoff is not None:
        gains[ranks > cutoff] = 0.0
    return sums_at(gold.owners, gains, len(gold.sizes))


def _ones(gold: Gold, cutoff: int | None) -> Floats:
    return np.ones(len(gold.sizes))


def _sizes(gold: Gold, cutoff: int | None) -> Floats:
    return gold.sizes.astype(np.float64)


def _cutoffs(gold: Gold, cutoff: int | None) -> Floats:
    return np.full(len(gold.sizes), float(cutoff or 1))


KERNELS = {
    "nDCG": Kernel(
        lambda ranks, grades, places: grades * discounts(ranks),
        ideal_gains,
        ("ndcg", "ndcg_cut"),
        linear=True,
    ),
    "AP": Kernel(
        lambda ranks, grades, places: (places + 1) / ranks,
        _sizes,
        ("map", "map_cut"),
    ),
    "RR": Kernel(
        lambda ranks, grades, places: np.where(places == 0, 1 / ranks, 0.0),
        _ones,
        ("recip_rank", "recip_rank"),
    ),
    "P": Kernel(
        lambda ranks, grades, places: grades, _cutoffs, ("P", "P"), linear=True
    ),
    "R": Kernel(
        lambda ranks, grades, places: grades,
        _sizes,
        ("recall", "recall"),
        linear=True,
    ),
    "Success": Kernel(
        lambda ranks, grades, places: (places == 0).astype(np.float64),
        _ones,
        ("success", "success"),
    ),
}


def score_cells(
    kernel: Kernel, hits: Hits, norms: Floats, owners: Ints
) -> tuple[Ints, Floats]:
    """Score every cell that has a hit; the others score 0.

    norms: by owner. owners: (hits,) the owner of each hit's gold.
    Returns (c,) cells in ascending order and (c,) their scores.
    """
    starts = hits.starts
    if not len(starts):
        return hits.cells, hits.grades
    places = positions(starts, len(hits))
    values = kernel.values(hits.ranks, hits.grades, places)
    sums = np.add.reduceat(values, starts)
    return hits.cells[starts], sums / norms[owners[starts]]


_GRADED = ("nDCG", "Rndcg", "ndcg_rel")

_NEEDS_CUTOFF = ("P", "R", "Success")

# The names of trec_eval and of the Python libraries, in lower case.
_ALIASES = {
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "map": "AP",
    "map_cut": "AP",
    "ap": "AP",
    "recip_rank": "RR",
    "mrr": "RR",
    "rr": "RR",
    "p": "P",
    "precision": "P",
    "r": "R",
    "recall": "R",
    "success": "Success",
    "hit": "Success",
    "hit_rate": "Success",
}

# The other measures of pytrec_eval that lie in [0, 1]; the value says whether the
# name goes on with a parameter, and an example of one.
_OTHERS = {
    "Rprec": "",
    "bpref": "",
    "infAP": "",
    "11pt_avg": "",
    "binG": "",
    "Rndcg": "",
    "ndcg_rel": "",
    "set_P": "",
    "set_recall": "",
    "set_relative_P": "",
    "set_map": "",
    "set_F": "",
    "relative_P": "10",
    "iprec_at_recall": "0.10",
    "Rprec_mult": "1.20",
}
_OTHER_ALIASES = {"r_precision": "Rprec", "iprec": "iprec_at_recall"}
_OTHER_NAMES = {name.lower(): name for name in _OTHERS} | _OTHER_ALIASES

_REFUSED = re.compile(r"num_.*|relstring.*|runid|utility.*|g|gm_.*|prefs_.*|.*_avgjg.*")

_KERNEL_NAME = re.compile(r"([a-z_]+?)(?:[@._](\d+))?(_top1)?")
_OTHER_NAME = re.compile(r"([a-z0-9_]*?[a-z]+)(?:[@._](\d+(?:\.\d+)?))?")


def parse_metric(text: str, level: int = 1) -> Metric:
    """Read a metric's name in the form of ir_measures, trec_eval or the libraries.

    Raises UsageError for a name nobody knows, a missing or zero cutoff, and for
    measures that are no mean of scores in [0, 1].

    >>> [parse_metric(n).name for n in ("mrr@10", "recall_100", "hit_rate@5")]
    ['RR@10', 'R@100', 'Success@5']
    """
    lowered = text.strip().lower()
    match = _KERNEL_NAME.fullmatch(lowered)
    if match and match[1] in _ALIASES:
        cutoff = int(match[2]) if match[2] else None
        return _checked(Metric(_ALIASES[match[1]], cutoff, level, bool(match[3])), text)
    if _REFUSED.fullmatch(lowered):
        raise UsageError(
            f"metric {text!r}: expected a score a query in [0, 1]; counts, sums and "
            f"geometric means have no null models"
        )
    match = _OTHER_NAME.fullmatch(lowered)
    if match and match[1] in _OTHER_NAMES:
        return _other(_OTHER_NAMES[match[1]], match[2], level, text)
    raise UsageError(f"metric {text!r}: no such metric{_suggestion(lowered)}")


def _checked(metric: Metric, text: str) -> Metric:
    if metric.cutoff is not None and not 1 <= metric.cutoff <= defaults.DEEPEST:
        raise UsageError(
            f"metric {text!r}: expected a cutoff from 1 to {defaults.DEEPEST:,}, "
            f"found {metric.cutoff}"
        )
    if metric.top1 and metric.measure != "R":
        raise UsageError(
            f"metric {text!r}: expected R@k_top1; no other metric takes one "
            f"relevant document a query"
        )
    named_cut = re.match(r"(ndcg|map)_cut", text.strip().lower())
    if metric.cutoff is None and (metric.measure in _NEEDS_CUTOFF or named_cut):
        raise UsageError(
            f"metric {text!r}: expected a cutoff; write {metric.measure}@10, say"
        )
    return metric


def _other(measure: str, parameter: str | None, level: int, text: str) -> Metric:
    example = _OTHERS[measure]
    if bool(example) != bool(parameter):
        wanted = f"{measure}_{example}" if example else measure
        raise UsageError(f"metric {text!r}: expected {wanted}, say")
    if parameter:
        return Metric(measure, None, level, parameter=_parameter(measure, parameter))
    return Metric(measure, None, level)


def _parameter(measure: str, text: str) -> str:
    """A parameter in the form pytrec_eval keys its results by."""
    return str(int(float(text))) if measure == "relative_P" else f"{float(text):.2f}"


def _suggestion(lowered: str) -> str:
    """What to type instead, as far as it can be told."""
    if re.search(r"[,;\s]", lowered):
        return "; give -m once for each metric"
    found = re.fullmatch(r"([a-z_]+?)[@._]?(\d*)", lowered)
    name, cutoff = found.groups() if found else (re.split(r"[@.]", lowered)[0], "")
    near = difflib.get_close_matches(name, [*_ALIASES, *_OTHER_NAMES], n=1)
    if not near:
        return "; see `falsify gate --help`"
    if near[0] not in _ALIASES:
        return f"; did you mean {_OTHER_NAMES[near[0]]}?"
    measure = _ALIASES[near[0]]
    default = "10" if measure in _NEEDS_CUTOFF else ""
    return (
        f"; did you mean {measure}{'@' * bool(cutoff or default)}{cutoff or default}?"
    )


def trec_eval_names(metric: Metric) -> tuple[str, str]:
    """What to ask pytrec_eval for, and the name of it in its answer."""
    kernel = KERNELS.get(metric.measure)
    if kernel is None:
        name, parameter = metric.measure, metric.parameter
    else:
        name = kernel.trec_eval[metric.cutoff is not None]
        # Its reciprocal rank knows no cutoff: the list is cut instead.
        cut = metric.cutoff is not None and name != "recip_rank"
        parameter = str(metric.cutoff) if cut else ""
    return (f"{name}.{parameter}", f"{name}_{parameter}") if parameter else (name, name)


def companion_of(metric: Metric, default_cutoff: int) -> Metric:
    """The strict single-gold metric beside a graded one: R@k_top1."""
    return replace(
        metric, measure="R", cutoff=metric.cutoff or default_cutoff, top1=True
    )
