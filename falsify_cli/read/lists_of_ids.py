"""Small side files: a corpus of document ids, and the group of each query."""

from __future__ import annotations

from falsify_cli import defaults
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids, Vocabulary
from falsify_cli.read.layout import fields_of, shown
from falsify_cli.read.source import opened
from falsify_cli.words import WORD


def read_corpus(name: str, chunk_bytes: int = defaults.CHUNK_BYTES) -> Vocabulary:
    """Read document ids, one a line; an id that stands twice counts once.

    Raises InputError where there is none, or a line holds more than one.
    """
    ids = []
    for number, fields in _records(name, chunk_bytes):
        if len(fields) != 1:
            raise InputError(
                f"{name}:{number}: expected one document id a line, found "
                f"{len(fields)} fields: {shown(b' '.join(fields))}"
            )
        ids.append(fields[0])
    return Vocabulary.of(Ids.of(ids))


def read_groups(name: str, chunk_bytes: int = defaults.CHUNK_BYTES) -> dict[str, str]:
    """Read the group of each query: lines of query id and group id.

    Raises InputError for a line that is no pair, and for a query in two groups.
    """
    groups: dict[str, str] = {}
    for number, fields in _records(name, chunk_bytes):
        if len(fields) != 2:
            raise InputError(
                f"{name}:{number}: expected a query id and a group id, found "
                f"{len(fields)} fields: {shown(b' '.join(fields))}"
            )
        query, group = fields[0].decode(), fields[1].decode()
        if groups.setdefault(query, group) != group:
            raise InputError(
                f"{name}:{number}: expected one group a query, found {group!r} for "
                f"{query!r}, which an earlier line puts in {groups[query]!r}"
            )
    return groups


def _records(name: str, chunk_bytes: int) -> list[tuple[int, list[bytes]]]:
    records, number = [], 0
    with opened(name) as source:
        for chunk in source.chunks(chunk_bytes):
            for line in chunk[:-WORD].split(b"\n")[:-1]:
                number += 1
                _check_text(name, number, line)
                if fields := fields_of(line):
                    records.append((number, fields))
    if not records:
        raise InputError(f"{name}: the file is empty: no record in it")
    return records


def _check_text(name: str, number: int, line: bytes) -> None:
    try:
        good = "\0" not in line.decode()
    except UnicodeDecodeError:
        good = False
    if not good:
        raise InputError(f"{name}:{number}: expected UTF-8 text, found {shown(line)}")
