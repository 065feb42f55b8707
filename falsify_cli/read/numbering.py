"""Ids that come chunk by chunk -> numbers from 0, in the order they first come."""

from __future__ import annotations

import numpy as np

from falsify_cli.columns import Ints
from falsify_cli.ids import SALTS, Ids
from falsify_cli.key_table import KeyTable
from falsify_cli.read.growing import GrowingIds


class Numbering:
    """Numbers different ids.

    Exact: a hash finds an id, its bytes decide. A salt under which two different ids
    share a key is given up for the next one.
    """

    def __init__(self) -> None:
        self._salt = 0
        self._table = KeyTable()
        self._ids = GrowingIds()

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> Ids:
        """The different ids, in the order of their numbers."""
        return self._ids.column()

    def numbers(self, ids: Ids) -> Ints:
        """(n,) the number of each id; those not met before get the next ones."""
        while True:
            keys = ids.keys(self._salt)
            numbers = self._table.find(keys)
            new = np.flatnonzero(numbers < 0)
            if len(new):
                _, firsts = np.unique(keys[new], return_index=True)
                firsts = new[np.sort(firsts)]
                self._ids.add(ids.take(firsts))
                self._table.add(keys[firsts])
                numbers[new] = self._table.find(keys[new])
            if ids.equal(self.ids().take(numbers)).all():
                return numbers
            self._change_salt()

    def _change_salt(self) -> None:
        """Give every id another key, until no two of them share one."""
        known = self.ids()
        for salt in range(self._salt + 1, SALTS):
            keys = known.keys(salt)
            if len(np.unique(keys)) == len(keys):
                self._salt, self._table = salt, KeyTable()
                self._table.add(keys)
                return
        raise AssertionError(f"{SALTS} hashes collided on one column")
