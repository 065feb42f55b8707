"""A column of ids: UTF-8 byte strings kept in one buffer, compared without Python.

Ids are opaque: two are the same when their bytes are. They hold no NUL byte, so the
eight-byte words of an id, padded with zeros, are the id itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from falsify_cli.columns import Bools, Ints
from falsify_cli.key_table import Keys, KeyTable, mixed
from falsify_cli.words import (
    LOW_BYTES,
    WORD,
    Words,
    are_digits,
    digit_values,
    last_digits,
    padded_with_zeros,
    spelled,
)

Bytes = npt.NDArray[np.uint8]
# Keys of plain numbers alone fit into half the bytes.
PackedKeys = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]

# Every buffer ends in this many zeros, so that a word can be read past its last id.
PADDING = bytes(WORD)
# Ids longer than this are hashed one by one: a loop over their words would cost a
# numpy call a word, 100,000 calls for one id of a megabyte.
LONG = 64
# Hashes to try until one keeps all ids apart.
SALTS = 256

# An odd constant of splitmix64 (Steele, Lea & Flood, 2014), and any other number.
_MIX = np.uint64(0x94D049BB133111EB)
_NEXT = np.uint64(0xBF58476D1CE4E5B9)
# The top bit: on every key that is no plain number.
_MARK = np.uint64(1 << 63)
# By how much n digits, padded to eight, are too large.
_TENS = np.array([10 ** (WORD - n) for n in range(WORD + 1)], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """A column of n ids.

    buffer: bytes of all ids, ending in at least eight spare bytes.
    starts, lengths: (n,) in bytes.
    """

    buffer: Bytes
    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, texts: Iterable[str | bytes]) -> Ids:
        """Make a column from strings.

        >>> Ids.of(["d1", "d22"])[1]
        'd22'
        """
        parts = [t.encode() if isinstance(t, str) else t for t in texts]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        buffer = np.frombuffer(b"".join(parts) + PADDING, np.uint8)
        return cls.packed(buffer, lengths)

    @classmethod
    def packed(cls, buffer: Bytes, lengths: Ints) -> Ids:
        """Ids that stand one behind the other; the padding behind the last."""
        return cls(buffer, _offsets(lengths), lengths)

    @classmethod
    def concatenate(cls, columns: Sequence[Ids]) -> Ids:
        """Join columns whose buffers hold nothing but their ids and the padding."""
        if len(columns) == 1:
            return columns[0]
        lengths = np.concatenate([c.lengths for c in columns] or [np.zeros(0, int)])
        bodies = [c.buffer[: len(c.buffer) - WORD] for c in columns]
        buffer = np.concatenate([*bodies, np.zeros(WORD, np.uint8)])
        return cls(buffer, _offsets(lengths), lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> str:
        return self.bytes_at(index).decode()

    def bytes_at(self, index: int) -> bytes:
        """The bytes of one id."""
        start = self.starts[index]
        return self.buffer[start : start + self.lengths[index]].tobytes()

    def to_list(self) -> list[str]:
        """All ids as strings."""
        # A few ids of a large buffer: that is not copied as a whole.
        few = self.lengths.sum() < len(self.buffer) // 2
        ids = self.compact() if few else self
        body = ids.buffer.tobytes()
        ends = (ids.starts + ids.lengths).tolist()
        pairs = zip(ids.starts.tolist(), ends, strict=True)
        if body.isascii():
            # Cutting text takes half the time of decoding each id.
            text = body.decode()
            return [text[start:end] for start, end in pairs]
        return [body[start:end].decode() for start, end in pairs]

    def take(self, indices: npt.NDArray[Any] | slice) -> Ids:
        """The ids at these places, in the same buffer."""
        return Ids(self.buffer, self.starts[indices], self.lengths[indices])

    def compact(self) -> Ids:
        """The same ids in a buffer of their own, one behind the other."""
        starts = _offsets(self.lengths)
        if len(self.buffer) == self.lengths.sum() + WORD and np.array_equal(
            starts, self.starts
        ):
            return self
        buffer = np.zeros(int(self.lengths.sum()) + WORD, np.uint8)
        source = np.repeat(self.starts - starts, self.lengths)
        source += np.arange(len(source))
        buffer[: len(source)] = self.buffer[source]
        return Ids(buffer, starts, self.lengths)

    def words(self, number: int) -> Words:
        """Bytes 8 * number to 8 * number + 7 of every id, zeros past its end."""
        starts, rest = self.starts, np.minimum(self.lengths, WORD)
        if number:
            rest = np.maximum(np.minimum(self.lengths - WORD * number, WORD), 0)
            # Behind the end of an id there may be no word; nothing of it is kept.
            starts = np.minimum(starts + WORD * number, len(self.buffer) - WORD)
        # Overlapping eight-byte views of the buffer: one unaligned load an id, where
        # eight gathers of single bytes take five times as long.
        shape = (len(self.buffer) - WORD + 1,)
        view: Words = np.ndarray(shape, "<u8", self.buffer, 0, (1,))
        words: Words = view[starts] & LOW_BYTES[rest]
        return words

    def last_words(self, count: int = 1) -> Words | None:
        """(n, count) the last eight bytes up to every id's end, and those before.

        Where an id is shorter, what stands before it in the buffer. None where an id
        ends too near the beginning of the buffer.
        """
        width = WORD * count
        firsts = self.starts + (self.lengths - width)
        if not len(self) or firsts.min() < 0:
            return None
        shape = (len(self.buffer) - width + 1,)
        view: npt.NDArray[np.void] = np.ndarray(
            shape, f"V{width}", self.buffer, 0, (1,)
        )
        words: Words = view[firsts].view("<u8").reshape(-1, count)
        return words

    def keys(self, salt: int = 0) -> Keys:
        """(n,) 64-bit keys; equal ids have equal keys.

        With salt 0 a plain number of at most eight digits is its own key, and so,
        but for a mark, is any other ASCII id of at most eight characters: no two of
        them collide. Any other key is a hash.
        """
        if not salt and (numbers := _plain_numbers(self)) is not None:
            return numbers
        keys = self.words(0)
        if salt:
            keys = mixed(keys ^ np.uint64(salt))
        else:
            keys = _numbers_or_marked(keys, self.lengths)
        longest = int(self.lengths.max(initial=0))
        for number in range(1, -(-min(longest, LONG) // WORD)):
            more = np.flatnonzero(self.lengths > WORD * number)
            words = self.take(more).words(number)
            keys[more] = mixed(keys[more] + _NEXT) ^ words * _MIX
        for index in np.flatnonzero(self.lengths > LONG).tolist():
            digest = hashlib.blake2b(
                self.bytes_at(index), digest_size=8, salt=bytes([salt])
            )
            keys[index] = int.from_bytes(digest.digest(), "little")
        if not salt:
            keys[self.lengths > WORD] |= _MARK
        return keys

    def stretches(self) -> Ints:
        """The first place of every stretch of one and the same id."""
        changes = self.lengths[1:] != self.lengths[:-1]
        longest = int(self.lengths.max(initial=0))
        for number in range(-(-min(longest, LONG) // WORD)):
            words = self.words(number)
            changes |= words[1:] != words[:-1]
        for index in np.flatnonzero(~changes & (self.lengths[1:] > LONG)).tolist():
            changes[index] = self.bytes_at(index) != self.bytes_at(index + 1)
        starts = np.flatnonzero(changes) + 1
        return np.concatenate([[0], starts]) if len(self) else starts

    def equal(self, other: Ids) -> Bools:
        """(n,) whether each id is the other column's id at the same place."""
        same: Bools = self.lengths == other.lengths
        places = np.flatnonzero(same)
        longest = int(self.lengths[places].max(initial=0))
        for number in range(-(-min(longest, LONG) // WORD)):
            mine, theirs = self.take(places), other.take(places)
            differ = mine.words(number) != theirs.words(number)
            same[places[differ]] = False
        for index in np.flatnonzero(same & (self.lengths > LONG)).tolist():
            same[index] = self.bytes_at(index) == other.bytes_at(index)
        return same

    def order(self) -> Ints:
        """(n,) the indices that sort the ids by their bytes, ascending."""
        longest = int(self.lengths.max(initial=0))
        if longest > LONG:
            return np.array(sorted(range(len(self)), key=self.bytes_at), np.int64)
        numbers = range(-(-longest // WORD))
        # Big-endian words compare as the bytes do; zero padding puts a prefix first.
        columns = [self.words(number).byteswap() for number in reversed(numbers)]
        return np.lexsort(columns) if columns else np.arange(len(self))


def packed(keys: Keys) -> PackedKeys:
    """Keys of ids in four bytes each, where all ids are plain numbers below 2^32."""
    return keys if keys.max(initial=0) >> np.uint64(32) else keys.astype(np.uint32)


def _offsets(lengths: Ints) -> Ints:
    return np.cumsum(lengths) - lengths


def _plain_numbers(ids: Ids) -> Keys | None:
    """What _numbers_or_marked makes of them where every id is a plain number.

    A run's documents often are: 0.4 ms for 26,000 of them where that takes 0.9.
    """
    lengths = ids.lengths
    if not len(ids) or lengths.min() < 1 or lengths.max() > WORD:
        return None
    words = ids.last_words()
    digits = None if words is None else last_digits(words[:, 0], lengths)
    if digits is None:
        return None
    spare = ((WORD - lengths) << 3).view(np.uint64)
    leading_zero = (((digits >> spare) & np.uint64(0xFF)) == 0) & (lengths > 1)
    return None if leading_zero.any() else spelled(digits)


def _numbers_or_marked(words: Words, lengths: Ints) -> Keys:
    """Plain numbers as their value, all other words with their top bit set.

    Numbers below 2^32 can be kept in half the memory, and 282 MB of MS MARCO have
    seven million of them.
    """
    digits = padded_with_zeros(words, np.minimum(lengths, WORD))
    leading_zero = ((words & np.uint64(0xFF)) == np.uint64(ord("0"))) & (lengths > 1)
    plain = are_digits(digits) & (lengths <= WORD) & (lengths > 0) & ~leading_zero
    values = digit_values(digits) // _TENS[np.minimum(lengths, WORD)]
    return values if plain.all() else np.where(plain, values, words | _MARK)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Different ids in the order of their bytes, and where to find each.

    ids: (n,) sorted. The code of an id is its place there. table: the codes by the
    ids' keys under a salt.
    """

    ids: Ids
    salt: int
    table: KeyTable

    @classmethod
    def of(cls, ids: Ids) -> Vocabulary:
        """Collect the different ids of a column.

        Exact: a salt under which two different ids share a key is given up for the
        next one, so that a hash never decides what is the same.
        """
        salt, first = _distinct(ids)
        unique = ids.take(first).compact()
        unique = unique.take(unique.order()).compact()
        table = KeyTable()
        table.add(unique.keys(salt))
        return cls(unique, salt, table)

    def __len__(self) -> int:
        return len(self.ids)

    def may_hold(self, ids: Ids, keys: Keys) -> Bools:
        """(m,) whether each id's key is here: True also for a rare stranger.

        keys: those of the ids under salt 0, which is nearly always the salt.
        """
        mine = ids.keys(self.salt) if self.salt else keys
        found: Bools = self.table.find(mine) >= 0
        return found

    def codes(self, ids: Ids) -> Ints:
        """(m,) the code of every id, -1 for one that is not in the vocabulary."""
        codes = self.table.find(ids.keys(self.salt))
        # A key that is met may be another id's: the bytes decide.
        met = np.flatnonzero(codes >= 0)
        other = ~ids.take(met).equal(self.ids.take(codes[met]))
        codes[met[other]] = -1
        return codes


def _distinct(ids: Ids) -> tuple[int, Ints]:
    """A salt that keeps different ids apart, and the place of one of each."""
    for salt in range(SALTS):
        _, first, inverse = np.unique(
            ids.keys(salt), return_index=True, return_inverse=True
        )
        if ids.equal(ids.take(first[inverse])).all():
            return salt, first
    raise AssertionError(f"{SALTS} hashes collided on one column")
