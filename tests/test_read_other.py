"""JSON, mappings, packed files, pipes, corpus and group files, and mutated files."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import fuzz
import numpy as np
import plain_reader as plain
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from test_read_qrels import grades
from test_read_run import everything, records

from falsify_cli.errors import InputError
from falsify_cli.read import (
    Keep,
    qrels_of_mapping,
    read_corpus,
    read_groups,
    read_qrels,
    read_run,
    run_of_mapping,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=40)

RUN = b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\nq2 Q0 d1 1 0.5 t\n"
RECORDS = plain.plain_records(RUN, plain.TREC_RUN)

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}
PACKED = pytest.mark.parametrize("packer", PACKERS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write to; its name says nothing of what is in it."""
    return tmp_path_factory.mktemp("other") / "file.txt"


# ---- JSON and mappings --------------------------------------------------------------

JSON_IDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = FINITE | st.integers(-(2**53), 2**53)
WHOLE = st.integers(-5, 5) | st.sampled_from([1.0, -0.0, 2147483647])


def mappings(
    values: st.SearchStrategy[float],
) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    row = st.dictionaries(JSON_IDS, values, max_size=5)
    return st.dictionaries(JSON_IDS, row, min_size=1, max_size=4).filter(
        lambda mapping: any(mapping.values())
    )


LOOKS = st.sampled_from(
    [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)


@QUICK
@given(mappings(NUMBERS), LOOKS, st.sampled_from([b"", plain.BOM]), plain.CHUNKS)
def test_a_run_in_json_is_the_mapping(
    path: Path,
    mapping: dict[str, dict[str, float]],
    look: dict[str, Any],
    mark: bytes,
    chunk_bytes: int,
) -> None:
    path.write_bytes(mark + json.dumps(mapping, **look).encode())
    run = read_run(str(path), chunk_bytes=chunk_bytes)
    expected = [
        plain.Record(query, document, float(value))
        for query, row in mapping.items()
        for document, value in row.items()
    ]
    assert records(run) == expected
    listed = dict(zip(run.queries, run.listed.tolist(), strict=True))
    assert listed == {query: len(row) for query, row in mapping.items() if row}
    assert len(np.unique(run.document_keys)) == len(
        {record.document for record in expected}
    )
    assert run.facts.lines == len(expected)
    assert np.isnan(run.ranks).all()
    assert "JSON" in run.facts.notes
    assert everything(run)[1:] == everything(run_of_mapping(mapping))[1:]


@QUICK
@given(mappings(WHOLE), LOOKS, plain.CHUNKS)
def test_qrels_in_json_are_the_mapping(
    path: Path,
    mapping: dict[str, dict[str, float]],
    look: dict[str, Any],
    chunk_bytes: int,
) -> None:
    path.write_bytes(json.dumps(mapping, **look).encode())
    qrels = read_qrels(str(path), chunk_bytes=chunk_bytes)
    assert grades(qrels) == mapping == grades(qrels_of_mapping(mapping))
    assert [q.encode() for q in qrels.queries] == sorted(q.encode() for q in mapping)
    assert qrels.facts.notes == ("JSON",)


@QUICK
@given(mappings(st.sampled_from([0.5, 1.0, 2.0])), st.integers(1, 3))
def test_the_top_of_a_mapping_is_the_top_of_its_lines(
    mapping: dict[str, dict[str, float]], depth: int
) -> None:
    kept = plain.plain_lists(records(run_of_mapping(mapping, Keep(depth))))
    whole = plain.plain_lists(records(run_of_mapping(mapping)))
    assert {q: names[:depth] for q, names in kept.items()} == {
        q: names[:depth] for q, names in whole.items()
    }


def test_a_mapping_drops_rows_that_name_their_own_query() -> None:
    mapping = {"q1": {"q1": 3.0, "d": 2.0, "q2": 1.0}, "q2": {"q2": 1.0}}
    run = run_of_mapping(mapping, Keep(drop_self=True))
    assert [(r.query, r.document) for r in records(run)] == [("q1", "d"), ("q1", "q2")]
    assert (run.dropped, run.listed.tolist(), run.facts.lines) == (2, [2], 4)


@pytest.mark.parametrize(
    "value", [2, 2.0, True, np.float32(2), np.int64(2), np.True_, Fraction(4, 2)]
)
def test_a_mapping_takes_any_real_number(value: Any) -> None:
    assert records(run_of_mapping({"q": {"d": value}}))[0].value == float(value)
    assert grades(qrels_of_mapping({"q": {"d": value}})) == {"q": {"d": int(value)}}


NO_NUMBERS: list[Any] = ["2", None, [1], b"2", 2j, float("nan"), float("inf"), 10**400]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:9])
def test_a_mapping_takes_nothing_but_finite_numbers(value: Any) -> None:
    with pytest.raises(InputError, match=r"^run: "):
        run_of_mapping({"q": {"e": 1.0, "d": value}})
    with pytest.raises(InputError, match=r"^qrels: "):
        qrels_of_mapping({"q": {"e": 1.0, "d": value}})


