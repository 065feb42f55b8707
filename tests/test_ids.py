"""Columns of ids against Python's own bytes, with keys that collide as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli.ids import LONG, Ids, Vocabulary
from falsify_cli.key_table import Keys, mixed
from falsify_cli.words import WORD

QUICK = settings(derandomize=True, deadline=None, max_examples=50)

# The lengths at which the code changes its ways: words of eight bytes, then hashes.
BORDERS = [0, 1, WORD - 1, WORD, WORD + 1, 16, 17, LONG - 1, LONG, LONG + 1, 200]

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
BYTES = TEXTS.map(str.encode)
# Few letters, so that equal ids, prefixes and ids equal in all but one word occur.
ALIKE = st.builds(
    lambda letter, length, end: (letter * length + end).encode(),
    st.sampled_from(["a", "b", "1", "0", "\xe9"]),
    st.sampled_from(BORDERS),
    st.sampled_from(["", "a", "1", "\xe9"]),
)
COLUMNS = st.lists(BYTES | ALIKE, max_size=30)


@contextmanager
def keys_of_bits(bits: int, salts: int = 1) -> Iterator[None]:
    """Make the keys of the first salts collide: so many bits are left of each."""
    proper = Ids.keys

    def keys(self: Ids, salt: int = 0) -> Keys:
        mask = np.uint64((1 << bits) - 1 if salt < salts else 2**64 - 1)
        return mixed(proper(self, salt)) & mask

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ids, "keys", keys)
        yield


def bytes_of(ids: Ids) -> list[bytes]:
    return [ids.bytes_at(index) for index in range(len(ids))]


# ---- a column is the list it was made of --------------------------------------------


@QUICK
@given(COLUMNS, st.lists(st.integers(0, 29), max_size=10), st.booleans())
def test_a_column_gives_back_what_went_in(
    texts: list[bytes], places: list[int], compact: bool
) -> None:
    ids = Ids.of(texts)
    assert bytes_of(ids) == texts
    places = [place for place in places if place < len(texts)]
    taken = ids.take(np.array(places, np.int64))
    expected = [texts[place] for place in places]
    assert bytes_of(taken.compact() if compact else taken) == expected


@QUICK
@given(st.lists(COLUMNS, max_size=4))
def test_joined_columns_are_the_joined_lists(columns: list[list[bytes]]) -> None:
    joined = Ids.concatenate([Ids.of(texts) for texts in columns])
    assert bytes_of(joined) == [text for texts in columns for text in texts]
    assert len(joined) == len(joined.compact())


def test_ids_are_shown_as_text() -> None:
    ids = Ids.of(["d1", "caf\xe9", "\U0001f600"])
    assert ids.to_list() == ["d1", "caf\xe9", "\U0001f600"]
    assert [ids[index] for index in range(3)] == ids.to_list()


@QUICK
@given(COLUMNS, st.sampled_from(range(5)))
def test_words_are_the_bytes_and_zeros_behind_them(
    texts: list[bytes], place: int
) -> None:
    padded = [text.ljust(8 * place + 8, b"\0") for text in texts]
    parts = [text[8 * place : 8 * place + 8] for text in padded]
    words = Ids.of(texts).words(place).tolist()
    assert words == [int.from_bytes(part, "little") for part in parts]


# ---- equality, order, keys ----------------------------------------------------------


@QUICK
@given(COLUMNS, st.sampled_from([1, 2]))
def test_last_words_end_where_the_ids_do(texts: list[bytes], count: int) -> None:
    ids, width = Ids.of(texts), WORD * count
    words = ids.last_words(count)
    ends = np.cumsum([len(text) for text in texts]).tolist()
    if not texts or min(ends) < width:
        assert words is None
    else:
        body = b"".join(texts)
        assert words is not None
        assert [row.tobytes() for row in words] == [body[e - width : e] for e in ends]


@QUICK
@given(
    st.lists(st.from_regex(rb"[0-9]{1,9}", fullmatch=True) | ALIKE, min_size=1),
    st.integers(0, 12),
)
def test_plain_numbers_have_the_same_keys_in_every_company(
    texts: list[bytes], room: int
) -> None:
    # Alone in a column of plain numbers, or beside an id that is none.
    among = Ids.of([b"x" * room, *texts, b"no number"]).keys()[1:-1].tolist()
    ids = Ids.of([b"1" * room, *texts]).take(np.arange(1, len(texts) + 1))
    assert ids.keys().tolist() == among
    for text, key in zip(texts, among, strict=True):
        plain = text.isdigit() and len(text) <= WORD and str(int(text)).encode() == text
        assert (key < 10**WORD) == plain
        assert not plain or key == int(text)


@QUICK
@given(st.lists(st.tuples(BYTES | ALIKE, BYTES | ALIKE), max_size=30))
def test_ids_are_equal_when_their_bytes_are(pairs: list[tuple[bytes, bytes]]) -> None:
    left, right = Ids.of(a for a, _ in pairs), Ids.of(b for _, b in pairs)
    assert left.equal(right).tolist() == [a == b for a, b in pairs]
    assert left.equal(left.take(np.arange(len(left)))).all()


@pytest.mark.parametrize("length", BORDERS[1:])
def test_one_different_byte_anywhere_makes_ids_differ(length: int) -> None:
    plain = b"x" * length
    others = [plain[:place] + b"y" + plain[place + 1 :] for place in range(length)]
    assert not Ids.of([plain] * length).equal(Ids.of(others)).any()
    mixture = Ids.of(text for other in others for text in (plain, other))
    assert len(mixture.stretches()) == 2 * length
    for salt in (0, 1):
        keys = Ids.of([plain, *others]).keys(salt)
        assert len(np.unique(keys)) == length + 1


@QUICK
@given(st.lists(st.tuples(BYTES | ALIKE, st.integers(1, 3)), max_size=20))
def test_a_stretch_begins_where_an_id_differs_from_the_one_before(
    runs: list[tuple[bytes, int]],
) -> None:
    texts = [text for text, count in runs for _ in range(count)]
    pairs = zip([None, *texts], texts, strict=False)
    expected = [place for place, (before, text) in enumerate(pairs) if text != before]
    assert Ids.of(texts).stretches().tolist() == expected


@QUICK
@given(COLUMNS)
def test_order_is_that_of_the_bytes(texts: list[bytes]) -> None:
    ids = Ids.of(texts)
    assert bytes_of(ids.take(ids.order())) == sorted(texts)


@QUICK
@given(COLUMNS, st.integers(0, 255))
def test_equal_ids_have_equal_keys_wherever_they_lie(
    texts: list[bytes], salt: int
) -> None:
    ids = Ids.of([b"in front", *texts])
    there = ids.take(np.arange(1, len(ids)))
    assert there.keys(salt).tolist() == Ids.of(texts).keys(salt).tolist()
    assert len(np.unique(there.keys(salt))) == len(set(texts))


NUMBERS = st.from_regex(r"[0-9]{1,9}", fullmatch=True).map(str.encode)
SHORT = (BYTES | ALIKE | NUMBERS).filter(lambda text: len(text) <= WORD)


@QUICK
@given(st.lists(SHORT, unique=True, max_size=30))
def test_short_ids_never_share_a_key(texts: list[bytes]) -> None:
    assert len(np.unique(Ids.of(texts).keys())) == len(texts)


@QUICK
@given(st.lists(NUMBERS | ALIKE, max_size=30))
def test_plain_numbers_alone_are_their_own_keys(texts: list[bytes]) -> None:
    for text, key in zip(texts, Ids.of(texts).keys().tolist(), strict=True):
        if text.isdigit() and len(text) <= WORD and text == b"%d" % int(text):
            assert key == int(text)
        else:
            assert key >= 2**32


@pytest.mark.parametrize(
    "pattern",
    [
        "{}",
        "doc{:08d}",
        "msmarco_passage_{:02d}_{:09d}",
        "clueweb12-{:04d}wb-{:02d}-{:05d}",
        "{:064b}",
        "{:016x}{:016x}",
        "http://example.org/{}/{}.html",
        "{:0100d}",
    ],
)
@pytest.mark.parametrize("salt", [0, 1])
def test_ids_that_count_upwards_have_keys_of_their_own(pattern: str, salt: int) -> None:
    texts = {pattern.format(i % 100, i, i * 7) for i in range(30_000)}
    texts |= {pattern.format(i, i % 100, i * 7) for i in range(30_000)}
    assert len(np.unique(Ids.of(texts).keys(salt))) == len(texts)


# ---- vocabularies and numbers, with and without collisions --------------------------

COLLISIONS = pytest.mark.parametrize(
    ("bits", "salts"),
    [
        pytest.param(64, 1, id="keys apart"),
        pytest.param(0, 1, id="one key for all"),
        pytest.param(2, 1, id="four keys"),
        pytest.param(2, 3, id="four keys under three salts"),
    ],
)


@COLLISIONS
@QUICK
@given(texts=COLUMNS, asked=COLUMNS)
def test_a_vocabulary_is_the_sorted_set_and_finds_its_members_alone(
    texts: list[bytes], asked: list[bytes], bits: int, salts: int
) -> None:
    with keys_of_bits(bits, salts):
        vocabulary = Vocabulary.of(Ids.of(texts))
        codes = vocabulary.codes(Ids.of(texts + asked)).tolist()
    members = sorted(set(texts))
    assert bytes_of(vocabulary.ids) == members
    assert len(vocabulary) == len(members)
    place = {text: code for code, text in enumerate(members)}
    assert codes == [place.get(text, -1) for text in texts + asked]


@QUICK
@given(st.lists(ALIKE, min_size=1, max_size=8), st.lists(ALIKE, min_size=1, max_size=8))
def test_a_stranger_with_a_members_key_is_no_member(
    texts: list[bytes], strangers: list[bytes]
) -> None:
    # The vocabulary is made with proper keys and asked with keys that all collide.
    with keys_of_bits(0, 256):
        members = Vocabulary.of(Ids.of(texts[:1]))
        codes = members.codes(Ids.of(strangers))
    assert codes.tolist() == [0 if s == texts[0] else -1 for s in strangers]


def test_colliding_keys_are_given_up_for_the_next_salt() -> None:
    with keys_of_bits(2, salts=3):
        assert Vocabulary.of(Ids.of(["a", "b", "c", "d", "e"])).salt == 3
