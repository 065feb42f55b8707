"""Options in, chain called, output printed, exit; no arithmetic.

Nothing heavy is imported before a command runs, so that --help is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from falsify_cli import defaults
from falsify_cli.errors import UsageError
from falsify_cli.output import can_print, write_file, write_stdout
from falsify_cli.version import __version__

if TYPE_CHECKING:
    from rich.progress import Progress

    from falsify_cli.judgement import Parameters
    from falsify_cli.report.table import Look

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # The parser's own --help would exit 1 where its reader has gone away.
    context_settings={"help_option_names": []},
)

EXIT_CODES = """\
Exit codes:
  0    PASS: the run beats all four nulls by tau
  1    FAIL: it does not beat one of them, and the queries suffice to say so
  2    could not judge: usage or input; standard error says what
  3    UNDER-NS: too few queries to tell
  70   a fault of falsify itself; please report it
  130  interrupted"""


CONTROLS_EXIT_CODES = """\
Exit codes:
  0    every control comes out as it must, or as UNDER-NS
  1    a cheat passes, or a good system fails
  2    could not judge: usage or input; standard error says what
  70   a fault of falsify itself; please report it
  130  interrupted"""


class Format(str, Enum):
    """The formats of a report."""

    table = "table"
    json = "json"


class Queries(str, Enum):
    """Which queries count."""

    judged = "judged"
    answered = "answered"


def _print_version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"falsify {__version__}\n")
        raise typer.Exit


def _print_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        write_stdout(f"{context.get_help()}\n")
        raise typer.Exit


Help = Annotated[
    bool,
    typer.Option(
        "--help",
        "-h",
        callback=_print_help,
        is_eager=True,
        help="Show this message and exit.",
    ),
]


@app.callback(invoke_without_command=True)
def _falsify(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
    help: Help = False,
) -> None:
    """Could a dumb system have got this score?"""
    if context.invoked_subcommand is None:
        raise UsageError("no command given; try 'falsify --help'")


# --- the options, each described once ---

QrelsFile = Annotated[
    str, typer.Argument(metavar="QRELS", help="TREC qrels; - is standard input.")
]
MetricName = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        help=f"One metric, named as for `falsify gate`.  [default: {defaults.METRIC}]",
    ),
]
Tau = Annotated[float, typer.Option(help="The gap each null must be beaten by.")]
NBoot = Annotated[
    int, typer.Option(help="Null draws and resamples; 4x as many halve the noise.")
]
TopK = Annotated[
    int | None,
    typer.Option(help="Cut the lists there, and let null C retrieve as many."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same bytes.")]
Alpha = Annotated[
    float, typer.Option(help="The error rate of the four intervals together.")
]
RelLevel = Annotated[
    int,
    typer.Option(
        "--rel-level", "-l", help="The lowest relevant grade, as trec_eval -l."
    ),
]
Corpus = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|N",
        help="What null C retrieves from: document ids, one a line, or their "
        "number.  [default: the documents of run and qrels]",
    ),
]
JudgedCorpus = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|N",
        help="What random lists are drawn from: document ids, one a line, or their "
        "number.  [default: the documents of the qrels]",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Lines of query and group id: paraphrases are resampled together.",
    ),
]
ReportFormat = Annotated[
    Format, typer.Option("--format", help="A table for people, JSON for programs.")
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report there."),
]
NoColor = Annotated[
    bool, typer.Option("--no-color", help="No colour; NO_COLOR does the same.")
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Plain ASCII signs only.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes and threads that share large work.  "
        "[default: the cores, 4 at most]",
    ),
]


# --- the commands ---


@app.command(
    epilog="Example:\n\n\b\n  falsify gate run.txt qrels.txt -m nDCG@10\n\n\b\n"
    + EXIT_CODES
)
def gate(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A TREC run; - is standard input.")
    ],
    qrels: Annotated[str, typer.Argument(metavar="QRELS", help="Its TREC qrels.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="nDCG@10, ndcg_cut_10, ndcg@10, ...: nDCG, AP, RR, P, R, Success, "
            "R@k_top1, or any measure of trec_eval in [0, 1]. May be repeated: the "
            f"worst verdict counts.  [default: {defaults.METRIC}]",
        ),
    ] = None,
    tau: Tau = defaults.TAU,
    n_boot: NBoot = defaults.N_BOOT,
    top_k: TopK = None,
    seed: Seed = defaults.SEED,
    alpha: Alpha = defaults.ALPHA,
    rel_level: RelLevel = defaults.REL_LEVEL,
    corpus: Corpus = None,
    queries: Annotated[
        Queries,
        typer.Option(help="judged: a query without results scores 0, as trec_eval -c."),
    ] = Queries.judged,
    group: Group = None,
    drop_self: Annotated[
        bool,
        typer.Option("--drop-self", help="Ignore rows whose document is the query."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Let the companion metric R@k_top1 count as well."
        ),
    ] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit 0 on FAIL and UNDER-NS too.")
    ] = False,
    allow_under_ns: Annotated[
        bool, typer.Option("--allow-under-ns", help="Exit 0 on UNDER-NS too.")
    ] = False,
    format: ReportFormat = Format.table,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", help="Put every query's scores into the JSON."),
    ] = False,
    output: Output = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the verdict line only.")
    ] = False,
    no_color: NoColor = False,
    ascii: Ascii = False,
    threads: Threads = None,
    help: Help = False,
) -> None:
    """Grade RUN against QRELS, and compare it with four dumb systems."""
    from falsify_cli.judge import gate as judge_files
    from falsify_cli.verdict import exit_code

    _refuse_to_overwrite(output, run, qrels, corpus, group)
    if per_query and format is not Format.json:
        raise UsageError("--per-query: goes into the JSON; add --format json")
    with _progress_bar() as progress:
        judgement = judge_files(
            run,
            qrels,
            metric or defaults.METRIC,
            tau=tau,
            alpha=alpha,
            n_boot=n_boot,
            seed=seed,
            top_k=top_k,
            rel_level=rel_level,
            corpus=_number_or_name(corpus),
            queries=queries.value,
            strict=strict,
            drop_self=drop_self,
            group=group,
            threads=threads,
            digest=format is Format.json,
            progress=progress,
            tell=_tell,
        )
    # After the files are read, whose peak these 7 MB would raise.
    from falsify_cli.report import json, table

    code = int(
        exit_code(judgement.verdict, exit_zero=exit_zero, allow_under_ns=allow_under_ns)
    )
    report = _Report(
        lambda look: table.render(judgement, look),
        lambda: json.render(judgement, per_query=per_query, exit_code=code),
        lambda look: table.verdict_line(judgement, look),
    )
    _print(report, format, output, quiet=quiet, no_color=no_color, ascii=ascii)
    raise typer.Exit(code)


@app.command(
    epilog="Example:\n\n\b\n  falsify controls qrels.txt -m nDCG@10\n\n\b\n"
    + CONTROLS_EXIT_CODES
)
def controls(
    qrels: QrelsFile,
    metric: MetricName = None,
    tau: Tau = defaults.TAU,
    n_boot: NBoot = defaults.N_BOOT,
    top_k: TopK = None,
    seed: Seed = defaults.SEED,
    alpha: Alpha = defaults.ALPHA,
    rel_level: RelLevel = defaults.REL_LEVEL,
    corpus: JudgedCorpus = None,
    group: Group = None,
    format: ReportFormat = Format.table,
    output: Output = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer line only.")
    ] = False,
    no_color: NoColor = False,
    ascii: Ascii = False,
    threads: Threads = None,
    help: Help = False,
) -> None:
    """Put good systems and cheats made from QRELS through the gate.

    Do the good ones pass, and is every cheat caught? If not, no verdict on this
    benchmark means much.
    """
    from falsify_cli.controls import controls as put_controls
    from falsify_cli.report import controls_table, json
    from falsify_cli.systems import Ground

    _refuse_to_overwrite(output, qrels, corpus, group)
    parameters = _parameters(tau, alpha, n_boot, seed, top_k, rel_level, corpus, group)
    ground = Ground.of(qrels, _one_metric(metric), parameters, threads)
    with _progress_bar() as progress:
        found = put_controls(ground, progress)
    report = _Report(
        lambda look: controls_table.render(found, look),
        lambda: json.render_plain(found.to_dict()),
        lambda look: controls_table.answer_line(found, look),
    )
    _print(report, format, output, quiet=quiet, no_color=no_color, ascii=ascii)
    raise typer.Exit(int(found.exit_code))


@app.command(epilog="Example:\n\n\b\n  falsify inspect qrels.txt -m nDCG@10")
def inspect(
    qrels: QrelsFile,
    metric: MetricName = None,
    tau: Tau = defaults.TAU,
    n_boot: NBoot = defaults.N_BOOT,
    top_k: TopK = None,
    seed: Seed = defaults.SEED,
    alpha: Alpha = defaults.ALPHA,
    rel_level: RelLevel = defaults.REL_LEVEL,
    corpus: JudgedCorpus = None,
    group: Group = None,
    format: ReportFormat = Format.table,
    output: Output = None,
    no_color: NoColor = False,
    ascii: Ascii = False,
    threads: Threads = None,
    help: Help = False,
) -> None:
    """Say what QRELS can tell and what not, before there is a run."""
    from falsify_cli.inspection import inspect as look_at
    from falsify_cli.report import inspection_table, json
    from falsify_cli.systems import Ground

    _refuse_to_overwrite(output, qrels, corpus, group)
    parameters = _parameters(tau, alpha, n_boot, seed, top_k, rel_level, corpus, group)
    found = look_at(Ground.of(qrels, _one_metric(metric), parameters, threads))
    report = _Report(
        lambda look: inspection_table.render(found, look),
        lambda: json.render_plain(found.to_dict()),
    )
    _print(report, format, output, quiet=False, no_color=no_color, ascii=ascii)


# --- what the commands share ---


def _one_metric(metrics: list[str] | None) -> str:
    if metrics and len(metrics) > 1:
        raise UsageError("--metric: expected one; ask again for the next")
    return metrics[0] if metrics else defaults.METRIC


def _number_or_name(corpus: str | None) -> int | str | None:
    return int(corpus) if corpus and corpus.isdecimal() else corpus


def _parameters(
    tau: float,
    alpha: float,
    n_boot: int,
    seed: int,
    top_k: int | None,
    rel_level: int,
    corpus: str | None,
    group: str | None,
) -> Parameters:
    """What was asked for where there is no run."""
    from falsify_cli.judgement import Parameters

    return Parameters(
        tau=tau,
        alpha=alpha,
        n_boot=n_boot,
        seed=seed,
        top_k=top_k,
        rel_level=rel_level,
        queries=Queries.judged.value,
        corpus=_number_or_name(corpus),
        strict=False,
        drop_self=False,
        group=group,
    )


def _refuse_to_overwrite(output: str | None, *inputs: str | None) -> None:
    for name in inputs:
        there = output and name and os.path.exists(output) and os.path.exists(name)
        if there and os.path.samefile(output or "", name or ""):
            raise UsageError(f"{output}: is the input {name}; choose another file")


@dataclass(frozen=True)
class _Report:
    """The shapes of one report, made as they are asked for. line: under --quiet."""

    table: Callable[[Look], str]
    json: Callable[[], str]
    line: Callable[[Look], str] = lambda look: ""


def _print(
    report: _Report,
    format: Format,
    output: str | None,
    *,
    quiet: bool,
    no_color: bool,
    ascii: bool,
) -> None:
    """Send the report to its file or to standard output."""
    from falsify_cli.report.table import SIGNS, Look

    if format is Format.json:
        text = report.json()
    else:
        color = not (no_color or os.environ.get("NO_COLOR"))
        color = color and os.environ.get("TERM") != "dumb"
        on_terminal = output is None and sys.stdout is not None and sys.stdout.isatty()
        plain = ascii or (output is None and not can_print(SIGNS))
        text = report.table(Look(color=color and on_terminal, ascii=plain))
    if output is not None:
        write_file(output, text)
    if quiet:
        write_stdout(report.line(Look(ascii=ascii or not can_print(SIGNS))))
    elif output is None:
        write_stdout(text)


class _ProgressBar:
    """A bar on standard error, once the work has taken a second, on a terminal.

    Drawn when it is told something, ten times a second at most: a thread that draws
    would keep helper processes from being forked.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._next = monotonic() + 1.0

    def __call__(self, done: int, steps: int) -> None:
        if monotonic() < self._next:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(
                console=Console(stderr=True), transient=True, auto_refresh=False
            )
            self._bar.add_task("falsify", total=None)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=steps)
        self._bar.refresh()
        self._next = monotonic() + 0.1

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _tell(text: str) -> None:
    if sys.stderr is not None:
        typer.echo(f"falsify: {text}", err=True)


@contextmanager
def _progress_bar() -> Iterator[Callable[[int, int], None]]:
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, steps: None
        return
    bar = _ProgressBar()
    try:
        yield bar
    finally:
        bar.close()
