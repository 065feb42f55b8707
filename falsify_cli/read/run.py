"""A run file, or a mapping -> Run: its queries and the top lines of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from os.path import isfile

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import stretch_starts
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids
from falsify_cli.read.facts import FileFacts
from falsify_cli.read.in_order import OutOfOrderError
from falsify_cli.read.kept_lines import top_of_segments
from falsify_cli.read.layout import RUN_LAYOUTS
from falsify_cli.read.lines import Text, open_text
from falsify_cli.read.mapping import columns_of, parse_json
from falsify_cli.read.run_block import KEEP_ALL, Keep, parse_block
from falsify_cli.read.run_parts import Run, RunParts
from falsify_cli.read.source import STDIN, Source, opened


def read_run(
    name: str,
    keep: Keep = KEEP_ALL,
    *,
    digest: bool = False,
    processes: int = 1,
    chunk_bytes: int = defaults.CHUNK_BYTES,
    tick: Callable[[], None] = lambda: None,
) -> Run:
    """Read a run file of any known layout.

    processes: as many read a large file. tick: called along the way.
    Memory: the kept lines, and eight bytes a line. Time: linear in the file.
    Raises InputError, with file and line, for whatever cannot be meant.
    """

    def read(keep: Keep) -> Run:
        with opened(name, digest=digest) as source:
            text = open_text(source, RUN_LAYOUTS, chunk_bytes)
            if isinstance(text, bytes):
                source.notes.append("JSON")
                return _assemble_mapping(source, parse_json(name, text), keep)
            return _read_text(text, keep, processes, tick)

    if keep.judged is not None:
        # Only what can be read a second time.
        if name != STDIN and isfile(name):
            try:
                return read(keep)
            except OutOfOrderError:
                pass
        keep = replace(keep, judged=None)
    return read(keep)


def run_of_mapping(
    run: Mapping[str, Mapping[str, float]], keep: Keep = KEEP_ALL
) -> Run:
    """Take a run from {query: {document: score}}."""
    return _assemble_mapping(None, run, keep)


def _read_text(text: Text, keep: Keep, processes: int, tick: Callable[[], None]) -> Run:
    layout, source = text.opening.layout, text.source
    parts = RunParts(keep.depth)
    parse = partial(parse_block, layout=layout, keep=keep)
    with closing(text.blocks(parse, processes)) as blocks:
        for before, block in blocks:
            parts.add(before, block)
            del block
            tick()
    notes = text.notes(parts.oddities)
    if not parts.records + parts.dropped:
        raise InputError(f"{source.name}: the file is empty: no record in it")
    lines = parts.records + parts.dropped
    facts = FileFacts(source.name, lines, source.sha256, notes)
    run = parts.run(facts)
    text.refuse_header_that_is_a_record(run.queries)
    return run


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
    starts = stretch_starts(query)
    # A query without a row is not in a file either.
    queries = [queries[number] for number in query[starts].tolist()]
    query = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(query)))
    top = top_of_segments(scores, starts, keep.depth)
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
        keep.depth,
    )
