"""A path, standard input or a pipe -> chunks of whole lines, decompressed."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from falsify_cli import defaults
from falsify_cli.errors import InputError
from falsify_cli.ids import PADDING
from falsify_cli.read.pieces import Pieces
from falsify_cli.words import WORD

STDIN = "-"

# What zlib calls a stream with gzip's header and checksum.
_GZIP_FORMAT = 31
# Bytes read ahead of what is asked for.
_READ_AHEAD = 1 << 16
# Packed bytes taken at once: few, since they may unpack to a thousand times as many.
_PACKED_BYTES = 1 << 14

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """One input file while it is read, front to back, never seeking.

    name: as the user typed it. notes: what was not plain about it, in words.
    sha256: of the stored bytes, once everything is read, where it was asked for.
    """

    def __init__(self, name: str, stream: BinaryIO, *, digest: bool) -> None:
        self.name = name
        self.notes: list[str] = []
        self._tap = _Tap(name, stream, digest=digest)
        self._stream = self._decompressed()
        self._plain = not self.notes
        start = self._read(4)
        self._head = self._without_mark(start)
        # Bytes of the file before what no chunk has held yet.
        self._given = len(start) - len(self._head)

    @property
    def sha256(self) -> str | None:
        """Hex digest of all stored bytes."""
        if self._tap.hash is None:
            return None
        return self._tap.hash.hexdigest()

    def chunks(self, size: int) -> Iterator[bytes]:
        """Whole lines, about size bytes at a time, each chunk with its padding.

        A last line without a line end gets one. Linear for lines of any length.
        """
        _spare_page_faults()
        for chunk in _whole_lines(self._head, iter(partial(self._read, size), b"")):
            self._given += len(chunk) - WORD
            yield chunk

    def pieces(self, size: int) -> Pieces | None:
        """All behind the chunks given so far, one at least, for several processes.

        None where the file is small, packed, hashed or a pipe. To be closed.
        """
        if not self._plain or self._tap.hash is not None:
            return None
        end = self._tap.size()
        if end is None or end < max(defaults.SHARED_BYTES, self._given + 1):
            return None
        try:
            return Pieces(self._tap.at, self._given, end, size)
        except OSError:
            return None

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise InputError(f"{self.name}: cannot be read: {error}") from error
        except Exception as error:
            # Each zstd module has an error class of its own.
            if type(error).__name__ != "ZstdError":
                raise
            raise InputError(f"{self.name}: cannot be read: {error}") from error

    def _decompressed(self) -> BinaryIO:
        head = self._tap.head(len(_XZ))
        if head.startswith(_GZIP):
            self.notes.append("gzip")
            return _unpacked(self._tap, lambda: zlib.decompressobj(_GZIP_FORMAT))
        if head.startswith(_XZ):
            self.notes.append("xz")
            return _unpacked(self._tap, lzma.LZMADecompressor)
        if head.startswith(_ZSTD):
            self.notes.append("zstd")
            return _unpacked(self._tap, _zstd(self.name))
        return io.BufferedReader(self._tap, _READ_AHEAD)

    def _without_mark(self, head: bytes) -> bytes:
        if head.startswith(_BOM):
            self.notes.append("UTF-8 BOM")
            return head[len(_BOM) :]
        if head.startswith(_UTF_16) or head[1:2] == b"\x00" != head[:1]:
            raise InputError(
                f"{self.name}: expected UTF-8 text, found UTF-16; "
                f"save the file as UTF-8 (iconv -f UTF-16 -t UTF-8)"
            )
        return head


def _whole_lines(head: bytes, bodies: Iterator[bytes]) -> Iterator[bytes]:
    pieces: list[bytes | memoryview] = [head]
    for body in bodies:
        cut = body.rfind(b"\n") + 1
        if not cut:
            pieces.append(body)
            continue
        parts = [*pieces, memoryview(body)[:cut], PADDING]
        pieces = [body[cut:]]
        chunk = b"".join(parts)
        # Else a second copy would live on while the chunk is parsed.
        del body, parts
        yield chunk
    if last := b"".join(pieces):
        yield b"".join((last, b"" if last.endswith(b"\n") else b"\n", PADDING))


@contextmanager
def opened(name: str, *, digest: bool = False) -> Iterator[Source]:
    """Open a file for reading; '-' is standard input."""
    if name == STDIN and sys.stdin is None:
        raise InputError(f"{name}: standard input is closed")
    try:
        # Closed below; a with would close standard input as well.
        stream = sys.stdin.buffer if name == STDIN else open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{name!r}: cannot be opened: {error}") from error
    try:
        yield Source(name, stream, digest=digest)
    finally:
        if name != STDIN:
            stream.close()


class _Tap(io.RawIOBase):
    """Passes a stream's bytes on and hashes them on the way."""

    def __init__(self, name: str, stream: BinaryIO, *, digest: bool) -> None:
        self.hash = hashlib.sha256() if digest else None
        self._name, self._stream, self._ahead = name, stream, b""

    def readable(self) -> bool:
        return True

    def head(self, size: int) -> bytes:
        """The next bytes, which stay to be read; fewer at the end of the stream.

        A pipe may hand them on one at a time.
        """
        more = bytearray(size)
        while len(self._ahead) < size and (got := self._read_into(memoryview(more))):
            self._ahead += more[:got]
        return self._ahead[:size]

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if not self._ahead:
            return self._read_into(view)
        view = view[: len(self._ahead)]
        view[:] = self._ahead[: len(view)]
        self._ahead = self._ahead[len(view) :]
        return len(view)

    def _read_into(self, view: memoryview) -> int:
        # The unbuffered layer, so that a pipe's bytes are handed on as they come.
        raw: Any = getattr(self._stream, "raw", self._stream)
        try:
            # None says that a pipe which does not block has nothing yet.
            while (size := raw.readinto(view)) is None:
                select.select([raw], [], [])
        except OSError as error:
            raise self._unreadable(error) from error
        if self.hash is not None:
            self.hash.update(view[:size])
        return int(size)

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"{self._name}: cannot be read: {error.strerror}")

    def size(self) -> int | None:
        """In bytes; None for what is no file of its own."""
        if self._name == STDIN:
            return None
        status = os.fstat(self._stream.fileno())
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def at(self, place: int, size: int, least: int) -> bytes:
        """So many bytes at a place, wherever else the file is read; fewer at its end.

        Raises InputError for fewer than the least that have to be there.
        """
        parts = []
        try:
            while size and (part := os.pread(self._stream.fileno(), size, place)):
                parts.append(part)
                place, size = place + len(part), size - len(part)
        except OSError as error:
            raise self._unreadable(error) from error
        found = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(found) < least:
            raise InputError(
                f"{self._name}: cannot be read: it became shorter while it was read"
            )
        return found


