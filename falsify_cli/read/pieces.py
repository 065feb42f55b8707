"""A plain file in pieces, which several processes take from its two ends."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from heapq import merge
from itertools import chain, count
from operator import itemgetter
from typing import TypeVar

from falsify_cli.helper import elsewhere
from falsify_cli.ids import PADDING

R = TypeVar("R")

# How many pieces there are at most: their numbers have to fit into a pipe.
_MOST = 1 << 14
# Bytes read beyond a piece, in which its last line mostly ends.
_AHEAD = 1 << 12


class Pieces:
    """The lines of a file from some place on, in pieces of about size bytes.

    One process takes them from the front, helpers from the back, until they meet: none
    waits for more than another's last piece, however little of its time the system
    gives to each. To be closed.
    """

    def __init__(
        self, read: Callable[[int, int, int], bytes], start: int, end: int, size: int
    ) -> None:
        """Share the lines from start, behind a line end, up to end.

        read: so many bytes at a place, fewer only at the end of the file, but a least
        number.
        Raises OSError where there is no room for what is shared.
        """
        size = max(size, -(-(end - start) // _MOST))
        pieces = -(-(end - start) // size)
        self._read, self._start, self._end, self._size = read, start, end, size
        # Whoever takes a piece first takes one of as many permits, so that those
        # counted up from the front and those counted down from the back never cross.
        # To read a pipe is to take, whichever process does it.
        self._permits = _filled(bytes(pieces))
        try:
            self._from_back = _filled(array("H", reversed(range(pieces))).tobytes())
        except OSError:
            os.close(self._permits)
            raise

    def close(self) -> None:
        """Take no more."""
        os.close(self._permits)
        os.close(self._from_back)

    @contextmanager
    def results(
        self, work: Callable[[bytes], R], helpers: int
    ) -> Iterator[Iterator[R]]:
        """What work makes of every chunk, in the order of the file.

        helpers: as many processes help, no longer than the context lives. The pieces
        are closed behind it.
        """

        def from_back() -> Iterator[tuple[int, R]]:
            for number, chunk in self.from_back():
                yield number, work(chunk)
                del chunk  # else it would live on while the next one is read

        with ExitStack() as stack:
            stack.callback(self.close)
            behind = [stack.enter_context(elsewhere(from_back)) for _ in range(helpers)]
            in_order = merge(*behind, key=itemgetter(0))
            yield chain(map(work, self.from_front()), map(itemgetter(1), in_order))

    def from_front(self) -> Iterator[bytes]:
        """Chunks of whole lines, of one piece each, in the order of the file."""
        for number in count():
            if not os.read(self._permits, 1):
                return
            if chunk := self._lines(number):
                yield chunk
            del chunk  # as above

    def from_back(self) -> Iterator[tuple[int, bytes]]:
        """The same in the opposite order, each with the number of its piece."""
        while os.read(self._permits, 1):
            number = int.from_bytes(os.read(self._from_back, 2), sys.byteorder)
            if chunk := self._lines(number):
                yield number, chunk
            del chunk

    def _lines(self, number: int) -> bytes:
        """The lines that begin in a piece, in one chunk; nothing if none does."""
        start = self._start + number * self._size
        end = min(start + self._size, self._end)
        # A line begins behind a line end.
        body = self._read(start - 1, end + _AHEAD - start, end - start + 1)
        begin = body.find(b"\n") + 1
        if not 1 <= begin <= end - start:
            return b""
        stop = body.find(b"\n", end - start) + 1
        lines: list[bytes | memoryview] = [memoryview(body)[begin : stop or None]]
        place = start - 1 + len(body)
        while not stop and (more := self._read(place, _AHEAD, 0)):
            stop = more.find(b"\n") + 1
            lines.append(more[: stop or None])
            place += len(more)
        # The last line of a file may have no end.
        return b"".join((*lines, b"" if stop else b"\n", PADDING))


def _filled(content: bytes) -> int:
    """A pipe that holds these bytes, and ends behind them."""
    ours, theirs = os.pipe()
    try:
        os.set_blocking(theirs, False)
        if os.write(theirs, content) < len(content):
            raise OSError("a pipe too small")
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ours
