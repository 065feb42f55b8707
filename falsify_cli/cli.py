"""Options in, chain called, output printed, exit; no arithmetic.

Nothing heavy is imported before a command runs, so that --help is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from falsify_cli import defaults
from falsify_cli.errors import UsageError
from falsify_cli.output import can_print, write_file, write_stdout
from falsify_cli.version import __version__

if TYPE_CHECKING:
    from falsify_cli.judgement import Judgement

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
    tau: Annotated[
        float, typer.Option(help="The gap each null must be beaten by.")
    ] = defaults.TAU,
    n_boot: Annotated[
        int, typer.Option(help="Null draws and resamples; 4x as many halve the noise.")
    ] = defaults.N_BOOT,
    top_k: Annotated[
        int | None,
        typer.Option(help="Cut the lists there, and let null C retrieve as many."),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same bytes.")
    ] = defaults.SEED,
    alpha: Annotated[
        float, typer.Option(help="The error rate of the four intervals together.")
    ] = defaults.ALPHA,
    rel_level: Annotated[
        int,
        typer.Option(
            "--rel-level", "-l", help="The lowest relevant grade, as trec_eval -l."
        ),
    ] = defaults.REL_LEVEL,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|N",
            help="What null C retrieves from: document ids, one a line, or their "
            "number.  [default: the documents of run and qrels]",
        ),
    ] = None,
    queries: Annotated[
        Queries,
        typer.Option(help="judged: a query without results scores 0, as trec_eval -c."),
    ] = Queries.judged,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Lines of query and group id: paraphrases are resampled together.",
        ),
    ] = None,
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
    format: Annotated[
        Format, typer.Option(help="A table for people, JSON for programs.")
    ] = Format.table,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", help="Put every query's scores into the JSON."),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the report there."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the verdict line only.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colour; NO_COLOR does the same.")
    ] = False,
    ascii: Annotated[
        bool, typer.Option("--ascii", help="Plain ASCII signs only.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Threads to read with.  [default: the cores, 4 at most]"
        ),
    ] = None,
    help: Help = False,
) -> None:
    """Grade RUN against QRELS, and compare it with four dumb systems."""
    from falsify_cli.judge import gate as judge_files
    from falsify_cli.verdict import exit_code

    _refuse_to_overwrite(output, run, qrels, corpus, group)
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
            corpus=int(corpus) if corpus and corpus.isdecimal() else corpus,
            queries=queries.value,
            strict=strict,
            drop_self=drop_self,
            group=group,
            threads=threads,
            digest=format is Format.json,
            progress=progress,
        )
    code = exit_code(
        judgement.verdict, exit_zero=exit_zero, allow_under_ns=allow_under_ns
    )
    color = not (no_color or os.environ.get("NO_COLOR"))
    color = color and os.environ.get("TERM") != "dumb"
    _print(judgement, format, per_query, int(code), output, quiet, color, ascii)
    raise typer.Exit(int(code))


def _refuse_to_overwrite(output: str | None, *inputs: str | None) -> None:
    for name in inputs:
        there = output and name and os.path.exists(output) and os.path.exists(name)
        if there and os.path.samefile(output or "", name or ""):
            raise UsageError(f"{output}: is the input {name}; choose another file")


def _print(
    judgement: Judgement,
    format: Format,
    per_query: bool,
    code: int,
    output: str | None,
    quiet: bool,
    color: bool,
    ascii: bool,
) -> None:
    """Send the report to its file or to standard output."""
    from falsify_cli.report import json, table

    if format is Format.json:
        text = json.render(judgement, per_query=per_query, exit_code=code)
    else:
        on_terminal = output is None and sys.stdout is not None and sys.stdout.isatty()
        plain = ascii or (output is None and not can_print(table.SIGNS))
        look = table.Look(color=color and on_terminal, ascii=plain)
        text = table.render(judgement, look)
    if output is not None:
        write_file(output, text)
    if quiet:
        plain = ascii or not can_print(table.SIGNS)
        write_stdout(table.verdict_line(judgement, table.Look(ascii=plain)))
    elif output is None:
        write_stdout(text)


class _ProgressBar:
    """A bar on standard error, once the work has taken a second, on a terminal."""

    def __init__(self) -> None:
        from threading import Timer

        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("falsify", total=None)
        self._timer = Timer(1.0, self._bar.start)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, done: int, steps: int) -> None:
        self._bar.update(self._task, completed=done, total=steps)

    def close(self) -> None:
        """Take the bar away."""
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()


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
