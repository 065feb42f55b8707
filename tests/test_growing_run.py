"""What a run is put together from, chunk by chunk, against dicts and sorted lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ids import ALIKE, BYTES, bytes_of, keys_of_bits

from falsify_cli.ids import Ids
from falsify_cli.read import kept_lines
from falsify_cli.read.growing import GrowingColumn, GrowingIds, GrowingKeys
from falsify_cli.read.kept_lines import KeptLines
from falsify_cli.read.numbering import Numbering

QUICK = settings(derandomize=True, deadline=None, max_examples=50)
CHUNKS = st.lists(st.lists(BYTES | ALIKE, max_size=20), max_size=6)


# ---- numbers of ids -----------------------------------------------------------------


@pytest.mark.parametrize(("bits", "salts"), [(64, 1), (3, 1), (2, 4), (0, 2)])
@QUICK
@given(chunks=CHUNKS)
def test_ids_are_numbered_in_the_order_they_come(
    chunks: list[list[bytes]], bits: int, salts: int
) -> None:
    known: dict[bytes, int] = {}
    found: list[list[int]] = []
    with keys_of_bits(bits, salts):
        numbering = Numbering()
        for texts in chunks:
            found.append(numbering.numbers(Ids.of(texts)).tolist())
    if bits == 64:
        expected = [[known.setdefault(t, len(known)) for t in ts] for ts in chunks]
        assert found == expected
        assert bytes_of(numbering.ids()) == list(known)
    # Where keys collide only the order may be another.
    ids = bytes_of(numbering.ids())
    assert [[ids[n] for n in numbers] for numbers in found] == chunks
    assert len(numbering) == len(set(ids)) == len(ids)


def test_many_ids_are_found_again_as_the_table_grows() -> None:
    numbering, rng = Numbering(), np.random.default_rng(3)
    known: dict[int, int] = {}
    for _ in range(30):
        drawn = rng.integers(0, 20_000, 2_000).tolist()
        expected = [known.setdefault(number, len(known)) for number in drawn]
        found = numbering.numbers(Ids.of([f"{n}" for n in drawn]))
        assert found.tolist() == expected
    assert numbering.ids().to_list() == [str(number) for number in known]


def test_ids_whose_hashes_always_collide_are_a_fault() -> None:
    with keys_of_bits(0, 256), pytest.raises(AssertionError, match="256 hashes"):
        Numbering().numbers(Ids.of(["a", "b"]))


# ---- the lines kept -----------------------------------------------------------------

SCORES = st.integers(0, 12).map(float) | st.sampled_from([-1.5, 1e300, 5 + 1e-12])
LINES = st.lists(st.tuples(st.integers(0, 3), SCORES), max_size=60)


@pytest.fixture(autouse=True)
def _look_early() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_lines, "_LEAST", 8)
        yield


@pytest.mark.parametrize("depth", [None, 1, 2, 5])
@pytest.mark.parametrize("size", [1, 7])
@QUICK
@given(lines=LINES)
def test_kept_lines_hold_the_best_of_every_query(
    lines: list[tuple[int, float]], depth: int | None, size: int
) -> None:
    numbers: dict[int, int] = {}
    lines = [(numbers.setdefault(query, len(numbers)), s) for query, s in lines]
    kept = KeptLines(depth)
    for low in range(0, len(lines), size):
        some = lines[low : low + size]
        kept.add(
            np.array([query for query, _ in some]),
            Ids.of([f"document {low + i}" for i in range(len(some))]),
            np.array([score for _, score in some]),
            np.arange(low, low + len(some), dtype=np.float64),
        )
    queries, documents, scores, ranks = kept.columns()
    # Every column still speaks of the same lines, in the order they came.
    places = [int(text.removeprefix("document ")) for text in documents.to_list()]
    assert places == sorted(places) == ranks.tolist()
    assert [lines[p] for p in places] == list(zip(queries, scores, strict=True))
    for query in set(numbers.values()):
        mine = [np.float32(min(s, 3e38)) for q, s in lines if q == query]
        best = sorted(mine, reverse=True)[:depth]
        wanted = {
            p
            for p, (q, s) in enumerate(lines)
            if q == query and np.float32(min(s, 3e38)) >= best[-1]
        }
        assert wanted <= set(places)


def test_few_of_many_scattered_lines_are_kept() -> None:
    kept, rng = KeptLines(2), np.random.default_rng(0)
    for _ in range(200):
        queries = rng.integers(0, 3, 50)
        ids = Ids.of(["d"] * 50)
        kept.add(queries, ids, rng.random(50), np.zeros(50))
    assert len(kept.columns()[0]) < 100


# ---- columns ------------------------------------------------------------------------


def test_columns_grow_past_the_room_they_begin_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("falsify_cli.read.growing._FIRST", 32)
    monkeypatch.setattr("falsify_cli.read.growing._NEXT", 32)
    column, ids = GrowingColumn(np.int64), GrowingIds()
    for low in range(0, 60, 3):
        column.add(np.arange(low, low + 3))
        ids.add(Ids.of([str(n) for n in range(low, low + 3)]))
    assert column.column().tolist() == list(range(60))
    assert ids.column().to_list() == [str(n) for n in range(60)]
    ids.replace(ids.column().take(np.array([59, 3])))
    ids.add(Ids.of(["x"]))
    assert ids.column().to_list() == ["59", "3", "x"]


def test_keys_widen_when_one_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falsify_cli.read.growing._FIRST", 32)
    monkeypatch.setattr("falsify_cli.read.growing._NEXT", 32)
    keys = GrowingKeys()
    keys.add(np.arange(9, dtype=np.uint32))
    assert keys.column().dtype == np.uint32
    keys.add(np.array([2**32], np.uint64))
    keys.add(np.array([7], np.uint32))
    assert keys.column().tolist() == [*range(9), 2**32, 7]
