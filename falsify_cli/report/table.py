"""A Judgement -> a screen of text, 80 columns wide whatever the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from shlex import quote

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from falsify_cli.judgement import Hint, Judgement, NullResult, Parameters, Result
from falsify_cli.texts import NAMES, NOTHING_JUDGED
from falsify_cli.verdict import State, Verdict
from falsify_cli.version import __version__

WIDTH = 80
_BAR = 12
# The signs beyond ASCII, for who must know whether they can be printed.
SIGNS = "Δ█┃"

STYLES = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.UNDER_NS: "bold yellow",
    State.PASS: "green",
    State.FAIL: "red",
    State.OPEN: "yellow",
    State.SILENT: "yellow",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How to draw: with colour or without, and with which signs."""

    color: bool = False
    ascii: bool = False

    @property
    def delta(self) -> str:
        """The sign of a gap."""
        return "delta" if self.ascii else "Δ"

    @property
    def bar(self) -> str:
        """One cell of a bar."""
        return "#" if self.ascii else "█"

    @property
    def mark(self) -> str:
        """The mark of a null on the bar."""
        return "|" if self.ascii else "┃"


DEFAULT_LOOK = Look()


def page(draw: Callable[[Console], None], look: Look) -> str:
    """What is drawn on a console of 80 columns, as lines without trailing blanks."""
    out = io.StringIO()
    draw(
        Console(
            file=out,
            width=WIDTH,
            force_terminal=look.color,
            color_system="standard" if look.color else None,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )
    )
    text = in_ascii(out.getvalue()) if look.ascii else out.getvalue()
    return "".join(line.rstrip() + "\n" for line in text.split("\n")[:-1])


def render(judgement: Judgement, look: Look = DEFAULT_LOOK) -> str:
    """The whole report."""
    return page(lambda console: _draw(console, judgement, look), look)


def _draw(console: Console, judgement: Judgement, look: Look) -> None:
    for line in _header(judgement):
        console.print(line)
    for result in judgement.results:
        _draw_result(console, judgement, result, look)
    for notice in judgement.notices:
        draw_paragraph(console, "note", notice)
    names = [result.metric for result in judgement.results]
    draw_repeat(console, names, judgement.parameters, judgement.benchmark.corpus_size)


def verdict_line(judgement: Judgement, look: Look = DEFAULT_LOOK) -> str:
    """The verdict alone, with what it was found on, in one line."""
    scores = ", ".join(f"{r.metric} {r.score:.4f}" for r in judgement.results)
    if not all(result.judged_share for result in judgement.results):
        scores += "  (nothing listed is judged)"
    line = f"{judgement.verdict}  {printable(_name(judgement))}  {scores}\n"
    return in_ascii(line) if look.ascii else line


def in_ascii(text: str) -> str:
    """Text with a question mark for every other sign."""
    # One sign for one: spelled out, a name could widen a line beyond its limit.
    return text.encode("ascii", "replace").decode()


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters are spelled out.

    >>> printable("run" + chr(27) + "[31m")
    'run\\\\x1b[31m'
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def _name(judgement: Judgement) -> str:
    name = judgement.run.name
    return {None: "run", "-": "standard input"}.get(name, name) or "run"


def _header(judgement: Judgement) -> Iterator[str]:
    facts = judgement.benchmark
    yield printable(f"{_name(judgement)} against {judgement.qrels.name or 'qrels'}")
    yield (
        f"{facts.queries_judged:,} queries judged, {facts.queries_answered:,} "
        f"answered, {facts.queries_without_relevant:,} without relevant documents"
    )
    source = "given" if facts.corpus_source == "given" else "seen in run and qrels"
    yield (
        f"{facts.relevant_per_query:.1f} relevant a query in "
        f"{facts.distinct_gold_sets:,} gold sets; "
        f"corpus of {facts.corpus_size:,} documents ({source})"
    )
    if facts.groups is not None:
        yield f"resampled in {facts.groups:,} groups of queries"


def _draw_result(
    console: Console, judgement: Judgement, result: Result, look: Look
) -> None:
    console.print()
    where = "in all lists" if result.depth is None else f"in the top {result.depth}"
    console.print(
        Text.assemble(
            (f"{result.metric}  {result.score:.4f}", "bold"),
            f"    {result.judged_share:.0%} judged {where}",
        )
    )
    console.print(_table(result, look))
    console.print()
    verdict, sentence = _sentence(judgement, result)
    draw_paragraph(console, str(verdict), sentence, STYLES[verdict])
    warning = NOTHING_JUDGED if NOTHING_JUDGED in result.notices else ""
    if warning:
        draw_paragraph(console, "WARN", warning, "bold red")
    for null in result.nulls.values():
        if null.state in (State.FAIL, State.OPEN):
            draw_paragraph(console, null.letter, null.meaning)
    for line in _hints(result.hints):
        draw_paragraph(console, "hint", line)
    if result.companion is not None:
        draw_paragraph(console, "also", _companion(result, result.companion))
    for notice in result.notices:
        if notice != warning:
            draw_paragraph(console, "note", notice)


