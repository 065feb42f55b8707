"""What the four null models share: streams, blocks of draws, and their result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import Bools, Floats, Ints, sums_at
from falsify_cli.grading import Grading

LETTERS = "ABCD"

# The tags of the streams: default_rng([seed, tag]). A number never used twice.
(
    TAG_A,
    TAG_B,
    TAG_C_COUNTS,
    TAG_C_RANKS,
    TAG_C_CHOICE,
    TAG_D_ORDERS,
    TAG_D_POINTS,
    TAG_D_SLOTS,
    TAG_WEIGHTS,
    TAG_C_OTHERS,
    TAG_C_POINTS,
) = range(1, 12)


def stream(seed: int, tag: int) -> np.random.Generator:
    """The random stream of one purpose."""
    return np.random.default_rng([seed, tag])


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """What one null model scores on one benchmark.

    expected: its mean score, exact where there is a closed form, else the mean of
    the draws, with its standard_error (0 when exact). draws: (B,) mean scores.
    of_query: (N,) the null's expected score of every query.
    differences: (N,) run minus null a query; their mean is the gap.
    """

    letter: str
    expected: float
    exact: bool
    standard_error: float
    draws: Floats
    of_query: Floats
    differences: Floats

    @property
    def draws_mean(self) -> float:
        """The mean over draws and queries."""
        return float(self.draws.mean())


def p_value(null: Null, score: float) -> float:
    """How often the null does as well as the run.

    The run counts as one draw of the null: without it p could be 0, which no finite
    number of draws supports (Phipson & Smyth, 2010).
    """
    reached = int((null.draws >= score - 1e-12).sum())
    return (1 + reached) / (1 + len(null.draws))


class Tally:
    """Takes in the draws of one null, block after block, and puts the null together.

    of_query: (N,) expected scores, None where only the draws tell. differences:
    (N,), where they are not scores less of_query.
    """

    def __init__(
        self,
        letter: str,
        grading: Grading,
        of_query: Floats | None,
        differences: Floats | None = None,
    ) -> None:
        self._letter, self._grading = letter, grading
        self._of_query, self._differences = of_query, differences
        self._means: list[Floats] = []
        self._total = np.zeros(len(grading))

    def add(self, scored: tuple[Ints, Floats], block: int) -> None:
        """Take in b draws: the cells draw * N + query that score, and their scores.

        Most cells of most benchmarks score nothing and cost nothing.
        """
        cells, values = scored
        draws, queries = np.divmod(cells, len(self._grading))
        self.add_sums(sums_at(draws, values, block))
        if self._of_query is None:
            # One after the other, so that no size of block changes their order.
            np.add.at(self._total, queries, values)

    def add_sums(self, sums: Floats) -> None:
        """Take in b draws of a null whose expected scores are known: (b,) sums."""
        self._means.append(sums / len(self._grading))

    def null(self) -> Null:
        """The null, once all draws are in."""
        draws, of_query = np.concatenate(self._means), self._of_query
        exact = of_query is not None
        if of_query is None:
            of_query = self._total / len(draws)
        differences = self._differences
        if differences is None:
            differences = self._grading.scores - of_query
        error = 0.0 if exact else float(draws.std(ddof=1) / np.sqrt(len(draws)))
        expected = float(of_query.mean())
        return Null(self._letter, expected, exact, error, draws, of_query, differences)


def blocks(draws: int, width: int, cells: int | None = None) -> Iterator[int]:
    """Cut the draws into blocks of about so many cells; yields the size of each."""
    size = max(1, (cells or defaults.BLOCK_CELLS) // max(width, 1))
    for first in range(0, draws, size):
        yield min(size, draws - first)


def true_places(mask: Bools) -> tuple[Ints, Ints]:
    """The rows and columns of a mask's true places, in order.

    np.nonzero takes five to fifteen times as long on two dimensions.
    """
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return rows, columns


def permutations(
    rng: np.random.Generator, rows: int, count: int, repeated: Ints | None = None
) -> Ints:
    """(rows, count) random orders of count things that were numbered at random.

    repeated: (n,) numbers of things, to have them in place of each once: equal ones
    then stand side by side.

    Random keys that carry their number in the low bits, sorted: 0.006 microseconds
    an element where argsort takes 0.09 and keys of 64 bits 0.013. Keys whose random
    bits are equal stay in the order of their numbers. With these at random each row
    is exactly uniform, and two rows are independent but for pairs that both of them
    leave to their numbers, one in 2 to the 32nd with 16 random bits. There have to
    be as many: if many keys tied, the same few numbers would come first and last.
    """
    bits = max(count - 1, 1).bit_length()
    word: type[np.unsignedinteger[Any]] = np.uint32 if bits <= 16 else np.uint64
    words_in_one = 8 // np.dtype(word).itemsize
    # Halves of whole words: asked for one by one they take twice as long.
    drawn = rng.integers(0, 2**64, (rows, -(-count // words_in_one)), np.uint64)
    keys = drawn.view(word)[:, :count]
    mask = word((1 << bits) - 1)
    keys &= ~mask
    keys |= np.arange(count, dtype=word)
    if repeated is not None:
        keys = keys.take(repeated, axis=1)
    keys.sort(axis=1)
    keys &= mask
    # As indices of their own width they are taken twice as fast; keys of 64 bits have
    # it, and need no copy.
    orders: Ints = keys.view(np.int64) if word is np.uint64 else keys.astype(np.int64)
    return orders
