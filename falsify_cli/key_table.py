"""64-bit keys -> numbers: a hash table, asked a whole column of keys at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from falsify_cli.columns import Ints

Keys = npt.NDArray[np.uint64]

# An odd constant of splitmix64 (Steele, Lea & Flood, 2014).
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)

_LEAST_SLOTS = 1 << 10
# At most half full: most keys then lie in the slot they are looked for first.
_SLOTS_A_KEY = 2


def mixed(keys: Keys) -> Keys:
    """Scatter keys over all 64 bits."""
    keys = (keys ^ (keys >> _SHIFT)) * _MIX
    return keys ^ (keys >> _SHIFT)


class KeyTable:
    """Different 64-bit keys, numbered in the order they are added: a hash table.

    Open addressing with linear probing, a whole column of keys at a time: 0.1 ms for
    26,000 keys of 7,000, where a dict and its lists take 2.5 and binary search 1.3.
    """

    def __init__(self) -> None:
        self._count = 0
        self._keys = np.zeros(_LEAST_SLOTS, np.uint64)
        self._numbers = np.full(_LEAST_SLOTS, -1, np.int32)

    def find(self, keys: Keys) -> Ints:
        """(n,) the number of each key, -1 where it is not there."""
        numbers = np.full(len(keys), -1)
        rows: Ints = np.arange(len(keys))
        slots = self._first_slots(keys)
        while len(rows):
            there = self._numbers[slots]
            met = self._keys[slots] == keys[rows]
            numbers[rows[met]] = there[met]
            on = np.flatnonzero(~met & (there >= 0))
            rows, slots = rows[on], self._next(slots[on])
        return numbers

    def add(self, keys: Keys) -> None:
        """Add keys that are not there yet, each once."""
        total = self._count + len(keys)
        if total * _SLOTS_A_KEY > len(self._keys):
            used = np.flatnonzero(self._numbers >= 0)
            before, numbers = self._keys[used], self._numbers[used]
            size = 1 << (total * _SLOTS_A_KEY).bit_length()
            self._keys = np.zeros(size, np.uint64)
            self._numbers = np.full(size, -1, np.int32)
            self._place(before, numbers.astype(np.int64))
        self._place(keys, np.arange(self._count, total))
        self._count = total

    def _place(self, keys: Keys, numbers: Ints) -> None:
        slots = self._first_slots(keys)
        while len(keys):
            free = self._numbers[slots] < 0
            # Of several that claim one slot the last has it; the others go on.
            self._numbers[slots[free]] = numbers[free]
            placed = self._numbers[slots] == numbers
            self._keys[slots[placed]] = keys[placed]
            keys, numbers = keys[~placed], numbers[~placed]
            slots = self._next(slots[~placed])

    def _first_slots(self, keys: Keys) -> Ints:
        return (mixed(keys) & np.uint64(len(self._keys) - 1)).view(np.int64)

    def _next(self, slots: Ints) -> Ints:
        return (slots + 1) & (len(self._keys) - 1)