def _table(result: Result, look: Look) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    level = next(iter(result.nulls.values())).interval.level
    table.add_column("null", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column(look.delta, justify="right", no_wrap=True)
    table.add_column(f"{100 * level:.4g}% interval", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("run, and null", no_wrap=True)
    full = max([result.score, *(null.expected for null in result.nulls.values())])
    for null in result.nulls.values():
        table.add_row(
            f"{null.letter} {NAMES[null.letter]}",
            f"{null.expected:.4f}" + ("" if null.exact else "~"),
            signed(null.delta, 4),
            f"[{signed(null.interval.low)}, {signed(null.interval.high)}]",
            f"{null.p_value:.3f}",
            Text(str(null.state), STYLES[null.state]),
            _bar(result.score, null, full, look),
        )
    return table


def _bar(score: float, null: NullResult, full: float, look: Look) -> str:
    """The run's score as a bar, with the null's score as a mark on it."""
    scale = (_BAR - 1) / full if full > 0 else 0.0
    filled = round(score * scale) + (score > 0)
    cells = list((look.bar * filled).ljust(_BAR))
    cells[round(null.expected * scale)] = look.mark
    return "".join(cells)


def signed(value: float, places: int = 3) -> str:
    """A number with its sign, and no minus before a zero.

    >>> signed(-0.0001), signed(0.25)
    ('+0.000', '+0.250')
    """
    text = f"{value:+.{places}f}"
    return "+" + text[1:] if float(text) == 0 else text


def _sentence(judgement: Judgement, result: Result) -> tuple[Verdict, str]:
    """The verdict in one sentence that a manager understands."""
    tau = f"{judgement.parameters.tau:g}"
    names = {
        state: listed([n.letter for n in result.nulls.values() if n.state is state])
        for state in State
    }
    verdict = result.own_verdict
    if verdict is Verdict.PASS:
        return verdict, (
            f"No dumb system gets this score: the run beats all four by {tau} or more."
        )
    if verdict is Verdict.FAIL:
        return verdict, (
            f"A dumb system gets about this score: the run does not beat "
            f"{names[State.FAIL]} by {tau}."
        )
    unsettled = listed(
        [
            n.letter
            for n in result.nulls.values()
            if n.state in (State.OPEN, State.SILENT)
        ]
    )
    if State.SILENT in [null.state for null in result.nulls.values()]:
        return verdict, (
            f"This benchmark cannot tell whether the run beats {unsettled} by {tau}, "
            f"however many queries it has."
        )
    return verdict, (
        f"Too few queries to tell: {judgement.benchmark.queries_judged:,} do not "
        f"settle whether the run beats {unsettled} by {tau}."
    )


def _hints(hints: Sequence[Hint]) -> list[str]:
    """One line for all nulls that the same number of queries would settle."""
    letters: dict[str, list[str]] = {}
    for hint in hints:
        start = hint.text.removesuffix(f"{hint.null}.")
        letters.setdefault(start, []).append(hint.null)
    return [f"{start}{listed(nulls)}." for start, nulls in letters.items()]


def _companion(result: Result, companion: Result) -> str:
    verdict = companion.own_verdict
    text = f"{companion.metric} {companion.score:.4f}, one relevant document a query"
    if verdict is result.own_verdict:
        return f"{text}, agrees: {verdict}."
    forced = " (--strict: the worse one counts)" if result.verdict is verdict else ""
    return (
        f"{text}, says {verdict}{forced}: several relevant documents a query may "
        f"flatter {result.metric}."
    )


def draw_repeat(
    console: Console,
    metrics: Sequence[str],
    parameters: Parameters,
    corpus: int | None = None,
) -> None:
    """The last lines: what repeats the call. corpus: to name where none was given."""
    console.print()
    words = _repeat(metrics, parameters, corpus)
    _draw_lines(console, "repeat", _filled(words, WIDTH - 8), "bold")


def _repeat(
    metrics: Sequence[str], parameters: Parameters, corpus: int | None
) -> list[str]:
    """The words that repeat the call, each to be kept whole."""
    p = parameters
    options: list[tuple[str, object]] = [
        *(("-m", metric) for metric in metrics),
        ("--seed", p.seed),
        ("--n-boot", p.n_boot),
        ("--tau", p.tau),
        ("--alpha", p.alpha),
        ("--corpus", corpus if p.corpus is None else p.corpus),
        ("--top-k", p.top_k),
        ("--rel-level", None if p.rel_level == 1 else p.rel_level),
        ("--queries", None if p.queries == "judged" else p.queries),
        ("--group", p.group),
    ]
    words = ["falsify", __version__]
    for option, value in options:
        if value is not None:
            words.append(f"{option} {quote(str(value))}")
    words += ["--strict"] * p.strict + ["--drop-self"] * p.drop_self
    return [printable(word) for word in words]


def _filled(words: list[str], width: int) -> list[str]:
    """Words in lines as full as they get; only one wider than a line is broken."""
    lines = [""]
    for word in chain.from_iterable(chop_cells(word, width) for word in words):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def listed(words: Sequence[str]) -> str:
    """Words in a row.

    >>> listed(["A", "B", "D"])
    'A, B and D'
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def draw_paragraph(
    console: Console, label: str, text: str, style: str = "bold"
) -> None:
    """Print a labelled paragraph, wrapped under itself."""
    indent = max(len(label), 6) + 2
    lines = Text(printable(text)).wrap(console, WIDTH - indent)
    _draw_lines(console, label, lines, style)


def _draw_lines(
    console: Console, label: str, lines: Iterable[str | Text], style: str
) -> None:
    indent = max(len(label), 6) + 2
    for number, line in enumerate(lines):
        head = label.ljust(indent) if number == 0 else " " * indent
        console.print(Text.assemble((head, style), line), soft_wrap=True)