@pytest.mark.parametrize("value", [0.5, -1.5, 2.0**31, -(2.0**31), 1e300, 2**40])
def test_a_mappings_grades_are_whole_numbers_of_31_bits(value: float) -> None:
    with pytest.raises(InputError, match=r"^qrels: .*whole"):
        qrels_of_mapping({"q": {"e": 1, "d": value}})


NO_MAPPINGS: list[Any] = [
    {"q": 1.0},
    {"q": [("d", 1.0)]},
    {1: {"d": 1.0}},
    {"q": {1: 1.0}},
    {b"q": {"d": 1.0}},
    {"q\0": {"d": 1.0}},
    {"q": {"d\0": 1.0}},
    {"\ud800": {"d": 1.0}},
    {"q": {"\udfff": 1.0}},
    {},
    {"q": {}},
]


@pytest.mark.parametrize("mapping", NO_MAPPINGS, ids=repr)
@pytest.mark.parametrize("take", [run_of_mapping, qrels_of_mapping])
def test_no_mapping_of_mappings_of_numbers_is_refused(
    take: Callable[[Mapping[str, Any]], object], mapping: Any
) -> None:
    with pytest.raises(InputError, match=r"^(run|qrels): "):
        take(mapping)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        pytest.param('{"q": {"d": NaN}}', "nan", id="NaN"),
        pytest.param('{"q": {"d": -Infinity}}', "inf", id="Infinity"),
        pytest.param('{"q": {"d": 1e999}}', "inf", id="beyond doubles"),
        pytest.param('{"q": {"d": 1%s}}' % ("0" * 400), "", id="a long integer"),
        pytest.param('{"q": {"d": 1%s}}' % ("0" * 9999), "", id="a longer integer"),
        pytest.param('{"q": {"d": "1"}}', "'1'", id="a number in quotes"),
        pytest.param('{"q": {"d": null}}', "None", id="null"),
        pytest.param('{"q": {"d": {"e": 1}}}', "number", id="one level too many"),
        pytest.param('{"q": 1}', "int", id="one level too few"),
        pytest.param('{"q": ["d"]}', "list", id="a list of documents"),
        pytest.param("{}", "empty", id="no query"),
        pytest.param('{"q": {}}', "empty", id="no document"),
        pytest.param('{"q": {"d": 1, "e": 2, "d": 1}}', "'d'", id="a document twice"),
        pytest.param('{"q": {"d": 1}, "q": {"e": 1}}', "'q'", id="a query twice"),
        pytest.param('{"q": {"d": 1}}\n{"r": {"d": 1}}', ":2: ", id="JSON lines"),
        pytest.param('{"q": {"d": 1}', ":1: ", id="cut off"),
        pytest.param('\n{"q":\n{"d": 1,}}', ":3: ", id="a comma too many"),
        pytest.param('{"q": {"d": 1_0}}', ":1: ", id="an underscore"),
        pytest.param('{"q": {"d": 0x1}}', ":1: ", id="hexadecimal"),
        pytest.param('{"q": {"\\ud800": 1}}', "text", id="half a surrogate pair"),
        pytest.param('{"q": {"d\\u0000": 1}}', "NUL", id="a NUL character"),
        pytest.param('{"q":' * 100_000, "", id="nested deeply"),
        pytest.param('{"q": {"d": 1}}\0', "", id="a NUL byte behind it"),
    ],
)
@pytest.mark.parametrize("reader", [read_run, read_qrels])
def test_faulty_json_is_refused(
    path: Path, reader: Callable[[str], object], text: str, fragment: str
) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        reader(str(path))
    assert str(caught.value).startswith(f"{path}:")
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-16-be"])
def test_json_is_utf8(path: Path, encoding: str) -> None:
    path.write_bytes('{"q": {"d\xe9": 1.0}}\n'.encode(encoding))
    with pytest.raises(InputError, match=r"UTF-|NUL"):
        read_run(str(path))


