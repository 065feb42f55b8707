"""Run + qrels -> Judgement: the whole chain, and the public API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import index
from os import PathLike, fspath
from typing import TypeAlias

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark, join, judged_share
from falsify_cli.columns import sums_at
from falsify_cli.grading import Grading, grade, refuse_no_relevant
from falsify_cli.hint import Moments, queries_to_settle
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
    corpus_notices,
    input_notices,
    metric_notices,
    paraphrase_notice,
    resampling_notice,
)
from falsify_cli.nulls import Null, Nulls, null_models_together, p_value
from falsify_cli.nulls.draws import LETTERS
from falsify_cli.read import (
    Keep,
    Qrels,
    Run,
    qrels_of_mapping,
    read_qrels,
    read_run,
    run_of_mapping,
)
from falsify_cli.second_opinion import compare
from falsify_cli.settings import (
    ANSWERED,
    JUDGED,
    Corpus,
    check_parameters,
    corpus_of,
    groups_of,
    refuse_standard_input_twice,
    threads_or_cores,
)
from falsify_cli.texts import hint, meaning
from falsify_cli.ties import ties_of
from falsify_cli.trec_scorer import Watch
from falsify_cli.verdict import State, state_of, verdict_of, worst
from falsify_cli.version import __version__

RunInput: TypeAlias = "str | PathLike[str] | Mapping[str, Mapping[str, float]]"
QrelsInput: TypeAlias = "str | PathLike[str] | Mapping[str, Mapping[str, int]]"
Path: TypeAlias = "str | PathLike[str]"

# Told after each step how many of how many are done.
Progress: TypeAlias = Callable[[int, int], None]
Tell: TypeAlias = Callable[[str], None]


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
    tell: Tell = lambda text: None,
) -> Judgement:
    """Grade a run, and judge whether a dumb system could have got its score.

    run, qrels: files (``-`` is standard input), or ``{query: {document: score}}``
    and ``{query: {document: grade}}``. metric: one name or several. tau: the gap,
    in metric units, every null must be beaten by. alpha: the error rate of a
    metric's four intervals together. n_boot: draws of each null. top_k: cut the
    lists there. rel_level: the lowest relevant grade. corpus: a file of document
    ids, or their number. queries: "judged" or "answered". strict: the companion
    metric counts. drop_self: ignore documents with their query's id. group: a file
    of query and group ids, resampled together. threads: processes and threads that
    share large work, the cores where None: threads draw; processes read, on Linux and
    where this one has no other thread. They change no number.
    digest: hash the files, for the report. progress: called along the way. tell:
    takes a line for the user, before work that takes more than a minute.

    Raises InputError for files that cannot be read as run and qrels, UsageError for
    arguments out of range, InternalError where a self-check fails.

    >>> run = {"q1": {"d1": 2.0, "d2": 1.0}}
    >>> print(gate(run, {"q1": {"d1": 1}}, "RR").verdict)
    UNDER-NS
    """
    refuse_standard_input_twice(run, qrels, corpus, group)
    names = [metric] if isinstance(metric, str) else list(metric)
    metrics = [parse_metric(name, index(rel_level)) for name in names]
    shared_by = threads_or_cores(threads)
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
    check_parameters(parameters, metrics)
    judgments = _qrels(qrels, digest, shared_by)
    depth = _deepest(metrics, parameters.top_k)
    keep = Keep(
        depth, parameters.drop_self, judgments.vocabulary if depth is None else None
    )
    benchmark = join(
        _run(run, keep, digest, shared_by, lambda: progress(0, len(LETTERS))),
        judgments,
        answered_only=parameters.queries == ANSWERED,
    )
    return judge(benchmark, metrics, parameters, progress, tell, shared_by)


def judge(
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    parameters: Parameters,
    progress: Progress = lambda done, steps: None,
    tell: Tell = lambda text: None,
    threads: int = 1,
) -> Judgement:
    """Judge a run that has been read and joined with its qrels, under each metric."""
    corpus = corpus_of(parameters, benchmark)
    groups = groups_of(parameters.group, benchmark)
    watch = Watch(parameters.n_boot, tell, progress)
    gradings = _gradings(benchmark, metrics, corpus, parameters, watch)
    found = _results(benchmark, gradings, groups, parameters, progress, threads)
    results = tuple(
        _beside(found[metric], _companion(gradings[metric]), found, parameters)
        for metric in metrics
    )
    return Judgement(
        __version__,
        benchmark.run,
        benchmark.qrels,
        parameters,
        _facts(benchmark, gradings[metrics[0]], corpus, groups, parameters),
        worst(result.verdict for result in results),
        results,
        (
            *input_notices(benchmark, answered_only=parameters.queries == ANSWERED),
            *corpus_notices(corpus),
        ),
    )


# --- inputs ---


def _corpus_parameter(corpus: int | Path | None) -> int | str | None:
    if corpus is None or isinstance(corpus, str | PathLike):
        return None if corpus is None else fspath(corpus)
    return index(corpus)


def _deepest(metrics: Sequence[Metric], top_k: int | None) -> int | None:
    """The rank below which no metric, nor its companion, nor a notice looks."""
    if top_k is not None:
        return max(top_k, defaults.LOOKED_AT)
    cutoffs = [metric.cutoff for metric in metrics]
    if None in cutoffs:
        return None
    known = (cutoff for cutoff in cutoffs if cutoff is not None)
    return max(*known, defaults.LOOKED_AT)


def _run(
    run: RunInput, keep: Keep, digest: bool, threads: int, tick: Callable[[], None]
) -> Run:
    if isinstance(run, Mapping):
        return run_of_mapping(run, keep)
    return read_run(fspath(run), keep, digest=digest, processes=threads, tick=tick)


def _qrels(qrels: QrelsInput, digest: bool, threads: int) -> Qrels:
    if isinstance(qrels, Mapping):
        return qrels_of_mapping(qrels)
    return read_qrels(fspath(qrels), digest=digest, processes=threads)


# --- evidence and results ---


def _gradings(
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    corpus: Corpus,
    parameters: Parameters,
    watch: Watch,
) -> dict[Metric, Grading]:
    """Grade the run under each metric, and under its companion where it has one.

    Raises InputError where a metric has nothing to find.
    """
    gradings: dict[Metric, Grading] = {}
    waiting = list(metrics)
    while waiting:
        metric = waiting.pop(0)
        if metric in gradings:
            continue
        grading = grade(
            benchmark,
            metric,
            top_k=parameters.top_k,
            corpus=corpus.size,
            watch=watch,
        )
        refuse_no_relevant(grading.gold, metric, benchmark.qrels.name)
        compare(benchmark, grading)
        gradings[metric] = grading
        companion = _companion(grading)
        if companion is not None:
            waiting.append(companion)
    return gradings


def _companion(grading: Grading) -> Metric | None:
    """The companion metric, where some query has several relevant documents."""
    if grading.metric.top1 or not (grading.gold.sizes > 1).any():
        return None
    return companion_of(grading.metric, defaults.COMPANION_CUTOFF)


def _results(
    benchmark: Benchmark,
    gradings: Mapping[Metric, Grading],
    groups: Groups,
    parameters: Parameters,
    progress: Progress,
    threads: int,
) -> dict[Metric, Result]:
    """Draw, resample and decide; one set of weights serves all metrics."""
    done, steps = count(1), len(LETTERS)
    cells = parameters.n_boot * len(benchmark) * len(gradings)
    if cells + defaults.CELLS_A_LINE * benchmark.run.lines < defaults.SHARED_CELLS:
        threads = 1
    together = null_models_together(
        list(gradings.values()),
        parameters.n_boot,
        parameters.seed,
        threads,
        lambda: progress(next(done), steps),
    )
    spans = iter(
        intervals(
            [null.differences for nulls in together for null in nulls],
            groups,
            alpha=parameters.alpha,
            n_boot=parameters.n_boot,
            seed=parameters.seed,
            threads=threads,
        )
    )
    return {
        metric: _result(
            benchmark, grading, nulls, [next(spans) for _ in nulls], groups, parameters
        )
        for (metric, grading), nulls in zip(gradings.items(), together, strict=True)
    }


def _result(
    benchmark: Benchmark,
    grading: Grading,
    nulls: Nulls,
    spans: Sequence[Interval],
    groups: Groups,
    parameters: Parameters,
) -> Result:
    """Decide on one metric alone."""
    one_set = len(grading.gold.sizes) == 1
    results = {
        null.letter: _null_result(
            null,
            span,
            grading.score,
            parameters,
            silent=one_set and null.letter != "C",
        )
        for null, span in zip(nulls, spans, strict=True)
    }
    verdict = verdict_of(null.state for null in results.values())
    ties = ties_of(grading) if grading.metric.measure in KERNELS else None
    share = judged_share(benchmark, grading.depth)
    return Result(
        grading.metric.name,
        grading.score,
        verdict,
        verdict,
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
        None,
        PerQuery(
            benchmark.judgments.queries,
            grading.scores,
            {null.letter: null.of_query for null in nulls},
        ),
    )


def _beside(
    result: Result,
    metric: Metric | None,
    found: Mapping[Metric, Result],
    parameters: Parameters,
) -> Result:
    """A result with that of its companion, which under --strict counts as well."""
    if metric is None:
        return result
    companion, verdict = found[metric], result.own_verdict
    if parameters.strict:
        verdict = worst([verdict, companion.own_verdict])
    return replace(result, verdict=verdict, companion=companion)


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
        meaning(null.letter, state, worthless=null.expected < parameters.tau),
    )


def _hints(
    nulls: Sequence[Null],
    results: Mapping[str, NullResult],
    groups: Groups,
    parameters: Parameters,
) -> tuple[Hint, ...]:
    """How many queries would settle each null that is open or silent."""
    present, hints = len(groups.sizes), []
    unit = "queries" if present == len(groups.codes) else "groups"
    for null in nulls:
        state = results[null.letter].state
        if state not in (State.OPEN, State.SILENT):
            continue
        number = None
        if state is State.OPEN:
            sums = sums_at(groups.codes, null.differences, present)
            by_group = sums * present / len(groups.codes)
            moments = Moments.of(by_group)
            number = queries_to_settle(moments, parameters.tau, parameters.alpha)
        hints.append(hint(null.letter, number, present, unit))
    return tuple(hints)


def _resampling_notices(results: Mapping[str, NullResult], tau: float) -> list[str]:
    return [
        line
        for null in results.values()
        for line in resampling_notice(null.letter, null.interval, tau)
    ]


def _facts(
    benchmark: Benchmark,
    grading: Grading,
    corpus: Corpus,
    groups: Groups,
    parameters: Parameters,
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
        None if parameters.group is None else len(groups.sizes),
    )
