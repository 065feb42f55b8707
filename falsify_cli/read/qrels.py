"""A qrels file, or a mapping -> Qrels: queries, judged documents and grades."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Ints
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids, Vocabulary
from falsify_cli.read.facts import FileFacts
from falsify_cli.read.fields import FaultyLineError, Table
from falsify_cli.read.growing import GrowingColumn, GrowingIds
from falsify_cli.read.layout import QRELS_LAYOUTS, Layout, shown
from falsify_cli.read.lines import Text, not_a_number, open_text
from falsify_cli.read.mapping import columns_of, parse_json
from falsify_cli.read.numbering import Numbering
from falsify_cli.read.numbers import parse_float, parse_whole_numbers
from falsify_cli.read.source import Source, opened


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """The judgments, each (query, document) once.

    queries: N ids sorted by their bytes. vocabulary: the D judged documents.
    query, document, grade: (m,) sorted by query, then document.
    repeated: judgments that stood in the file once more.
    """

    facts: FileFacts
    queries: list[str]
    vocabulary: Vocabulary
    query: Ints
    document: Ints
    grade: Ints
    repeated: int = 0


def read_qrels(
    name: str,
    *,
    digest: bool = False,
    processes: int = 1,
    chunk_bytes: int = defaults.CHUNK_BYTES,
) -> Qrels:
    """Read a qrels file of any known layout.

    Raises InputError, with file and line, for whatever cannot be meant.
    """
    with opened(name, digest=digest) as source:
        text = open_text(source, QRELS_LAYOUTS, chunk_bytes)
        if isinstance(text, bytes):
            source.notes.append("JSON")
            return _assemble_mapping(source, parse_json(name, text))
        return _read_text(text, processes)


def qrels_of_mapping(qrels: Mapping[str, Mapping[str, float]]) -> Qrels:
    """Take qrels from {query: {document: grade}}."""
    return _assemble_mapping(None, qrels)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    line_count: int
    lines: Ints
    queries: Ids
    documents: Ids
    grades: Ints
    oddities: tuple[str, ...]


def _parse(table: Table, layout: Layout) -> _Block:
    fields = table.column(layout.value)
    grades, good = parse_whole_numbers(fields)
    if not good.all():
        row = int(np.argmin(good))
        text = fields.bytes_at(row)
        fault = not_a_number(layout, text)
        if parse_float(text) is not None:
            fault = f"expected a whole number as the grade, found {shown(text)}"
        raise FaultyLineError(table.line(row), fault)
    return _Block(
        table.line_count,
        np.arange(len(table)) if table.lines is None else table.lines,
        table.column(layout.query).compact(),
        table.column(layout.document).compact(),
        grades,
        table.oddities,
    )


def _read_text(text: Text, processes: int) -> Qrels:
    source, layout = text.source, text.opening.layout
    queries, documents = Numbering(), GrowingIds()
    query, grade, line = (GrowingColumn(np.int64) for _ in range(3))
    oddities: dict[str, None] = {}
    parse = partial(_parse, layout=layout)
    with closing(text.blocks(parse, processes)) as blocks:
        for before, block in blocks:
            query.add(queries.numbers(block.queries))
            documents.add(block.documents)
            grade.add(block.grades)
            line.add(block.lines + (before + 1))
            oddities.update(dict.fromkeys(block.oddities))
    notes = text.notes(oddities)
    if not len(documents):
        raise InputError(f"{source.name}: the file is empty: no record in it")
    names = queries.ids().to_list()
    text.refuse_header_that_is_a_record(names)
    return _assemble(
        FileFacts(source.name, len(documents), source.sha256, notes),
        names,
        query.column(),
        documents.column(),
        grade.column(),
        line.column(),
    )


def _assemble_mapping(
    source: Source | None, qrels: Mapping[str, Mapping[str, float]]
) -> Qrels:
    name = source.name if source else None
    queries, documents, values, lengths = columns_of(qrels, name or "qrels")
    whole = (np.abs(values) < 2**31) & (np.trunc(values) == values)
    if not whole.all():
        odd = values[~whole][0]
        raise InputError(
            f"{name or 'qrels'}: expected whole numbers as grades, found {odd:g}"
        )
    grades = values.astype(np.int64)
    facts = FileFacts(
        name,
        len(documents),
        source.sha256 if source else None,
        tuple(source.notes) if source else (),
    )
    codes = np.repeat(np.arange(len(queries)), lengths)
    return _assemble(facts, queries, codes, documents, grades, None)


def _assemble(
    facts: FileFacts,
    names: list[str],
    query: Ints,
    documents: Ids,
    grade: Ints,
    lines: Ints | None,
) -> Qrels:
    """Sort the judgments by query and document, and keep each once."""
    by_bytes = Ids.of(names).order()
    rank = np.empty(len(names), np.int64)
    rank[by_bytes] = np.arange(len(names))
    vocabulary = Vocabulary.of(documents)
    document = vocabulary.codes(documents)
    pair = rank[query] * len(vocabulary) + document
    order = np.argsort(pair, kind="stable")
    pair, grade = pair[order], grade[order]
    again = np.flatnonzero(pair[1:] == pair[:-1]) + 1
    conflict = again[grade[again] != grade[again - 1]]
    if len(conflict):
        at = int(conflict[0])
        first, second = int(order[at - 1]), int(order[at])
        place, earlier = facts.name, "earlier"
        if lines is not None:
            place, earlier = f"{place}:{lines[second]}", f"on line {lines[first]}"
        raise InputError(
            f"{place}: expected one grade for query "
            f"{shown(names[query[second]].encode())}, document "
            f"{shown(documents.bytes_at(second))}, found {grade[at]} here and "
            f"{grade[at - 1]} {earlier}; keep one of them"
        )
    kept = np.ones(len(pair), np.bool_)
    kept[again] = False
    return Qrels(
        facts,
        [names[i] for i in by_bytes.tolist()],
        vocabulary,
        rank[query][order][kept],
        document[order][kept],
        grade[kept],
        len(again),
    )