def test_half_grades_in_json_are_refused(path: Path) -> None:
    path.write_bytes(b'{"q": {"d": 0.5}}')
    with pytest.raises(InputError, match=r"whole numbers as grades, found 0\.5"):
        read_qrels(str(path))


def test_a_repeated_key_is_found_in_linear_time(path: Path) -> None:
    rows = ", ".join(f'"d{i}": 1' for i in [*range(20_000), 19_999])
    path.write_text(f'{{"q": {{{rows}}}}}')
    start = time.process_time()
    with pytest.raises(InputError, match="'d19999' twice"):
        read_run(str(path))
    assert time.process_time() - start < 1


# ---- compressed files ---------------------------------------------------------------


@PACKED
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_compressed_files_are_known_by_their_first_bytes(
    path: Path, packer: str, chunk_bytes: int
) -> None:
    path.write_bytes(RUN)
    plain_run = read_run(str(path))
    path.write_bytes(PACKERS[packer](RUN))
    run = read_run(str(path), chunk_bytes=chunk_bytes)
    assert everything(run)[1:] == everything(plain_run)[1:]
    assert run.facts.notes == (packer,)


@PACKED
def test_a_compressed_file_is_looked_into_like_a_plain_one(
    path: Path, packer: str
) -> None:
    path.write_bytes(PACKERS[packer](plain.BOM + b"\r\nq1\td1\t1\r\n"))
    qrels = read_qrels(str(path))
    assert grades(qrels) == {"q1": {"d1": 1}}
    notes = ", ".join(qrels.facts.notes)
    assert all(w in notes for w in (packer, "BOM", "CRLF", "blank", "BEIR"))
    path.write_bytes(PACKERS[packer](b'{"q": {"d": 1}}'))
    assert grades(read_qrels(str(path))) == {"q": {"d": 1}}


@PACKED
@pytest.mark.parametrize("size", [1, 16])
def test_parts_that_were_packed_one_by_one_are_read_as_one(
    path: Path, packer: str, size: int
) -> None:
    parts = [RUN[i : i + size] for i in range(0, len(RUN), size)]
    path.write_bytes(b"".join(map(PACKERS[packer], parts)))
    assert records(read_run(str(path))) == RECORDS


@PACKED
def test_a_compressed_file_that_was_cut_off_is_refused(path: Path, packer: str) -> None:
    # Without tags a line that loses digits would pass as one with another score.
    packed = PACKERS[packer](b"q1 Q0 d1 1 2.55555\nq1 Q0 d2 2 1.5\n")
    for size in range(len(packed)):
        path.write_bytes(packed[:size])
        with pytest.raises(InputError):
            read_run(str(path))


@PACKED
def test_a_cut_where_a_line_ends_is_seen_as_well(path: Path, packer: str) -> None:
    # Lines of 16 bytes, so that the blocks of 128 KB of zstd end where a line does.
    documents = np.random.default_rng(1).integers(0, 10**4, 20_000).tolist()
    lines = [b"q%06d d%04d 1\n" % pair for pair in enumerate(documents)]
    packed = PACKERS[packer](b"".join(lines))
    for size in np.linspace(10, len(packed) - 1, 15).astype(int).tolist():
        path.write_bytes(packed[:size])
        with pytest.raises(InputError):
            read_run(str(path))


