"""Eight characters at once: 64-bit words of ASCII, first character lowest.

The arithmetic on whole words is that of D. Lemire, "Quickly parsing eight digits"
(2018); its plain counterpart is int() on each word, in the tests.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from falsify_cli.columns import Bools, Ints

Words = npt.NDArray[np.uint64]

WORD = 8

# The lowest n bytes of a word, n from 0 to 8.
LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], np.uint64)

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
_POINTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ABOVE_NINE = np.uint64(0x7676767676767676)


def padded_with_zeros(words: Words, lengths: Ints) -> Words:
    """Put the digit 0 behind the first lengths (0 to 8) characters of each word."""
    return words | (_ZEROS & ~LOW_BYTES[lengths])


def are_digits(words: Words) -> Bools:
    """Whether all eight characters of each word are digits."""
    high = (words & _HIGH_HALVES) == _ZEROS
    result: Bools = high & (((words + _SIXES) & _HIGH_HALVES) == _ZEROS)
    return result


def digit_values(words: Words) -> Words:
    """The number that eight digits spell."""
    return spelled(words - _ZEROS)


def last_digits(words: Words, counts: Ints) -> Words | None:
    """The values, 0 to 9, of the last counts (1 to 8) characters; zeros before them.

    None where one of these characters is no digit.
    """
    spare = ((WORD - counts) << 3).view(np.uint64)
    values = ((words ^ _ZEROS) >> spare) << spare
    # Ten and more reach a byte's top bit, and whatever had it before keeps it.
    odd = np.bitwise_or.reduce((values + _ABOVE_NINE) | values) & _TOPS
    return None if odd else values


def spelled(values: Words) -> Words:
    """The number of eight bytes from 0 to 9: three multiplications, not eight."""
    values = values * np.uint64(10) + (values >> np.uint64(8))
    pairs = np.uint64(0x000000FF000000FF)
    low = (values & pairs) * np.uint64(0x000F424000000064)
    high = ((values >> np.uint64(16)) & pairs) * np.uint64(0x0000271000000001)
    return (low + high) >> np.uint64(32)


def below_first_point(words: Words) -> Words:
    """A mask of the bytes before a word's first '.'; all bytes where it has none."""
    x = words ^ _POINTS
    # The classic zero-byte test; its lowest mark is always a true one.
    marks = (x - _ONES) & ~x & _TOPS
    return ((marks & (~marks + np.uint64(1))) >> np.uint64(7)) - np.uint64(1)


def bytes_in(masks: Words) -> Ints:
    """How many low bytes each mask of whole bytes has."""
    return (((masks & _ONES) * _ONES) >> np.uint64(56)).astype(np.int64)
