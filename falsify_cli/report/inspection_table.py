"""An Inspection -> a screen of text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from falsify_cli.inspection import Inspection, Spread
from falsify_cli.report.table import (
    DEFAULT_LOOK,
    STYLES,
    Look,
    draw_paragraph,
    draw_repeat,
    listed,
    page,
    printable,
    signed,
)


def render(inspection: Inspection, look: Look = DEFAULT_LOOK) -> str:
    """The whole report."""
    return page(lambda console: _draw(console, inspection), look)


def _draw(console: Console, inspection: Inspection) -> None:
    name = inspection.qrels.name
    console.print(
        printable({None: "qrels", "-": "standard input"}.get(name, name) or "qrels")
    )
    console.print(_table(_counts(inspection)))
    console.print()
    console.print(f"{inspection.metric}", style="bold")
    console.print(_table(_scores(inspection)))
    console.print()
    verdict = inspection.ideal.verdict
    draw_paragraph(console, "ideal", _verdict(inspection), STYLES[verdict])
    for line in _power(inspection):
        draw_paragraph(console, "power", line)
    for warning in inspection.warnings:
        draw_paragraph(console, "warn", warning, "bold yellow")
    for notice in inspection.notices:
        draw_paragraph(console, "note", notice)
    draw_repeat(console, [inspection.metric], inspection.parameters)


def _table(rows: Iterator[tuple[str, ...]]) -> Table:
    """Rows of a name, values, and a text that wraps."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def _counts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    facts, labels, grades = inspection.facts, inspection.labels, inspection.grades
    groups = "" if facts.groups is None else f" in {facts.groups:,} groups"
    without = f"{facts.queries_without_relevant:,} without relevant documents"
    shared = f", one shared by {labels.sharing:,} queries" * (labels.sharing > 1)
    varied = f"as varied as {labels.effective:,.1f} equally common ones"
    commonest = f"{labels.commonest}, relevant to {labels.share:.1%} of the queries"
    yield "queries", f"{facts.queries_judged:,}{groups}, {without}"
    yield "judged a query", _spread(inspection.judged)
    yield "relevant a query", _spread(inspection.relevant)
    yield "grades", ", ".join(f"{n:,} of {grade}" for grade, n in grades.items())
    yield "gold sets", f"{labels.sets:,} distinct{shared}"
    yield "labels", f"{labels.count:,} documents are relevant somewhere, {varied}"
    yield "commonest label", commonest


def _spread(spread: Spread) -> str:
    return f"{spread.mean:.1f} on average, {spread.least:,} to {spread.most:,}"


def _scores(inspection: Inspection) -> Iterator[tuple[str, str, str]]:
    yield "ideal run", f"{inspection.ideal.score:.4f}", "the right answers, best first"
    constant = inspection.constant
    if constant is None:
        yield "constant list", "?", "the best one is not known for this measure"
    else:
        least = "" if constant.exact else "; found greedily, so the best may score more"
        what = f"the best {len(constant.documents):,} documents for all queries{least}"
        yield "constant list", f"{constant.score:.4f}", what
    exact = "" if inspection.ideal.nulls["C"].exact else "~"
    what = f"drawn from a corpus of {inspection.facts.corpus_size:,} documents"
    yield "random lists", f"{inspection.random:.4f}{exact}", what


def _verdict(inspection: Inspection) -> str:
    gaps = listed(
        [f"{n.letter} {signed(n.delta)}" for n in inspection.ideal.nulls.values()]
    )
    verdict = inspection.ideal.verdict
    return f"The gate says {verdict} of the ideal run; its gaps are {gaps}."


def _power(inspection: Inspection) -> Iterator[str]:
    """Which gaps can be seen, and with how many queries others could."""
    (units, unit), tau = inspection.units, inspection.parameters.tau
    if inspection.least_gap is None:
        yield f"With {units:,} {unit} no system is sure enough to pass at tau {tau:g}."
    else:
        yield (
            f"With {units:,} {unit} a system whose true gap to the nearest null is "
            f"about {inspection.least_gap:.2g} passes in 80% of all cases."
        )
    needs = [
        f"about {number:,} {unit} for a gap of {gap:g}"
        for gap, number in inspection.queries_for.items()
        if number is not None
    ]
    if needs:
        yield (
            f"To pass as surely takes {listed(needs)}, if a share of the queries is "
            f"answered ideally and the others like at random."
        )