@PACKED
def test_what_stands_behind_a_compressed_stream_is_not_lost_silently(
    path: Path, packer: str
) -> None:
    second = bytearray(PACKERS[packer](b"q3 Q0 d1 1 0.5 t\n"))
    second[1] ^= 1
    path.write_bytes(PACKERS[packer](RUN) + second)
    with pytest.raises(InputError, match="cannot be read"):
        read_run(str(path))


@pytest.mark.parametrize("packer", ["gzip", "xz"])
def test_one_flipped_bit_is_seen_or_makes_no_difference(
    path: Path, packer: str
) -> None:
    # zstd without a checksum, as most write it, cannot see them all.
    packed = PACKERS[packer](RUN)
    for place in range(len(packed)):
        for bit in (0, 3, 7):
            damaged = bytearray(packed)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                found = records(read_run(str(path)))
            except InputError:
                continue
            assert found == RECORDS, (place, bit)


def test_other_archives_are_refused(path: Path) -> None:
    path.write_bytes(bz2.compress(RUN))
    with pytest.raises(InputError):
        read_run(str(path))


def test_zstd_without_its_module_is_refused_with_the_remedy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(PACKERS["zstd"](RUN))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(InputError, match=r"zstd.*pip install"):
        read_run(str(path))


@pytest.mark.parametrize("packer", ["", *PACKERS])
def test_the_hash_is_that_of_the_stored_bytes(path: Path, packer: str) -> None:
    stored = PACKERS[packer](RUN) if packer else RUN
    path.write_bytes(stored)
    run = read_run(str(path), digest=True, chunk_bytes=7)
    assert run.facts.sha256 == hashlib.sha256(stored).hexdigest()
    path.write_bytes(b'{"q": {"d": 1}}')
    digest = read_qrels(str(path), digest=True).facts.sha256
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_qrels(str(path)).facts.sha256 is None


# ---- pipes --------------------------------------------------------------------------


@contextmanager
def written(target: str | int, pieces: list[bytes], pause: float = 0) -> Iterator[None]:
    """Write these pieces to a pipe, one call each, from another thread."""

    def work() -> None:
        handle = os.open(target, os.O_WRONLY) if isinstance(target, str) else target
        try:
            for piece in pieces:
                os.write(handle, piece)
                time.sleep(pause)
        finally:
            os.close(handle)

    writer = threading.Thread(target=work)
    writer.start()
    yield
    writer.join(10)
    assert not writer.is_alive()


@pytest.mark.parametrize("packer", ["", *PACKERS])
@pytest.mark.parametrize("size", [1, 5, 1 << 16])
def test_a_pipe_is_read_however_its_bytes_come(
    tmp_path: Path, packer: str, size: int
) -> None:
    name = str(tmp_path / "pipe")
    os.mkfifo(name)
    stored = PACKERS[packer](RUN) if packer else RUN
    pieces = [stored[i : i + size] for i in range(0, len(stored), size)]
    with written(name, pieces, pause=0.001):
        run = read_run(name, digest=True)
    assert records(run) == RECORDS
    assert run.facts.sha256 == hashlib.sha256(stored).hexdigest()


def test_a_long_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    name = str(tmp_path / "pipe")
    os.mkfifo(name)
    lines = b"".join(b"q%d Q0 d 1 1 t\n" % i for i in range(20_000))
    with written(name, [gzip.compress(lines)]):
        assert len(read_run(name, processes=2, chunk_bytes=5_000).queries) == 20_000


def test_a_repetition_in_a_pipe_is_refused_without_reading_it_again(
    tmp_path: Path,
) -> None:
    name = str(tmp_path / "pipe")
    os.mkfifo(name)
    with (
        written(name, [RUN, b"q1 Q0 d2 3 0.5 t\n"]),
        pytest.raises(InputError, match=r"pipe:4: .*line 2 again$"),
    ):
        read_run(name)


