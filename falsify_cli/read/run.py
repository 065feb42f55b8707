"""A run file, or a mapping -> Run: its queries and the top lines of each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from falsify_cli.columns import Floats, Ints
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids, Keys, PackedKeys, mixed, number
from falsify_cli.read.fields import FaultyLineError, Table
from falsify_cli.read.keys import GrowingKeys
from falsify_cli.read.layout import RUN_LAYOUTS, Layout, shown
from falsify_cli.read.lines import Text, not_a_number, open_text
from falsify_cli.read.mapping import columns_of, parse_json
from falsify_cli.read.numbers import parse_float, parse_floats
from falsify_cli.read.source import Source, opened
from falsify_cli.words import WORD

# Lines whose (query, document) keys are sorted at once in search of a repetition.
_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a report says of an input: name as typed, records, stored bytes' hash.

    notes: what was not plain about its layout.
    """

    name: str | None
    lines: int
    sha256: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a system retrieved, in the order of the file.

    queries: Q different ids. listed: (Q,) documents listed for each. dropped: (Q,)
    lines dropped because the document is the query itself.
    query, documents, scores, ranks: the k lines kept, those that could be among the
    top depth of their query, ties included; query counts into queries; a rank is
    NaN where there is none. document_keys: of all lines, sorted, a document listed
    twice with its key twice; 32 bits each where all documents are plain numbers.
    """

    facts: FileFacts
    queries: list[str]
    listed: Ints
    query: Ints
    documents: Ids
    scores: Floats
    ranks: Floats
    document_keys: PackedKeys
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Keep:
    """Which lines of a run to keep: the top depth a query (all where None)."""

    depth: int | None = None
    drop_self: bool = False


def read_run(
    name: str,
    keep: Keep = Keep(),
    *,
    digest: bool = False,
    threads: int = 1,
    chunk_bytes: int = 1 << 20,
) -> Run:
    """Read a run file of any known layout.

    Memory: the kept lines, and eight bytes a line. Time: linear in the file.
    Raises InputError, with file and line, for whatever cannot be meant.
    """
    with opened(name, digest=digest) as source:
        text = open_text(source, RUN_LAYOUTS, chunk_bytes)
        if isinstance(text, bytes):
            source.notes.append("JSON")
            return _assemble_mapping(source, parse_json(name, text), keep)
        return _read_text(text, keep, threads)


def run_of_mapping(run: Mapping[str, Mapping[str, float]], keep: Keep = Keep()) -> Run:
    """Take a run from {query: {document: score}}."""
    return _assemble_mapping(None, run, keep)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """One chunk's records: segments of one query each, and the lines kept of them.

    lines: (records,) line numbers in the chunk, None where every line is a record.
    segment_queries: (segments,) index into queries. segment_starts: (segments,) in
    records. kept_queries: (kept,) index into queries.
    """

    line_count: int
    lines: Ints | None
    keys: Keys
    queries: list[str]
    segment_queries: Ints
    segment_starts: Ints
    kept_queries: Ints
    documents: Ids
    scores: Floats
    ranks: Floats
    dropped: int
    oddities: tuple[str, ...]


def _parse(table: Table, layout: Layout, keep: Keep) -> _Block:
    """Turn one chunk's table into a block; a pure function, run by many threads."""
    _refuse_blank_in_id(table, layout)
    scores = _scores(table, layout)
    queries, documents = table.column(layout.query), table.column(layout.document)
    rows = np.arange(len(table))
    if keep.drop_self:
        rows = np.flatnonzero(~documents.equal(queries))
        queries, documents = queries.take(rows), documents.take(rows)
        scores = scores[rows]
    lines = table.lines
    if len(rows) < len(table):
        lines = rows if lines is None else lines[rows]
    starts = queries.stretches()
    numbers, firsts = number(queries.take(starts))
    top = _top_of_segments(scores, starts, keep.depth)
    segment = np.searchsorted(starts, top, side="right") - 1
    return _Block(
        table.line_count,
        lines,
        documents.keys(),
        queries.take(starts[firsts]).compact().to_list(),
        numbers,
        starts,
        numbers[segment],
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
    tags, ranks = table.column(layout.columns - 1), table.column(layout.rank or 0)
    for row in wide.tolist():
        tag, rank = tags.bytes_at(row), ranks.bytes_at(row)
        if parse_float(tag) is not None or parse_float(rank) is None:
            raise FaultyLineError(
                table.line(row),
                f"expected {layout.columns} fields ({layout.fields}), found more, "
                f"with {shown(rank)} as the rank; is there a blank inside an id?",
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
    ranks = table.column(layout.rank).take(rows).keys()
    return np.where(ranks >> np.uint64(32) == 0, ranks, np.nan)


def _top_of_segments(scores: Floats, starts: Ints, depth: int | None) -> Ints:
    """The records that could be among the top depth of their segment, in file order.

    Ties with the last of them stay, also those that only single precision makes:
    the document ids that break them are looked at later. A record outside the top
    of its segment is outside the top of its query.
    """
    count = len(scores)
    lengths = np.diff(starts, append=count)
    long = lengths > (depth or count)
    if depth is None or not long.any():
        return np.arange(count)
    order = None
    falling = scores[1:] <= scores[:-1]
    falling[starts[1:] - 1] = True
    if not falling.all():
        segment = np.repeat(np.arange(len(starts)), lengths)
        order = np.lexsort((-scores, segment))
        scores = scores[order]
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32)
    last = np.full(len(starts), -np.inf, np.float32)
    last[long] = single[starts[long] + depth - 1]
    kept = np.flatnonzero(single >= np.repeat(last, lengths))
    return kept if order is None else np.sort(order[kept])


def _read_text(text: Text, keep: Keep, threads: int) -> Run:
    layout, source = text.opening.layout, text.source
    parts = _Parts()
    for before, block in text.blocks(
        partial(_parse, layout=layout, keep=keep), threads
    ):
        parts.add(before, block)
    text.refuse_header_that_is_a_record(parts.codes)
    notes = text.notes(parts.oddities)
    if not parts.records + parts.dropped:
        raise InputError(f"{source.name}: the file is empty: no record in it")
    lines = parts.records + parts.dropped
    facts = FileFacts(source.name, lines, source.sha256, notes)
    return parts.run(facts)


class _Parts:
    """The blocks of one file, put together as they come."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.oddities: dict[str, None] = {}
        self.records = 0
        self.dropped = 0
        self._keys = GrowingKeys()
        self._segments: list[tuple[Ints, Ints]] = []
        self._kept: list[tuple[Ints, Ids, Floats, Floats]] = []
        self._places: list[tuple[int, int, Ints | None]] = []

    def add(self, before: int, block: _Block) -> None:
        """Add the block that begins behind so many lines."""
        codes = np.array(
            [self.codes.setdefault(q, len(self.codes)) for q in block.queries], np.int64
        )
        self._segments.append(
            (codes[block.segment_queries], block.segment_starts + self.records)
        )
        self._kept.append(
            (
                codes[block.kept_queries],
                block.documents,
                block.scores,
                block.ranks,
            )
        )
        self._places.append((self.records, before, block.lines))
        self._keys.add(block.keys)
        self.records += len(block.keys)
        self.dropped += block.dropped
        self.oddities.update(dict.fromkeys(block.oddities))

    def run(self, facts: FileFacts) -> Run:
        """Join everything; raises InputError for a document listed twice."""
        keys = self._keys.column()
        codes = np.concatenate([c for c, _ in self._segments])
        starts = np.concatenate([s for _, s in self._segments])
        self._segments.clear()
        lengths = np.diff(starts, append=self.records)
        queries = list(self.codes)
        repetition = _first_repetition(keys, codes, starts, lengths)
        if repetition is not None:
            self._refuse(facts.name or "run", *repetition)
        keys.sort()
        columns = list(zip(*self._kept, strict=True))
        self._kept.clear()
        return Run(
            facts,
            queries,
            np.bincount(codes, lengths, len(queries)).astype(np.int64),
            np.concatenate(columns[0]),
            Ids.concatenate(columns[1]),
            np.concatenate(columns[2]),
            np.concatenate(columns[3]),
            keys,
            self.dropped,
        )

    def _refuse(self, name: str, first: int, second: int) -> NoReturn:
        one, two = self._line(first), self._line(second)
        raise InputError(
            f"{name}:{two}: expected a document once a query, found the query and "
            f"document of line {one} again{_line_of(name, two)}"
        )

    def _line(self, record: int) -> int:
        """The line number, from 1, of a record."""
        at = bisect_right(self._places, record, key=lambda place: place[0]) - 1
        first, before, lines = self._places[at]
        within = record - first
        return before + 1 + (within if lines is None else int(lines[within]))


def _line_of(name: str, number: int) -> str:
    """The text of a line, for a message; empty where the input cannot be reread."""
    if not Path(name).is_file():
        return ""
    with opened(name) as source:
        lines = (
            line for c in source.chunks(1 << 20) for line in c[:-WORD].split(b"\n")[:-1]
        )
        return f": {shown(next(islice(lines, number - 1, None)))}"


def _first_repetition(
    keys: PackedKeys, codes: Ints, starts: Ints, lengths: Ints
) -> tuple[int, int] | None:
    """The first two records of one query with one document.

    Where every query stands in one piece the pairs are sorted batch by batch, so
    that they are never all in memory; a scattered file takes one large batch.
    """
    changes = np.concatenate([[True], codes[1:] != codes[:-1]])
    firsts = np.flatnonzero(changes)
    scattered = len(firsts) > int(codes.max(initial=-1)) + 1
    if scattered:
        borders = np.array([0, len(codes)])
    else:
        batch = starts[firsts] // _BATCH
        borders = firsts[np.concatenate([[True], batch[1:] != batch[:-1]])]
        borders = np.append(borders, len(codes))
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offset = int(starts[low])
        query = np.repeat(codes[low:high], lengths[low:high])
        mine = keys[offset : offset + len(query)]
        pairs = mine ^ mixed(query.astype(np.uint64) + np.uint64(1))
        ordered = np.sort(pairs)
        for pair in ordered[1:][ordered[1:] == ordered[:-1]]:
            same = np.flatnonzero(pairs == pair)
            # The two keys of a pair are compared as such: their mixture may collide.
            first = same[0]
            again = (query[same] == query[first]) & (mine[same] == mine[first])
            if again.sum() > 1:
                one, two = same[again][:2].tolist()
                return offset + one, offset + two
    return None


def _assemble_mapping(
    source: Source | None, run: Mapping[str, Mapping[str, float]], keep: Keep
) -> Run:
    """Make the same columns from a mapping that a file is read into."""
    name = source.name if source else None
    queries, documents, scores, lengths = columns_of(run, name or "run")
    if not np.isfinite(scores).all():
        raise InputError(f"{name or 'run'}: expected finite scores, found nan or inf")
    query = np.repeat(np.arange(len(queries)), lengths)
    dropped = 0
    if keep.drop_self:
        stay = np.flatnonzero(~documents.equal(Ids.of(queries).take(query)))
        dropped = len(query) - len(stay)
        query, documents, scores = query[stay], documents.take(stay), scores[stay]
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    top = _top_of_segments(scores, starts, keep.depth)
    facts = FileFacts(
        name,
        len(query) + dropped,
        source.sha256 if source else None,
        tuple(source.notes) if source else (),
    )
    return Run(
        facts,
        queries,
        np.bincount(query, minlength=len(queries)),
        query[top],
        documents.take(top).compact(),
        scores[top],
        np.full(len(top), np.nan),
        np.sort(documents.keys()),
        dropped,
    )