class _Decompressor(Protocol):
    """What the decompressors of all formats have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class _Unpacked(io.RawIOBase):
    """The decompressed bytes of one packed stream after the other, to the last one.

    A stream cut short, or followed by what is none, is an error and not an end.
    """

    def __init__(self, raw: io.RawIOBase, new: Callable[[], _Decompressor]) -> None:
        self._raw, self._new = raw, new
        self._current: _Decompressor | None = None
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._raw.read(_PACKED_BYTES)
            if not packed:
                if self._current is not None:
                    raise EOFError("the compressed data is cut short")
                return 0
            self._ready = self._unpack(packed)
        view = memoryview(buffer)[: len(self._ready)]
        view[:] = self._ready[: len(view)]
        self._ready = self._ready[len(view) :]
        return len(view)

    def _unpack(self, packed: bytes) -> bytes:
        parts = []
        while packed:
            if self._current is None:
                # Zeros may pad a stream; anything else has to be one more.
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                self._current = self._new()
            parts.append(self._current.decompress(packed))
            packed = b""
            if self._current.eof:
                packed, self._current = self._current.unused_data, None
        return b"".join(parts)


def _unpacked(raw: io.RawIOBase, new: Callable[[], _Decompressor]) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Unpacked(raw, new), _READ_AHEAD))


def _spare_page_faults() -> None:
    """Free one large block, so that the C library keeps what is freed after it.

    glibc gives memory above a threshold back at once, and takes the size of a freed
    block as the new threshold: without this each chunk's arrays are mapped and
    cleared anew, 250,000 page faults and 0.3 s on 282 MB. The block is never
    touched, so it takes no memory.
    """
    np.empty(30 << 20, np.uint8)


def _zstd(name: str) -> Callable[[], _Decompressor]:
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdDecompressor

            return ZstdDecompressor
        from zstandard import ZstdDecompressor

        return lambda: cast(_Decompressor, ZstdDecompressor().decompressobj())
    except ImportError:
        raise InputError(
            f"{name}: is zstd-compressed, which needs Python 3.14 or "
            f"`pip install zstandard`; or pipe it: zstdcat {name} | falsify ..."
        ) from None