@pytest.mark.parametrize("packer", ["", "gzip"])
def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, packer: str) -> None:
    reading, writing = os.pipe()
    stored = PACKERS[packer](RUN) if packer else RUN
    with open(reading) as stream, written(writing, [stored]):
        monkeypatch.setattr(sys, "stdin", stream)
        run = read_run("-")
        assert not stream.closed
    assert records(run) == RECORDS
    assert run.facts.name == "-"


def test_faults_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading) as stream, written(writing, [b"q 0 d 1\nq 0 d x\n"]):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(InputError, match=r"^-:2: .*'x'"):
            read_qrels("-")


# ---- corpus and group files ---------------------------------------------------------


@QUICK
@given(st.lists(plain.IDS, min_size=1), plain.CHUNKS, st.sampled_from(["\n", "\r\n\n"]))
def test_a_corpus_is_the_set_of_its_lines(
    path: Path, names: list[str], chunk_bytes: int, end: str
) -> None:
    path.write_bytes(end.join(names).encode())
    vocabulary = read_corpus(str(path), chunk_bytes)
    assert [n.encode() for n in vocabulary.ids.to_list()] == sorted(
        {n.encode() for n in names}
    )


@QUICK
@given(st.dictionaries(plain.IDS, plain.IDS, min_size=1), plain.CHUNKS)
def test_groups_are_the_pairs_of_their_lines(
    path: Path, groups: dict[str, str], chunk_bytes: int
) -> None:
    lines = [f"{query} \t{group}\r\n" for query, group in groups.items()]
    path.write_bytes("".join([*lines, "\n", lines[0]]).encode())
    assert read_groups(str(path), chunk_bytes) == groups


@pytest.mark.parametrize(
    ("reader", "data", "place", "fragment"),
    [
        pytest.param(read_corpus, b"d1\nd2 d3\n", ":2", "2 fields", id="two ids"),
        pytest.param(read_corpus, b"", "", "empty", id="no corpus"),
        pytest.param(read_corpus, b"\n \n", "", "empty", id="blank corpus"),
        pytest.param(read_corpus, b"d1\n\nd\xe9\n", ":3", "UTF-8", id="Latin-1"),
        pytest.param(read_corpus, b"d1\nd\0\n", ":2", "UTF-8", id="NUL"),
        pytest.param(read_corpus, "d1".encode("utf-16"), "", "UTF-16", id="UTF-16"),
        pytest.param(read_groups, b"q1 a\nq2\n", ":2", "1 field", id="no group"),
        pytest.param(read_groups, b"q1 a b\n", ":1", "3 fields", id="two groups"),
        pytest.param(read_groups, b"q1 a\nq2 a\nq1 b\n", ":3", "'a'", id="moved"),
        pytest.param(read_groups, b"", "", "empty", id="no groups"),
        pytest.param(read_groups, b"q\xff a\n", ":1", "UTF-8", id="no UTF-8"),
    ],
)
def test_faulty_side_files_are_refused_with_their_place(
    path: Path,
    reader: Callable[[str, int], object],
    data: bytes,
    place: str,
    fragment: str,
) -> None:
    path.write_bytes(data)
    for chunk_bytes in (1, 1 << 20):
        with pytest.raises(InputError) as caught:
            reader(str(path), chunk_bytes)
        assert str(caught.value).startswith(f"{path}{place}: ")
        assert fragment in str(caught.value)


@PACKED
def test_side_files_may_be_compressed(path: Path, packer: str) -> None:
    path.write_bytes(PACKERS[packer](plain.BOM + b"d2\nd1\nd2\n"))
    assert read_corpus(str(path)).ids.to_list() == ["d1", "d2"]
    path.write_bytes(PACKERS[packer](plain.BOM + b"q1 a\nq2 a\n"))
    assert read_groups(str(path)) == {"q1": "a", "q2": "a"}


# ---- mutated files ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    for case in range(30):
        fuzz.check(tmp_path, [seed, case])
