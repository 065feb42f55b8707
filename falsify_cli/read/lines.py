"""A source of text -> tables of records, chunk by chunk, with true line numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol, TypeVar

from falsify_cli.errors import InputError
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

    first: its first chunk. chunks: the rest.
    """

    source: Source
    opening: Opening
    first: bytes
    chunks: Iterator[bytes]

    def blocks(
        self, parse: Callable[[Table], B], threads: int
    ) -> Iterator[tuple[int, B]]:
        """Parse every chunk, in order.

        parse: a pure function of one table, run by several threads at once.
        Yields the number of lines before each block, and the block.
        Raises InputError with the file's own line number for a faulty line.
        """
        layout, before = self.opening.layout, 0

        def work(chunk: bytes) -> B | FaultyLineError:
            header_line = self.opening.header_line if chunk is self.first else -1
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

        for result in _mapped(work, chain([self.first], self.chunks), threads):
            if isinstance(result, FaultyLineError):
                line = before + result.line + 1
                raise InputError(f"{self.source.name}:{line}: {result.fault}")
            lines = result.line_count
            yield before, result
            before += lines
            # Else it would live on while the next chunk is parsed.
            del result

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
            return Text(source, opening, head + PADDING, chunks)
    raise InputError(f"{source.name}: the file is empty: no record in it")


def not_a_number(layout: Layout, text: bytes) -> str:
    """The fault of a score or grade that is no number."""
    what = layout.fields.split()[layout.value]
    return f"expected a number as the {what}, found {shown(text)}"


def _mapped(
    work: Callable[[bytes], B | FaultyLineError], chunks: Iterator[bytes], threads: int
) -> Iterator[B | FaultyLineError]:
    """Map in order, holding no more chunks than there are threads to parse them.

    This thread parses as well: one that only waited would cost 20 MB more. Two
    threads take 0.8 of the time of one; what they share is the interpreter.
    """
    head = list(islice(chunks, min(threads, 2)))
    alone, chunks = len(head) < 2, chain(head, chunks)
    del head
    if alone:
        yield from map(work, chunks)
        return
    from concurrent.futures import ThreadPoolExecutor  # 7 ms, which a small file spares

    with ThreadPoolExecutor(threads - 1) as pool:
        while batch := list(islice(chunks, threads)):
            others = [pool.submit(work, chunk) for chunk in batch[1:]]
            yield work(batch[0])
            while others:
                yield others.pop(0).result()
