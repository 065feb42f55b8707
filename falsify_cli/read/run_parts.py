"""The blocks of one file -> Run; finds a document that is listed twice."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import islice
from os.path import isfile
from typing import NoReturn

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Floats, Ints, stretch_starts, sums_at
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids, PackedKeys
from falsify_cli.key_table import Keys, mixed
from falsify_cli.read.facts import FileFacts
from falsify_cli.read.growing import GrowingColumn, GrowingKeys
from falsify_cli.read.in_order import ListsInOrder
from falsify_cli.read.kept_lines import KeptLines
from falsify_cli.read.layout import shown
from falsify_cli.read.numbering import Numbering
from falsify_cli.read.run_block import RunBlock
from falsify_cli.read.source import STDIN, opened
from falsify_cli.words import WORD

# Segments and kept lines that wait to be numbered together. Lists of 1000 make 20
# segments a chunk, and to number so few takes 0.4 ms, a tenth of all reading.
_ROWS_NUMBERED = 1 << 12

_NO_KEYS = np.zeros(0, np.uint32)

# Lines whose (query, document) keys are sorted at once in search of a repetition.
_BATCH = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a system retrieved, in the order of the file.

    queries: Q different ids. listed: (Q,) documents listed for each. dropped: lines
    left out because the document is the query itself.
    query, documents, scores, ranks: the k lines kept, those that could be among the
    top depth of their query, ties included; query counts into queries; a rank is
    NaN where there is none. document_keys: of all lines, sorted, a document listed
    twice with its key twice; 32 bits each where all documents are plain numbers.
    depth: to which rank every list is whole, ties included; None where it is all.
    places: (k,) how many lines of its list stand before each, where only the lines
    that matter were kept; None where lists are whole as far as they were wanted.
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
    depth: int | None = None
    places: Ints | None = None


class RunParts:
    """The blocks of one file, put together as they come.

    records, dropped: lines so far, taken and left out. oddities: notes on the
    layout, each once.
    """

    def __init__(self, depth: int | None) -> None:
        self.oddities: dict[str, None] = {}
        self.records = 0
        self.dropped = 0
        self._keys = GrowingKeys()
        self._queries = Numbering()
        self._segment_queries = GrowingColumn(np.int64)
        self._segment_starts = GrowingColumn(np.int64)
        self._depth = depth
        self._kept = KeptLines(depth)
        self._in_order = ListsInOrder()
        self._places_in_lists = GrowingColumn(np.int64)
        self._places: list[tuple[int, int, Ints | None]] = []
        # Blocks whose queries are not numbered yet, each with its number of records,
        # and how many rows they have.
        self._waiting: list[tuple[int, RunBlock]] = []
        self._rows_waiting = 0

    def add(self, before: int, block: RunBlock) -> None:
        """Add the block that begins behind so many lines.

        Raises OutOfOrderError for lists that are not in order where they have to be.
        """
        self._segment_starts.add(block.starts + self.records)
        self._places.append((self.records, before, block.lines))
        self._keys.add(block.keys)
        self.records += len(block.keys)
        self.dropped += block.dropped
        self.oddities.update(dict.fromkeys(block.oddities))
        # Without its keys, the most of it.
        self._waiting.append((len(block.keys), replace(block, keys=_NO_KEYS)))
        self._rows_waiting += len(block.starts) + len(block.segments)
        if self._rows_waiting > _ROWS_NUMBERED:
            self._number()

    def _number(self) -> None:
        """Number the queries of the blocks that wait, and keep their lines."""
        ids = Ids.concatenate([block.queries for _, block in self._waiting])
        numbers, first = self._queries.numbers(ids), 0
        self._segment_queries.add(numbers)
        for records, block in self._waiting:
            queries = numbers[first : first + len(block.starts)]
            first += len(queries)
            if block.places is not None:
                before = self._in_order.before(
                    queries, block.starts, records, block.scores
                )
                self._places_in_lists.add(block.places + before * (block.segments == 0))
            self._kept.add(
                queries[block.segments], block.documents, block.scores, block.ranks
            )
        self._waiting, self._rows_waiting = [], 0

    def run(self, facts: FileFacts) -> Run:
        """Join everything; raises InputError for a document listed twice."""
        self._number()
        keys = self._keys.column()
        queries = self._segment_queries.column()
        starts = self._segment_starts.column()
        lengths = np.diff(starts, append=self.records)
        repetition = _first_repetition(keys, queries, starts, lengths)
        if repetition is not None:
            self._refuse(facts.name or "run", *repetition)
        keys.sort()
        listed = sums_at(queries, lengths, len(self._queries))
        return Run(
            facts,
            self._queries.ids().to_list(),
            listed.astype(np.int64),
            *self._kept.columns(),
            keys,
            self.dropped,
            self._depth,
            self._places_in_lists.column() if len(self._places_in_lists) else None,
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
    if name == STDIN or not isfile(name):
        return ""
    with opened(name) as source:
        chunks = source.chunks(defaults.CHUNK_BYTES)
        lines = (line for c in chunks for line in c[:-WORD].split(b"\n")[:-1])
        line = next(islice(lines, number - 1, None), None)
        return "" if line is None else f": {shown(line)}"


def _first_repetition(
    keys: PackedKeys, queries: Ints, starts: Ints, lengths: Ints
) -> tuple[int, int] | None:
    """The first two records of one query with one document.

    Where every query stands in one piece the pairs are sorted batch by batch, so
    that they are never all in memory; a scattered file takes one large batch.
    """
    firsts = stretch_starts(queries)
    scattered = len(firsts) > int(queries.max(initial=-1)) + 1
    if scattered:
        borders = np.array([0, len(queries)])
    else:
        batches = stretch_starts(starts[firsts] // _BATCH)
        borders = np.append(firsts[batches], len(queries))
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offset = int(starts[low])
        query = np.repeat(queries[low:high], lengths[low:high])
        mine = keys[offset : offset + len(query)]
        if not scattered and _differ_in_rows(query, mine):
            continue
        ordered = _pairs(query, mine)
        ordered.sort()
        for pair in ordered[1:][ordered[1:] == ordered[:-1]]:
            same = np.flatnonzero(_pairs(query, mine) == pair)
            # The two keys of a pair are compared as such: their mixture may collide.
            first = same[0]
            again = (query[same] == query[first]) & (mine[same] == mine[first])
            if again.sum() > 1:
                one, two = same[again][:2].tolist()
                return offset + one, offset + two
    return None


def _differ_in_rows(queries: Ints, documents: PackedKeys) -> bool:
    """Whether all lists are equally long, and none has a document twice.

    Long enough lists mostly are, those of MS MARCO to the last: rows of 32 bits are
    sorted in a quarter of the time that pairs of query and document take.
    """
    starts = stretch_starts(queries)
    length = len(queries) // max(len(starts), 1)
    if not np.array_equal(starts, np.arange(len(starts)) * length):
        return False
    if len(starts) * length != len(queries):
        return False
    rows = np.sort(documents.reshape(len(starts), length), axis=1)
    return not (rows[:, 1:] == rows[:, :-1]).any()


def _pairs(queries: Ints, documents: PackedKeys) -> Keys:
    """(n,) one key for each pair; beside each other where both fit, else mixed."""
    numbers = queries.view(np.uint64)
    if documents.dtype == np.uint32 and int(queries.max(initial=0)) < 1 << 32:
        return (numbers << np.uint64(32)) | documents
    return documents ^ mixed(numbers + np.uint64(1))
