"""What was asked for -> checked values: parameters, the corpus of C, groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark
from falsify_cli.columns import Ints, distinct
from falsify_cli.errors import InputError, UsageError
from falsify_cli.interval import Groups
from falsify_cli.judgement import Parameters
from falsify_cli.metrics import Metric
from falsify_cli.read import STDIN, read_corpus, read_groups

JUDGED, ANSWERED = "judged", "answered"


def threads_or_cores(threads: int | None) -> int:
    """How many processes or threads share the work: the cores if it is not said.

    Raises UsageError for less than one.
    """
    if threads is None:
        allowed = getattr(os, "sched_getaffinity", None)
        cores = len(allowed(0)) if allowed else os.cpu_count()
        return min(cores or 1, defaults.MOST_THREADS)
    if threads < 1:
        raise UsageError(f"threads: expected 1 or more, found {threads}")
    return threads


def refuse_standard_input_twice(*inputs: object) -> None:
    """Raise UsageError where several inputs are to come from standard input."""
    # A mapping compares with a name like any other object, and is none.
    if sum(name == STDIN for name in inputs) > 1:
        raise UsageError("standard input: expected one file from it, found several")


def check_parameters(parameters: Parameters, metrics: Sequence[Metric]) -> None:
    """Raise UsageError for an argument out of its range."""
    p = parameters
    least = max(defaults.N_BOOT_LEAST, -(-8 // p.alpha) if 0 < p.alpha < 1 else 0)
    for good, name, wanted, found in (
        (bool(metrics), "metric", "at least one", "none"),
        (0 < p.tau < 1, "tau", "a gap between 0 and 1", p.tau),
        (0 < p.alpha < 1, "alpha", "an error rate between 0 and 1", p.alpha),
        (p.n_boot >= least, "n-boot", f"at least {least:g} at this alpha", p.n_boot),
        (p.seed >= 0, "seed", "a whole number from 0", p.seed),
        (
            p.top_k is None or 1 <= p.top_k <= defaults.DEEPEST,
            "top-k",
            f"a depth from 1 to {defaults.DEEPEST:,}",
            p.top_k,
        ),
        (1 <= p.rel_level < 2**31, "rel-level", "a grade from 1", p.rel_level),
        (p.queries in (JUDGED, ANSWERED), "queries", "judged or answered", p.queries),
        (
            not isinstance(p.corpus, int) or 1 <= p.corpus <= defaults.LARGEST_CORPUS,
            "corpus",
            f"a file, or a number from 1 to {defaults.LARGEST_CORPUS:,}",
            p.corpus,
        ),
    ):
        if not good:
            raise UsageError(f"{name}: expected {wanted}, found {found}")


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """How many documents there are to retrieve.

    given: by the user; else those that run and qrels name stand in. absent: relevant
    documents that are not in the file.
    """

    size: int
    given: bool
    absent: int


def corpus_of(parameters: Parameters, benchmark: Benchmark) -> Corpus:
    """Read or count the corpus; refuse one smaller than the documents seen."""
    seen, wanted = benchmark.corpus_seen, parameters.corpus
    if wanted is None:
        return Corpus(seen, False, 0)
    absent, name = 0, "corpus"
    if isinstance(wanted, str):
        name = wanted
        documents = read_corpus(wanted)
        judgments = benchmark.judgments
        gold = distinct(judgments.document[judgments.grade >= parameters.rel_level])
        absent = int((documents.codes(judgments.vocabulary.ids.take(gold)) < 0).sum())
        if absent == len(gold):
            raise InputError(
                f"{wanted}: expected the ids of the corpus, found none of the "
                f"{absent:,} relevant documents among them"
            )
        wanted = len(documents)
    if wanted < seen:
        raise InputError(
            f"{name}: expected a corpus of at least the {seen:,} documents that run "
            f"and qrels name, found {wanted:,}"
        )
    return Corpus(wanted, True, absent)


def groups_of(name: str | None, benchmark: Benchmark) -> Groups:
    """Read the groups of the judged queries; each for itself where none are given."""
    queries = benchmark.judgments.queries
    if name is None:
        return Groups.singletons(len(queries))
    group_of = read_groups(name)
    missing = [query for query in queries if query not in group_of]
    if missing:
        raise InputError(
            f"{name}: expected a group for each of the {len(queries):,} judged "
            f"queries, found none for {len(missing):,} of them ({missing[0]!r})"
        )
    ids = sorted({group_of[query] for query in queries}, key=str.encode)
    code = {group: number for number, group in enumerate(ids)}
    codes: Ints = np.array([code[group_of[query]] for query in queries])
    return Groups.of(codes)
