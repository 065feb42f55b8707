"""What a report says of an input file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a report says of an input: name as typed, records, stored bytes' hash.

    notes: what was not plain about its layout.
    """

    name: str | None
    lines: int
    sha256: str | None = None
    notes: tuple[str, ...] = ()
