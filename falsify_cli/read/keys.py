"""Keys of documents, chunk after chunk -> one column."""

from __future__ import annotations

import numpy as np

from falsify_cli.ids import Keys, PackedKeys

# Places to begin with: 32 MB, more than what the C library keeps on its heap, so that
# only the pages written to take memory and all of them go back when they are freed.
_LEAST = 1 << 23


class GrowingKeys:
    """A column of keys that grows at its end.

    Four bytes a key as long as all of them are plain numbers, then eight: seven
    million documents of MS MARCO take 28 MB.
    """

    def __init__(self) -> None:
        self._places: PackedKeys = np.empty(_LEAST, np.uint32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: Keys) -> None:
        """Add a chunk's keys."""
        places: PackedKeys = self._places
        if places.dtype == np.uint32 and keys.max(initial=0) >> np.uint64(32):
            places = places.astype(np.uint64)
        end = self._count + len(keys)
        if end > len(places):
            places = np.concatenate([places, np.empty_like(places, shape=end)])
        places[self._count : end] = keys
        self._places, self._count = places, end

    def column(self) -> PackedKeys:
        """All keys so far; a view, to be sorted in place if need be."""
        return self._places[: self._count]
