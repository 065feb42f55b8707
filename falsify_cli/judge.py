"""Run + qrels -> Judgement: the whole chain, and the public API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike, cpu_count, fspath
from typing import TypeAlias

import numpy as np

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark, join, judged_share
from falsify_cli.columns import Ints, sums_at
from falsify_cli.errors import InputError, UsageError
from falsify_cli.grading import Grading, grade
from falsify_cli.hint import Moments, queries_to_settle
from falsify_cli.ids import Vocabulary
from falsify_cli.interval import Groups, Interval, intervals
from falsify_cli.judgement import (
    BenchmarkFacts,
    Hint,
    Judgement,
    NullResult,
    Parameters,
    PerQuery,
    Result,
)
from falsify_cli.metrics import KERNELS, Metric, companion_of, parse_metric
from falsify_cli.notices import (
    input_notices,
    metric_notices,
    paraphrase_notice,
    resampling_notice,
)
from falsify_cli.nulls import Null, null_models, p_value
from falsify_cli.read import (
    STDIN,
    Keep,
    Qrels,
    Run,
    qrels_of_mapping,
    read_corpus,
    read_groups,
    read_qrels,
    read_run,
    run_of_mapping,
)
from falsify_cli.second_opinion import compare
from falsify_cli.texts import hint, meaning
from falsify_cli.ties import ties_of
from falsify_cli.verdict import State, state_of, verdict_of, worst
from falsify_cli.version import __version__

RunInput: TypeAlias = "str | PathLike[str] | Mapping[str, Mapping[str, float]]"
QrelsInput: TypeAlias = "str | PathLike[str] | Mapping[str, Mapping[str, int]]"
Path: TypeAlias = "str | PathLike[str]"

# Told after each step how many of how many are done.
Progress: TypeAlias = Callable[[int, int], None]

JUDGED, ANSWERED = "judged", "answered"


def gate(
    run: RunInput,
    qrels: QrelsInput,
    metric: str | Sequence[str] = defaults.METRIC,
    *,
    tau: float = defaults.TAU,
    alpha: float = defaults.ALPHA,
    n_boot: int = defaults.N_BOOT,
    seed: int = defaults.SEED,
    top_k: int | None = None,
    rel_level: int = defaults.REL_LEVEL,
    corpus: int | Path | None = None,
    queries: str = JUDGED,
    strict: bool = False,
    drop_self: bool = False,
    group: Path | None = None,
    threads: int | None = None,
    digest: bool = True,
    progress: Progress = lambda done, steps: None,
) -> Judgement:
    """Grade a run, and judge whether a dumb system could have got its score.

    run, qrels: files (``-`` is standard input), or ``{query: {document: score}}``
    and ``{query: {document: grade}}``. metric: one name or several. tau: the gap,
    in metric units, every null must be beaten by. alpha: the error rate of a
    metric's four intervals together. n_boot: draws of each null. top_k: cut the
    lists there. rel_level: the lowest relevant grade. corpus: a file of document
    ids, or their number. queries: "judged" or "answered". strict: the companion
    metric counts. drop_self: ignore documents with their query's id. group: a file
    of query and group ids, resampled together. threads: for reading; none changes
    a number. digest: hash the files, for the report. progress: called along the way.

    Raises InputError for files that cannot be read as run and qrels, UsageError for
    arguments out of range, InternalError where a self-check fails.

    >>> run = {"q1": {"d1": 2.0, "d2": 1.0}}
    >>> print(gate(run, {"q1": {"d1": 1}}, "RR").verdict)
    UNDER-NS
    """
    if sum(name == STDIN for name in (run, qrels, corpus, group)) > 1:
        raise UsageError("standard input: expected one file from it, found several")
    names = [metric] if isinstance(metric, str) else list(metric)
    metrics = [parse_metric(name, index(rel_level)) for name in names]
    if threads is not None and threads < 1:
        raise UsageError(f"threads: expected 1 or more, found {threads}")
    # Plain values, also where the caller's are numpy's.
    parameters = Parameters(
        tau=float(tau),
        alpha=float(alpha),
        n_boot=index(n_boot),
        seed=index(seed),
        top_k=None if top_k is None else index(top_k),
        rel_level=index(rel_level),
        queries=str(queries),
        corpus=_corpus_parameter(corpus),
        strict=bool(strict),
        drop_self=bool(drop_self),
        group=None if group is None else fspath(group),
    )
    _check(parameters, metrics)
    threads = threads or _available_threads()
    keep = Keep(_deepest(metrics, parameters.top_k), parameters.drop_self)
    benchmark = join(
        _run(run, keep, digest, threads),
        _qrels(qrels, digest, threads),
        answered_only=parameters.queries == ANSWERED,
    )
    return judge(benchmark, metrics, parameters, progress)


def judge(
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    parameters: Parameters,
    progress: Progress = lambda done, steps: None,
) -> Judgement:
    """Judge a run that has been read and joined with its qrels, under each metric."""
    corpus = _corpus(parameters, benchmark)
    groups, group_count = _groups(parameters.group, benchmark)
    steps = _Steps(progress, len(metrics))
    judged = [
        _judge_metric(benchmark, metric, corpus, groups, parameters, steps)
        for metric in metrics
    ]
    first, _ = judged[0]
    results = tuple(result for _, result in judged)
    return Judgement(
        __version__,
        benchmark.run,
        benchmark.qrels,
        parameters,
        _facts(benchmark, first, corpus, group_count),
        worst(result.verdict for result in results),
        results,
        (
            *input_notices(benchmark, answered_only=parameters.queries == ANSWERED),
            *_corpus_notices(corpus, first),
        ),
    )


# --- arguments and inputs ---


def _check(parameters: Parameters, metrics: Sequence[Metric]) -> None:
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


def _corpus_parameter(corpus: int | Path | None) -> int | str | None:
    if corpus is None or isinstance(corpus, str | PathLike):
        return None if corpus is None else fspath(corpus)
    return index(corpus)


def _available_threads() -> int:
    return min(cpu_count() or 1, defaults.MOST_THREADS)


def _deepest(metrics: Sequence[Metric], top_k: int | None) -> int | None:
    """The rank below which no metric, nor its companion, looks."""
    if top_k is not None:
        return top_k
    cutoffs = [metric.cutoff for metric in metrics]
    if None in cutoffs:
        return None
    return max(cutoff for cutoff in cutoffs if cutoff is not None)


def _run(run: RunInput, keep: Keep, digest: bool, threads: int) -> Run:
    if isinstance(run, Mapping):
        return run_of_mapping(run, keep)
    return read_run(fspath(run), keep, digest=digest, threads=threads)


def _qrels(qrels: QrelsInput, digest: bool, threads: int) -> Qrels:
    if isinstance(qrels, Mapping):
        return qrels_of_mapping(qrels)
    return read_qrels(fspath(qrels), digest=digest, threads=threads)


@dataclass(frozen=True, slots=True, eq=False)
class _Corpus:
    """How many documents there are to retrieve, and which, where a file says so."""

    size: int
    given: bool
    documents: Vocabulary | None
    absent: int


def _corpus(parameters: Parameters, benchmark: Benchmark) -> _Corpus:
    seen, wanted = benchmark.corpus_seen, parameters.corpus
    if wanted is None:
        return _Corpus(seen, False, None, 0)
    documents, absent, name = None, 0, "corpus"
    if isinstance(wanted, str):
        name = wanted
        documents = read_corpus(wanted)
        judgments = benchmark.judgments
        gold = np.unique(judgments.document[judgments.grade >= parameters.rel_level])
        absent = int((documents.codes(judgments.vocabulary.ids.take(gold)) < 0).sum())
        wanted = len(documents)
    if wanted < seen:
        raise InputError(
            f"{name}: expected a corpus of at least the {seen:,} documents that run "
            f"and qrels name, found {wanted:,}"
        )
    return _Corpus(wanted, True, documents, absent)


def _corpus_notices(corpus: _Corpus, grading: Grading) -> list[str]:
    if not corpus.given:
        seen = f"C draws from the {corpus.size:,} documents that run and qrels name"
        strict = "the real corpus is at least that large, so C errs on the strict side"
        return [f"{seen}; {strict}, and with another run it draws otherwise."]
    if not corpus.absent:
        return []
    return [f"{corpus.absent:,} relevant documents are missing from the corpus file."]


def _groups(name: str | None, benchmark: Benchmark) -> tuple[Groups, int | None]:
    queries = benchmark.judgments.queries
    if name is None:
        return Groups.singletons(len(queries)), None
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
    return Groups.of(codes), len(ids)


# --- one metric ---


class _Steps:
    """Counts steps: grading, and each of four nulls, for every metric and companion."""

    def __init__(self, progress: Progress, metrics: int) -> None:
        self._progress, self._done, self._steps = progress, 0, 5 * metrics

    def expect_companion(self) -> None:
        """Five steps more."""
        self._steps += 5

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._done, self._steps)


def _judge_metric(
    benchmark: Benchmark,
    metric: Metric,
    corpus: _Corpus,
    groups: Groups,
    parameters: Parameters,
    steps: _Steps,
) -> tuple[Grading, Result]:
    """Grade, draw, resample and decide; the companion goes the same way."""
    grading = grade(benchmark, metric, top_k=parameters.top_k, corpus=corpus.size)
    if not len(grading.gold.sizes):
        raise InputError(
            f"qrels: expected a relevant document, found none of grade "
            f"{metric.level} or more for any of {len(benchmark):,} queries"
        )
    compare(benchmark, grading)
    steps()
    nulls = null_models(grading, parameters.n_boot, parameters.seed, steps)
    results = _null_results(grading, nulls, groups, parameters)
    own_verdict = verdict_of(null.state for null in results.values())
    companion = None
    if not metric.top1 and (grading.gold.sizes > 1).any():
        steps.expect_companion()
        strict_metric = companion_of(metric, defaults.COMPANION_CUTOFF)
        _, companion = _judge_metric(
            benchmark, strict_metric, corpus, groups, parameters, steps
        )
    verdict = own_verdict
    if parameters.strict and companion is not None:
        verdict = worst([own_verdict, companion.own_verdict])
    ties = ties_of(grading) if metric.measure in KERNELS else None
    share = judged_share(benchmark, grading.depth)
    result = Result(
        metric.name,
        grading.score,
        verdict,
        own_verdict,
        grading.depth,
        share,
        results,
        ties,
        _hints(nulls, results, groups, parameters),
        (
            *metric_notices(grading, ties, share),
            *paraphrase_notice(grading.gold, groups),
            *_resampling_notices(results, parameters.tau),
        ),
        companion,
        PerQuery(
            benchmark.judgments.queries,
            grading.scores,
            {null.letter: null.of_query for null in nulls},
        ),
    )
    return grading, result


def _null_results(
    grading: Grading,
    nulls: Sequence[Null],
    groups: Groups,
    parameters: Parameters,
) -> dict[str, NullResult]:
    spans = intervals(
        [null.differences for null in nulls],
        groups,
        alpha=parameters.alpha,
        n_boot=parameters.n_boot,
        seed=parameters.seed,
    )
    one_set = len(grading.gold.sizes) == 1
    return {
        null.letter: _null_result(
            null,
            span,
            grading.score,
            parameters,
            silent=one_set and null.letter != "C",
        )
        for null, span in zip(nulls, spans, strict=True)
    }


def _null_result(
    null: Null, span: Interval, score: float, parameters: Parameters, *, silent: bool
) -> NullResult:
    delta, p = score - null.expected, p_value(null, score)
    state = state_of(
        delta, span, p, tau=parameters.tau, alpha=parameters.alpha, silent=silent
    )
    return NullResult(
        null.letter,
        null.expected,
        null.exact,
        null.standard_error,
        null.draws_mean,
        delta,
        span,
        p,
        state,
        meaning(null.letter, state),
    )


def _hints(
    nulls: Sequence[Null],
    results: Mapping[str, NullResult],
    groups: Groups,
    parameters: Parameters,
) -> tuple[Hint, ...]:
    """How many queries would settle each null that is open or silent."""
    count, hints = len(groups.sizes), []
    unit = "queries" if count == len(groups.codes) else "groups"
    for null in nulls:
        state = results[null.letter].state
        if state not in (State.OPEN, State.SILENT):
            continue
        number = None
        if state is State.OPEN:
            sums = sums_at(groups.codes, null.differences, count)
            by_group = sums * count / len(groups.codes)
            moments = Moments.of(by_group)
            number = queries_to_settle(moments, parameters.tau, parameters.alpha)
        hints.append(hint(null.letter, number, count, unit))
    return tuple(hints)


def _resampling_notices(results: Mapping[str, NullResult], tau: float) -> list[str]:
    return [
        line
        for null in results.values()
        for line in resampling_notice(null.letter, null.interval, tau)
    ]


def _facts(
    benchmark: Benchmark, grading: Grading, corpus: _Corpus, groups: int | None
) -> BenchmarkFacts:
    gold = grading.gold
    return BenchmarkFacts(
        len(benchmark),
        int(benchmark.answered.sum()),
        int((gold.sets < 0).sum()),
        len(benchmark.ignored),
        float(gold.query_sizes.mean()),
        len(gold.sizes),
        corpus.size,
        "given" if corpus.given else "seen",
        groups,
    )
