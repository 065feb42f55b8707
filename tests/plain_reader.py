"""The oracle of the reader's tests: valid text files, line by line, nothing clever."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One line: its query, its document, and its score, rank or grade."""

    query: str
    document: str
    value: float


def plain_records(data: bytes, document: int, value: int) -> list[Record]:
    """Read every line, told the columns of document and value."""
    records = []
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        fields = [field for field in re.split(rb"[ \t\r]", line) if field]
        if fields:
            number = float(fields[value])
            names = fields[0].decode(), fields[document].decode()
            records.append(Record(*names, number))
    return records


def plain_lists(records: list[Record]) -> dict[str, list[str]]:
    """Order each query's documents: score descending, then id as bytes descending."""
    lists: dict[str, list[Record]] = {}
    for record in records:
        lists.setdefault(record.query, []).append(record)
    return {query: [r.document for r in ordered(rows)] for query, rows in lists.items()}


def ordered(records: list[Record]) -> list[Record]:
    """Sort one query's records as trec_eval does."""
    return sorted(records, key=lambda r: (-r.value, _descending(r.document)))


def _descending(document: str) -> list[int]:
    # 256 ends the list: a prefix then comes behind what it begins.
    return [-byte for byte in document.encode()] + [256]
