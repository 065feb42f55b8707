"""A source of text -> tables of records, chunk by chunk, with true line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol, TypeVar

from falsify_cli.errors import InputError
from falsify_cli.read.fields import FaultyLineError, Table, TooFewFieldsError, cut
from falsify_cli.read.layout import Layout, Opening, shown, sniff, wrong_width
from falsify_cli.read.source import Source
from falsify_cli.words import WORD


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

    first: its first chunk, without header. chunks: the rest.
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
        layout = self.opening.layout
        before = self.opening.skipped_lines

        def work(chunk: bytes) -> B | FaultyLineError:
            try:
                return parse(cut(chunk, layout.columns, layout.is_record))
            except TooFewFieldsError as error:
                line = chunk[:-WORD].split(b"\n")[error.line]
                fault = wrong_width(layout, error.width, line)
                return FaultyLineError(error.line, fault)
            except FaultyLineError as error:
                return error

        for result in _mapped(work, chain([self.first], self.chunks), threads):
            if isinstance(result, FaultyLineError):
                line = before + result.line + 1
                raise InputError(f"{self.source.name}:{line}: {result.fault}")
            yield before, result
            before += result.line_count

    def refuse_header_that_is_a_record(self, queries: object) -> None:
        """Refuse a first line whose query stands on other lines too.

        queries: a container of the query ids of all other lines, as bytes.
        """
        header, layout = self.opening.header, self.opening.layout
        if header and header[layout.query] in queries:  # type: ignore[operator]
            place = f"{self.source.name}:{self.opening.skipped_lines}"
            raise InputError(f"{place}: {not_a_number(layout, header[layout.value])}")


def open_text(
    source: Source, layouts: dict[int, Layout], chunk_bytes: int
) -> Text | bytes:
    """Read the first chunk and tell the layout from it.

    Returns the text, or the first chunk itself where it begins like JSON.
    Raises InputError where the file is empty or of no known layout.
    """
    chunks = source.chunks(chunk_bytes)
    for chunk in chunks:
        if chunk.lstrip(b" \t\r\n\0")[:1] == b"{":
            return b"".join(c[:-WORD] for c in chain([chunk], chunks))
        opening = sniff(source.name, chunk, layouts)
        if opening is not None:
            return Text(source, opening, chunk[opening.skipped :], chunks)
    raise InputError(f"{source.name}: the file is empty: no record in it")


def not_a_number(layout: Layout, text: bytes) -> str:
    """The fault of a score or grade that is no number."""
    what = layout.fields.split()[layout.value]
    return f"expected a number as the {what}, found {shown(text)}"


def _mapped(
    work: Callable[[bytes], B | FaultyLineError], chunks: Iterator[bytes], threads: int
) -> Iterator[B | FaultyLineError]:
    """Map in order, holding no more chunks than there are threads to parse them."""
    if threads == 1:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(work, chunk) for chunk in islice(chunks, threads + 1)]
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(work, chunk) for chunk in islice(chunks, 1)]
