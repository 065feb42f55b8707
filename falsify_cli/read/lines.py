"""A source of text -> tables of records, chunk by chunk, with true line numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol, TypeVar

from falsify_cli.errors import InputError
from falsify_cli.helper import may_fork
from falsify_cli.ids import PADDING
from falsify_cli.read.fields import FaultyLineError, Table, WrongWidthError, cut
from falsify_cli.read.layout import (
    Layout,
    Opening,
    fields_of,
    shown,
    sniff,
    wrong_width,
)
from falsify_cli.read.source import Source
from falsify_cli.words import WORD

# Bytes of comments after which a line that begins with '#' may tell the layout.
_SNIFFED = 1 << 16
# An id may begin with a brace as well, but JSON goes on with a key or the end.
_JSON = re.compile(rb"\s*\{\s*[\"}]")
_PERHAPS_JSON = re.compile(rb"\s*\{\s*\Z")


class Block(Protocol):
    """What one chunk was parsed into."""

    @property
    def line_count(self) -> int:
        """Lines of the chunk, records or not."""
        ...


B = TypeVar("B", bound=Block)


@dataclass(frozen=True, slots=True)
class Text:
    """A text file whose first lines have been read.

    first: its first chunk. chunks: the rest, of about chunk_bytes each.
    """

    source: Source
    opening: Opening
    first: bytes
    chunks: Iterator[bytes]
    chunk_bytes: int

    def blocks(
        self, parse: Callable[[Table], B], processes: int
    ) -> Generator[tuple[int, B], None, None]:
        """Parse every chunk, in order.

        parse: a pure function of one table. processes: as many read the file where it
        is large and plain; close what is returned, or they may work on for nothing.
        Yields the number of lines before each block, and the block.
        Raises InputError with the file's own line number for a faulty line.
        """
        before, work = 0, partial(self._block_or_first_fault, parse)
        with ExitStack() as stack:
            rest: Iterator[B | FaultyLineError] = map(work, self.chunks)
            may = processes > 1 and may_fork()
            if may and (pieces := self.source.pieces(self.chunk_bytes)) is not None:
                rest = stack.enter_context(pieces.results(work, processes - 1))
            for result in chain(map(work, [self.first]), rest):
                if isinstance(result, FaultyLineError):
                    line = before + result.line + 1
                    raise InputError(f"{self.source.name}:{line}: {result.fault}")
                lines = result.line_count
                yield before, result
                before += lines
                # Else it would live on while the next chunk is parsed.
                del result

    def _block_or_first_fault(
        self, parse: Callable[[Table], B], chunk: bytes
    ) -> B | FaultyLineError:
        """One kind of fault is looked for after the other; the first line is told.

        Whatever its kind, and wherever chunks end.
        """
        header_line = self.opening.header_line if chunk is self.first else -1
        result = self._block_or_fault(parse, chunk, header_line)
        while isinstance(result, FaultyLineError) and result.line:
            lines = chunk[:-WORD].split(b"\n")[: result.line]
            above = b"".join(line + b"\n" for line in lines) + PADDING
            earlier = self._block_or_fault(parse, above, header_line)
            if not isinstance(earlier, FaultyLineError):
                break
            result = earlier
        return result

    def _block_or_fault(
        self, parse: Callable[[Table], B], chunk: bytes, header_line: int
    ) -> B | FaultyLineError:
        layout = self.opening.layout
        try:
            table = cut(chunk, layout.columns, layout.is_record, header_line)
            wide = table.wide()
            if len(wide) and not layout.open_ended:
                raise WrongWidthError(table.line(int(wide[0])))
            return parse(table)
        except WrongWidthError as error:
            fields = fields_of(chunk[:-WORD].split(b"\n")[error.line])
            fault = wrong_width(layout, len(fields), b" ".join(fields))
            return FaultyLineError(error.line, fault)
        except FaultyLineError as error:
            return error

    def notes(self, oddities: Iterable[str]) -> tuple[str, ...]:
        """What was not plain about the file, each thing once."""
        opening = self.opening
        header = ["a header line"] * bool(opening.header)
        layout = [opening.layout.note] * bool(opening.layout.note)
        return (*layout, *header, *self.source.notes, *sorted(oddities))

    def refuse_header_that_is_a_record(self, queries: Container[str]) -> None:
        """Refuse a first line whose query stands on other lines too.

        queries: the ids on all other lines.
        """
        header, layout = self.opening.header, self.opening.layout
        if header and header[layout.query].decode() in queries:
            place = f"{self.source.name}:{self.opening.header_line + 1}"
            raise InputError(f"{place}: {not_a_number(layout, header[layout.value])}")


def open_text(
    source: Source, layouts: dict[int, Layout], chunk_bytes: int
) -> Text | bytes:
    """Read the first chunk and tell the layout from it.

    Returns the text, or the first chunk itself where it begins like JSON.
    Raises InputError where the file is empty or of no known layout.
    """
    chunks, head, enough = source.chunks(chunk_bytes), b"", 0
    # Nearly always the first chunk tells; more are joined where it is all comments.
    for chunk in chain(chunks, [PADDING]):
        head += chunk[:-WORD]
        if _JSON.match(head):
            return head + b"".join(c[:-WORD] for c in chunks)
        if _PERHAPS_JSON.match(head) and chunk is not PADDING:
            continue
        if len(head) < enough and chunk is not PADDING:
            continue
        # Looked at again once it is twice as long: linear in any number of comments.
        enough = 2 * len(head)
        whole = chunk is PADDING or len(head) >= _SNIFFED
        opening = sniff(source.name, head, layouts, whole=whole)
        if opening is not None:
            return Text(source, opening, head + PADDING, chunks, chunk_bytes)
    raise InputError(f"{source.name}: the file is empty: no record in it")


def not_a_number(layout: Layout, text: bytes) -> str:
    """The fault of a score or grade that is no number."""
    what = layout.fields.split()[layout.value]
    return f"expected a number as the {what}, found {shown(text)}"
