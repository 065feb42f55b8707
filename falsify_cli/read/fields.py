"""A chunk of lines -> where its records and their fields lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from falsify_cli.columns import Bools, Ints
from falsify_cli.ids import Bytes, Ids

_TAB, _LINE_FEED, _RETURN, _BLANK, _HASH = b"\t\n\r #"

_ALL = slice(None)
_IS_SEPARATOR = np.zeros(256, np.bool_)
_IS_SEPARATOR[[_TAB, _LINE_FEED, _RETURN, _BLANK]] = True


class FaultyLineError(Exception):
    """A line that cannot be meant; its number counts from 0 within the chunk."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(line, fault)
        self.line = line
        self.fault = fault


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The records of a chunk, cut into fields.

    ends: (records, columns) in bytes; of the columns asked for, others are counted
    in widths alone. starts: the same, None where each field begins one byte behind
    the end of the one before. widths: (records,) fields, None where all have just
    the columns asked for. lines: (records,) line numbers from 0, None where every
    line is a record.
    """

    buffer: Bytes
    ends: Ints
    line_count: int
    starts: Ints | None = None
    widths: Ints | None = None
    lines: Ints | None = None
    oddities: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ends)

    def column(self, number: int, rows: Ints | slice = _ALL) -> Ids:
        """One field of every record, or of some."""
        ends = np.ascontiguousarray(self.ends[rows, number])
        if self.starts is not None:
            starts = np.ascontiguousarray(self.starts[rows, number])
        elif number:
            starts = self.ends[rows, number - 1] + 1
        else:
            starts = np.concatenate([[0], self.ends[:-1, -1] + 1])[rows]
        return Ids(self.buffer, starts, ends - starts)

    def wide(self) -> Ints:
        """The records with more fields than were asked for."""
        if self.widths is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.widths > self.ends.shape[1])

    def line(self, record: int) -> int:
        """The line number of a record, from 0."""
        return record if self.lines is None else int(self.lines[record])


def cut(
    chunk: bytes,
    columns: int,
    is_record: Callable[[list[bytes]], bool],
    header_line: int = -1,
) -> Table:
    """Cut the lines of a chunk at blanks, and keep the first columns of each.

    chunk: whole lines, with the padding behind them. is_record: told the fields of
    a line that begins with '#', whether it is a record and no comment. header_line:
    the number of a line to leave out, from 0.
    Raises FaultyLineError for a line that is no UTF-8, holds a NUL byte or a bare
    carriage return, or has too few fields.
    """
    buffer = np.frombuffer(chunk, np.uint8)
    body = buffer[:-8]
    _refuse_other_encodings(chunk)
    table = None
    # One byte is looked for first: 0.02 ms a megabyte, where two of them take 1.
    marked = b"#" in chunk and (chunk.startswith(b"#") or b"\n#" in chunk)
    if header_line < 0 and not marked:
        table = _cut_regular(buffer, body, columns)
    if table is None:
        _refuse_nul(chunk, len(body))
        table = _cut_any(buffer, body, columns, is_record, header_line)
    return table


def _refuse_nul(chunk: bytes, size: int) -> None:
    if (place := chunk.find(b"\0", 0, size)) >= 0:
        raise FaultyLineError(
            chunk.count(b"\n", 0, place), "a NUL byte; no text file has one"
        )


def _refuse_other_encodings(chunk: bytes) -> None:
    if chunk.isascii():
        return
    try:
        chunk.decode()
    except UnicodeDecodeError as error:
        raise FaultyLineError(
            chunk.count(b"\n", 0, error.start),
            f"expected UTF-8 text, found byte 0x{chunk[error.start]:02x}; "
            f"convert the file (iconv -f LATIN1 -t UTF-8)",
        ) from None


def _cut_regular(buffer: Bytes, body: Bytes, columns: int) -> Table | None:
    """Cut a chunk whose every line has exactly these columns, one blank between.

    No line may begin with '#'. One scan for bytes <= 32 finds every edge: 1.2 ms a
    megabyte where the scan for any layout takes 6. None where the chunk is not like
    that.
    """
    is_edge = body <= _BLANK
    if is_edge[0] or (is_edge[1:] & is_edge[:-1]).any():
        return None
    edges = np.flatnonzero(is_edge)
    # All bytes below a blank are among them, and of these there may be no others.
    count = len(edges) // columns
    wanted = (b" " * (columns - 1) + b"\n") * count
    found = body.take(edges).tobytes()
    if found != wanted and found.replace(b"\t", b" ") != wanted:
        return None
    ends = edges.reshape(count, columns)
    return Table(buffer, ends, count)


def _cut_any(
    buffer: Bytes,
    body: Bytes,
    columns: int,
    is_record: Callable[[list[bytes]], bool],
    header_line: int,
) -> Table:
    """Cut lines of any layout: blanks in any mix, CRLF, comments, empty lines."""
    separator = _IS_SEPARATOR[body]
    before = np.concatenate([[True], separator[:-1]])
    starts = np.flatnonzero(before & ~separator)
    ends = np.flatnonzero(~before & separator)
    is_line_end = body == _LINE_FEED
    line_ends = np.flatnonzero(is_line_end)
    oddities = _line_ends(body, line_ends)
    line_of_field = np.cumsum(is_line_end)[starts]
    widths = np.bincount(line_of_field, minlength=len(line_ends))
    firsts = np.cumsum(widths) - widths
    lines = np.flatnonzero(widths)
    if len(lines) < len(line_ends):
        oddities.append("blank lines")
    comments = _comments(body, starts, ends, firsts, widths, lines, is_record)
    if comments.any():
        oddities.append("comment lines")
        lines = lines[~comments]
    lines = lines[lines != header_line]
    short = np.flatnonzero(widths[lines] < columns)
    if len(short):
        raise WrongWidthError(int(lines[short[0]]))
    places = firsts[lines, None] + np.arange(columns)
    return Table(
        buffer,
        ends[places],
        len(line_ends),
        starts[places],
        widths[lines],
        lines,
        tuple(oddities),
    )


class WrongWidthError(FaultyLineError):
    """A line with fewer or more fields than its format has."""

    def __init__(self, line: int) -> None:
        super().__init__(line, "")


def _line_ends(body: Bytes, line_ends: Ints) -> list[str]:
    """Say whether lines end in CRLF; refuse a carriage return anywhere else."""
    returns = np.flatnonzero(body == _RETURN)
    if not len(returns):
        return []
    bare = returns[body[returns + 1] != _LINE_FEED]
    if len(bare):
        raise FaultyLineError(
            int(np.searchsorted(line_ends, bare[0])),
            "a carriage return inside a line; end lines with LF or CRLF",
        )
    return ["CRLF line ends"]


def _comments(
    body: Bytes,
    starts: Ints,
    ends: Ints,
    firsts: Ints,
    widths: Ints,
    lines: Ints,
    is_record: Callable[[list[bytes]], bool],
) -> Bools:
    """(lines,) whether each line begins with '#' and is no record."""
    comments: Bools = body[starts[firsts[lines]]] == _HASH
    for index in np.flatnonzero(comments).tolist():
        first = firsts[lines[index]]
        span = range(first, first + widths[lines[index]])
        comments[index] = not is_record(
            [body[starts[i] : ends[i]].tobytes() for i in span]
        )
    return comments
