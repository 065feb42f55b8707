"""Columns that grow chunk by chunk, and keep no chunk's arrays alive."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from falsify_cli.ids import PADDING, Ids, PackedKeys

T = TypeVar("T", bound=np.generic)

# Bytes to begin with, and to have at least once they are too few. The second is more
# than the C library keeps on its heap, so that only pages written to take memory and
# all of them go back when they are freed; lists of small arrays would stand between
# the chunks' large ones and spread them: 15 MB more on a run of 282 MB. But the first
# page of a large array is one of 2 MB, which few kept lines need not take.
_FIRST, _NEXT = 1 << 20, 1 << 25


class GrowingColumn(Generic[T]):
    """A column of one type."""

    def __init__(self, kind: type[T]) -> None:
        self._places: npt.NDArray[Any] = np.empty(
            _FIRST // np.dtype(kind).itemsize, kind
        )
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values at the end."""
        end = self._count + len(values)
        if end > len(self._places):
            room = max(2 * end, _NEXT // self._places.itemsize)
            self._move(room, self._places.dtype)
        self._places[self._count : end] = values
        self._count = end

    def shorten(self, count: int) -> None:
        """Keep only the first values."""
        self._count = count

    def replace(self, values: npt.NDArray[Any]) -> None:
        """Have these values instead."""
        self.shorten(0)
        self.add(values)

    def column(self) -> npt.NDArray[T]:
        """All values so far; a view, to be changed in place if need be."""
        return self._places[: self._count]

    def _move(self, room: int, kind: Any) -> None:
        # Only what is written: copying the spare places would touch all of them.
        wider = np.empty(room, kind)
        wider[: self._count] = self._places[: self._count]
        self._places = wider


class GrowingIds:
    """A column of ids, in one buffer of their own."""

    def __init__(self) -> None:
        self._bytes = GrowingColumn(np.uint8)
        self._bytes.add(np.frombuffer(PADDING, np.uint8))
        self._starts = GrowingColumn(np.int64)
        self._lengths = GrowingColumn(np.int64)

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, ids: Ids) -> None:
        """Add a copy of ids at the end."""
        self._append(ids.compact())

    def replace(self, ids: Ids) -> None:
        """Have these ids instead, some of the present ones."""
        ids = ids.compact()
        self._bytes.shorten(len(PADDING))
        self._starts.shorten(0)
        self._lengths.shorten(0)
        self._append(ids)

    def column(self) -> Ids:
        """All ids so far; a view."""
        return Ids(self._bytes.column(), self._starts.column(), self._lengths.column())

    def _append(self, ids: Ids) -> None:
        end = len(self._bytes) - len(PADDING)
        self._bytes.shorten(end)
        self._bytes.add(ids.buffer)
        self._starts.add(ids.starts + end)
        self._lengths.add(ids.lengths)


class GrowingKeys(GrowingColumn[np.uint64]):
    """Keys of documents, in four bytes each as long as all are plain numbers.

    Seven million documents of MS MARCO take 28 MB.
    """

    def __init__(self) -> None:
        super().__init__(np.uint64)
        self._places = self._places.view(np.uint32)

    def add(self, values: PackedKeys) -> None:
        """Add keys at the end, and widen all when one needs it."""
        if values.dtype == np.uint64 and self._places.dtype == np.uint32:
            self._move(max(len(self._places) // 2, self._count), np.uint64)
        super().add(values)

    def column(self) -> PackedKeys:  # type: ignore[override]
        """All keys so far; a view, to be sorted in place if need be."""
        return self._places[: self._count]
