"""Controls -> a screen of text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from falsify_cli.controls import Answer, Control, Controls, Outcome
from falsify_cli.report.table import (
    DEFAULT_LOOK,
    STYLES,
    Look,
    draw_paragraph,
    draw_repeat,
    in_ascii,
    listed,
    page,
    printable,
    signed,
)

_ANSWERS = {
    Answer.YES: "bold green",
    Answer.PARTLY: "bold yellow",
    Answer.NO: "bold red",
}
_OUTCOMES = {
    Outcome.RIGHT: "green",
    Outcome.OPEN: "yellow",
    Outcome.WRONG: "bold red",
    Outcome.REPORTED: "",
}


def render(controls: Controls, look: Look = DEFAULT_LOOK) -> str:
    """The whole report."""
    return page(lambda console: _draw(console, controls), look)


def answer_line(controls: Controls, look: Look = DEFAULT_LOOK) -> str:
    """The answer alone, with what it was found on, in one line."""
    line = (
        f"{controls.answer}  {_name(controls)}  {controls.metric}  "
        f"{len(controls.caught)} of {len(controls.cheats)} cheats caught\n"
    )
    return in_ascii(line) if look.ascii else line


def _name(controls: Controls) -> str:
    name = controls.qrels.name
    return printable({None: "qrels", "-": "standard input"}.get(name, name) or "qrels")


def _draw(console: Console, controls: Controls) -> None:
    facts = controls.facts
    console.print(_name(controls))
    groups = "" if facts.groups is None else f" in {facts.groups:,} groups"
    console.print(
        f"{facts.queries_judged:,} queries{groups}, {facts.relevant_per_query:.1f} "
        f"relevant a query in {facts.distinct_gold_sets:,} gold sets"
    )
    console.print()
    console.print(_table(controls))
    console.print()
    answer = controls.answer
    draw_paragraph(console, str(answer), sentence(controls), _ANSWERS[answer])
    for line in _hints(controls):
        draw_paragraph(console, "hint", line)
    for notice in controls.notices:
        draw_paragraph(console, "note", notice)
    console.print()
    console.print(_legend(controls))
    draw_repeat(console, [controls.metric], controls.parameters)


def _table(controls: Controls) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(controls.metric, no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for letter in controls.controls[0].result.nulls:
        table.add_column(f"gap {letter}", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("expected", no_wrap=True)
    table.add_column("told apart", no_wrap=True)
    for control in controls:
        result = control.result
        table.add_row(
            control.name,
            f"{result.score:.4f}",
            *(signed(null.delta) for null in result.nulls.values()),
            Text(str(result.own_verdict), STYLES[result.own_verdict]),
            str(control.expected),
            Text(str(control.outcome), _OUTCOMES[control.outcome]),
        )
    return table


def _legend(controls: Controls) -> Table:
    legend = Table.grid(padding=(0, 2, 0, 0))
    for control in controls:
        legend.add_row(control.name, control.what)
    return legend


def sentence(controls: Controls) -> str:
    """Whether a cheat can be caught here at all, for a manager."""
    metric, cheats = controls.metric, controls.cheats
    passed = _names(cheats, Outcome.WRONG)
    failed = _names(controls.good, Outcome.WRONG)
    if passed:
        return (
            f"{listed(passed)} should not pass and {_does(passed)}: by {metric} this "
            f"benchmark takes a cheat for a good system."
        )
    if failed:
        return (
            f"{listed(failed)} should pass and {_does(failed)} not: by {metric} this "
            f"benchmark takes a good system for a dumb one."
        )
    if controls.answer is Answer.YES:
        return (
            f"By {metric} this benchmark knows a cheat from a good system: oracle and "
            f"good pass, and all {len(cheats)} cheats fail."
        )
    return " ".join(_doubts(controls))


def _doubts(controls: Controls) -> Iterator[str]:
    """What too few queries leave open, where nothing comes out wrong."""
    caught, cheats = len(controls.caught), len(controls.cheats)
    these = f"By {controls.metric} these {controls.facts.queries_judged:,} queries"
    if caught:
        yield f"{these} catch {caught} of {cheats} cheats; the others do not pass, but"
        yield "are not caught either."
    else:
        yield f"{these} catch no cheat: none of the {cheats} passes, but none fails."
    open_ = _names(controls.good, Outcome.OPEN)
    if open_:
        yield f"{listed(open_)} cannot be told from a dumb system."
    else:
        yield "oracle and good pass."


def _names(controls: list[Control], outcome: Outcome) -> list[str]:
    return [c.name for c in controls if c.outcome is outcome]


def _does(names: list[str]) -> str:
    return "do" if len(names) > 1 else "does"


def _hints(controls: Controls) -> Iterator[str]:
    """How many queries would tell what cannot be told, where that can be said."""
    facts = controls.facts
    present = facts.groups or facts.queries_judged
    unit = "queries" if facts.groups is None else "groups"
    by_number: dict[int | None, list[str]] = {}
    for control in controls:
        if control.outcome is Outcome.OPEN:
            by_number.setdefault(control.queries_needed, []).append(control.name)
    for number, names in by_number.items():
        if number is None:
            continue
        if number <= present:
            yield f"A few more {unit} of this kind would tell {listed(names)}."
        else:
            yield f"About {number:,} {unit} of this kind would tell {listed(names)}."
