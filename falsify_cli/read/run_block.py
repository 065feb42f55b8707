"""One chunk's table -> RunBlock: segments of one query each, and the lines kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_cli.columns import Floats, Ints
from falsify_cli.ids import Ids, PackedKeys, Vocabulary, packed
from falsify_cli.read.fields import FaultyLineError, Table
from falsify_cli.read.in_order import lines_that_matter
from falsify_cli.read.kept_lines import top_of_segments
from falsify_cli.read.layout import Layout, shown
from falsify_cli.read.lines import not_a_number
from falsify_cli.read.numbers import parse_float, parse_floats


@dataclass(frozen=True, slots=True)
class Keep:
    """Which lines of a run to keep: the top depth a query (all where None).

    judged: where depth is None, the documents that matter; below the first lines of
    a list none but these, and ties, need be kept.
    """

    depth: int | None = None
    drop_self: bool = False
    judged: Vocabulary | None = None


KEEP_ALL = Keep()


@dataclass(frozen=True, slots=True, eq=False)
class RunBlock:
    """One chunk's records: segments of one query each, and the lines kept of them.

    lines: (records,) line numbers in the chunk, None where every line is a record.
    queries: (segments,) ids. starts: (segments,) in records. segments: (kept,) index
    into queries. places: (kept,) from 0 within the segment, where only the lines that
    matter are kept, else None. Nothing of it stands in the chunk any more.
    """

    line_count: int
    lines: Ints | None
    keys: PackedKeys
    queries: Ids
    starts: Ints
    segments: Ints
    places: Ints | None
    documents: Ids
    scores: Floats
    ranks: Floats
    dropped: int
    oddities: tuple[str, ...]


def parse_block(table: Table, layout: Layout, keep: Keep) -> RunBlock:
    """Turn one chunk's table into a block; a pure function."""
    _refuse_blank_in_id(table, layout)
    scores = _scores(table, layout)
    queries, documents = table.column(layout.query), table.column(layout.document)
    rows: Ints = np.arange(len(table))
    if keep.drop_self:
        rows = np.flatnonzero(~documents.equal(queries))
        queries, documents = queries.take(rows), documents.take(rows)
        scores = scores[rows]
    lines = table.lines
    if len(rows) < len(table):
        lines = rows if lines is None else lines[rows]
    starts, keys = queries.stretches(), documents.keys()
    if keep.judged is None:
        top, places = top_of_segments(scores, starts, keep.depth), None
    else:
        judged = keep.judged.may_hold(documents, keys)
        top, places = lines_that_matter(scores, starts, judged)
    segment = np.searchsorted(starts, top, side="right") - 1
    return RunBlock(
        table.line_count,
        lines,
        packed(keys),
        queries.take(starts).compact(),
        starts,
        segment,
        places,
        documents.take(top).compact(),
        scores[top],
        _ranks(table, layout, rows[top]),
        len(table) - len(rows),
        table.oddities,
    )


def _refuse_blank_in_id(table: Table, layout: Layout) -> None:
    """Refuse a blank inside an id, which makes a tag of what stands behind it."""
    wide = table.wide()
    if not len(wide):
        return
    ranks = table.column(layout.rank or 0, wide)
    _, tag_is_number = parse_floats(table.column(layout.columns - 1, wide))
    _, rank_is_number = parse_floats(ranks)
    faulty = tag_is_number | ~rank_is_number
    if faulty.any():
        first = int(np.argmax(faulty))
        raise FaultyLineError(
            table.line(int(wide[first])),
            f"expected {layout.columns} fields ({layout.fields}), found more, with "
            f"{shown(ranks.bytes_at(first))} as the rank; is there a blank inside an "
            f"id?",
        )


def _scores(table: Table, layout: Layout) -> Floats:
    """(records,) finite scores; a rank counts as its negative."""
    fields = table.column(layout.value)
    scores, good = parse_floats(fields)
    good &= np.isfinite(scores)
    if not good.all():
        row = int(np.argmin(good))
        text = fields.bytes_at(row)
        fault = not_a_number(layout, text)
        if parse_float(text) is not None:
            fault = f"expected a finite score, found {shown(text)}, which reads as inf"
        raise FaultyLineError(table.line(row), fault)
    return -scores if layout.rank_is_score else scores


def _ranks(table: Table, layout: Layout, rows: Ints) -> Floats:
    """The rank column of some records, NaN where it has no plain number."""
    if layout.rank is None:
        return np.full(len(rows), np.nan)
    # A plain number is its own key, and any other key is larger.
    ranks = table.column(layout.rank, rows).keys()
    return np.where(ranks >> np.uint64(32) == 0, ranks, np.nan)
