"""Run files: read as the plain reader does, or refused with the place of the fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import plain_reader as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli.errors import InputError
from falsify_cli.key_table import mixed
from falsify_cli.read import Keep, Run, read_run

# Two processes read even a file of three lines.
pytestmark = pytest.mark.usefixtures("small_work_is_shared")

QUICK = settings(derandomize=True, deadline=None, max_examples=50)
CHUNKS = pytest.mark.parametrize("chunk_bytes", [1, 9, 1 << 20])

ALL = Keep()
LINES = b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\nq2 Q0 d1 1 0.5 t\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write to; its name says nothing of what is in it."""
    return tmp_path_factory.mktemp("run") / "a.json"


def read(
    path: Path,
    data: bytes,
    keep: Keep = ALL,
    processes: int = 1,
    chunk_bytes: int = 1 << 20,
) -> Run:
    path.write_bytes(data)
    return read_run(str(path), keep, processes=processes, chunk_bytes=chunk_bytes)


def records(run: Run) -> list[plain.Record]:
    """Spell out the lines that were kept."""
    queries = [run.queries[code] for code in run.query.tolist()]
    columns = zip(queries, run.documents.to_list(), run.scores.tolist(), strict=True)
    return [plain.Record(*column) for column in columns]


def best(run: Run) -> dict[str, list[plain.Record]]:
    """The ten lines of each query that score most; no two of them score alike."""
    ordered = sorted(records(run), key=lambda record: -record.value)
    return {q: [r for r in ordered if r.query == q][:10] for q in run.queries}


def everything(run: Run) -> tuple[object, ...]:
    """All that a run holds, in a form that compares bit by bit."""
    return (
        replace(run.facts, notes=tuple(sorted(run.facts.notes))),
        dict(zip(run.queries, run.listed.tolist(), strict=True)),
        bits(records(run)),
        run.ranks.tobytes(),
        np.unique(run.document_keys).tolist(),
        run.dropped,
    )


def bits(found: list[plain.Record]) -> list[tuple[str, str, str]]:
    return [(r.query, r.document, r.value.hex()) for r in found]


# ---- the plain reader's answer ------------------------------------------------------


@QUICK
@given(
    st.sampled_from([plain.TREC_RUN, plain.RUN_WITHOUT_TAG]).flatmap(
        lambda form: st.tuples(st.just(form), plain.files(form, plain.SCORES))
    ),
    plain.CHUNKS,
    plain.PROCESSES,
)
def test_a_run_reads_as_line_by_line(
    path: Path, case: tuple[plain.Form, bytes], chunk_bytes: int, processes: int
) -> None:
    form, data = case
    run = read(path, data, chunk_bytes=chunk_bytes, processes=processes)
    expected = plain.plain_records(data, form)
    assert bits(records(run)) == bits(expected)
    listed = Counter(record.query for record in expected)
    assert dict(zip(run.queries, run.listed.tolist(), strict=True)) == listed
    assert len(np.unique(run.document_keys)) == len(
        {record.document for record in expected}
    )
    assert run.ranks.tolist() == [1.0] * len(expected)
    assert run.facts.lines == len(expected)
    assert everything(run) == everything(read(path, data))


@QUICK
@given(plain.files(plain.MS_MARCO_RUN, plain.RANKS), plain.CHUNKS)
def test_a_run_of_three_columns_scores_minus_the_rank(
    path: Path, data: bytes, chunk_bytes: int
) -> None:
    run = read(path, data, chunk_bytes=chunk_bytes)
    expected = plain.plain_records(data, plain.MS_MARCO_RUN)
    assert [(r.query, r.document, -r.value) for r in records(run)] == [
        (r.query, r.document, r.value) for r in expected
    ]


@QUICK
@given(plain.files(plain.TREC_RUN, plain.SCORES), plain.CHUNKS)
def test_one_notice_says_what_was_not_plain(
    path: Path, data: bytes, chunk_bytes: int
) -> None:
    run = read(path, data, chunk_bytes=chunk_bytes)
    lines = data.removeprefix(plain.BOM).removesuffix(b"\n").split(b"\n")
    odd = {
        "BOM": data.startswith(plain.BOM),
        "CRLF": b"\r" in data,
        "blank": any(not line.strip(b" \t\r") for line in lines),
        "comment": run.facts.lines < sum(bool(li.strip(b" \t\r")) for li in lines),
    }
    notes = ", ".join(run.facts.notes)
    assert {word: word in notes for word in odd} == odd
    assert len(run.facts.notes) == sum(odd.values())


# One of everything that is read past, so that every border falls into each of them.
ODD_FILE = (
    plain.BOM + b"# a comment\r\n\r\nquery Q0 doc rank score tag\n"
    b"q1 Q0 d1 1 2.5 my tag\r\n\t q1\tQ0  caf\xc3\xa9 2 +1.5e0 t\n# one more\n \t\n"
    b"#2 Q0 #1 1 -.5 t\nq3 Q0 " + b"long" * 20 + b" 1 0.12345678901234567 t"
)


@pytest.mark.parametrize("processes", [1, 2])
def test_chunk_borders_make_no_difference(path: Path, processes: int) -> None:
    whole = read(path, ODD_FILE)
    assert bits(records(whole)) == bits(
        [
            plain.Record("q1", "d1", 2.5),
            plain.Record("q1", "caf\xe9", 1.5),
            plain.Record("#2", "#1", -0.5),
            plain.Record("q3", "long" * 20, 0.12345678901234567),
        ]
    )
    for size in range(1, len(ODD_FILE) + 2, 1 if processes == 1 else 9):
        run = read_run(str(path), chunk_bytes=size, processes=processes)
        assert everything(run) == everything(whole), size


@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_of_many_chunks_reads_alike_in_every_number_of_processes(
    path: Path, processes: int
) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"q{q} Q0 d{d} {d + 1} {score:.6f} t\n"
        for q in rng.permutation(200).tolist()
        for d, score in enumerate(rng.normal(size=100).tolist())
    ]
    data = "".join(rows).encode()
    run = read(path, data, Keep(10), processes=processes, chunk_bytes=10_000)
    whole = read(path, data)
    assert everything(run)[3:] != everything(whole)[3:]
    assert best(run) == best(whole)
    assert run.listed.tolist() == whole.listed.tolist()
    assert np.array_equal(run.document_keys, whole.document_keys)
    kept = bits(records(run))
    assert set(kept) <= set(bits(plain.plain_records(data, plain.TREC_RUN)))
    assert run.listed.tolist() == [100] * 200
    assert len(kept) < 4000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"".join(b"q Q0 d%d 1 %d t\n" % (i, -i) for i in range(30_000)),
            id="one query of many documents",
        ),
        pytest.param(
            b"".join(b"q%d Q0 d 1 %d t\n" % (i, -i) for i in range(30_000)),
            id="many queries of one document",
        ),
        pytest.param(
            b"".join(b"q%d Q0 d%d 1 0 t\n" % (i % 100, i) for i in range(20_000)),
            id="every query scattered",
        ),
        pytest.param(
            b"".join(b"q%d Q0 %s 1 1 t\n" % (i, b"d" * 300_000) for i in range(3)),
            id="ids longer than chunks",
        ),
        pytest.param(
            b"%s Q0 d 1 1 %s\n" % (b"q" * 300_000, b"t" * 300_000),
            id="a line longer than chunks",
        ),
        pytest.param(
            b"q Q0 d 1 1 t\n" + b"\n" * 400_000 + b"q Q0 e 1 1 t\n",
            id="chunks of blank lines",
        ),
        pytest.param(
            b"# a comment\n" * 30_000 + b"q Q0 e 1 1 t\n", id="chunks of comments"
        ),
    ],
)
def test_large_shapes_read_as_line_by_line(path: Path, data: bytes) -> None:
    run = read(path, data, chunk_bytes=1 << 16)
    assert bits(records(run)) == bits(plain.plain_records(data, plain.TREC_RUN))


# ---- formats ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        pytest.param(b"q Q0 d 3 5 t\n", [], id="six columns"),
        pytest.param(b"q\tQ0\td\t3\t5\tt\n", [], id="tabs"),
        pytest.param(b"q Q0 d 3 5 t", [], id="no last line end"),
        pytest.param(b"q Q0 d 3 5 my own tag\n", [], id="a tag with blanks"),
        pytest.param(b"q Q0 d 3 5 -my .own 3rd\n", [], id="words like numbers"),
        pytest.param(b"q Q0 d 3 5\n", ["5 columns"], id="no tag"),
        pytest.param(b"q d -5\n", ["MS MARCO"], id="MS MARCO"),
        pytest.param(b"\n\nq Q0 d 3 5 t\n", ["blank"], id="blank lines first"),
        pytest.param(b"# by x\nq Q0 d 3 5 t\n", ["comment"], id="a comment first"),
        pytest.param(
            b"# top 100\nq Q0 d 3 5 t\n", ["comment"], id="a comment of three words"
        ),
        pytest.param(
            b"q Q0 d 3 5 t\n# five words follow this mark\n",
            ["comment"],
            id="a comment of as many words as columns",
        ),
        pytest.param(
            b"Query Q0 DocID Rank Score Tag\nq Q0 d 3 5 t\n", ["header"], id="header"
        ),
        pytest.param(
            "qid 0 d \xe9cart \u5f97\u5206 t\nq Q0 d 3 5 t\n".encode(),
            ["header"],
            id="a header in any script",
        ),
        pytest.param(
            b"q Q0 d 3 5 t\n".replace(b"q", b"#q"), [], id="a query like a comment"
        ),
        pytest.param(
            b"qid\titer\tdocno\trank\tsim\nq\tQ0\td\t3\t5\n",
            ["5 columns", "header"],
            id="a header over five columns",
        ),
        pytest.param(
            b"qid pid rank\nq d -5\n", ["MS MARCO", "header"], id="MS MARCO's header"
        ),
        pytest.param(
            b"\n# by x\nqid 0 doc rank score tag\nq Q0 d 3 5 t\n",
            ["header", "blank", "comment"],
            id="a header behind a blank and a comment",
        ),
        pytest.param(
            plain.BOM + b"qid 0 doc rank score tag\r\nq Q0 d 3 5 t\r\n",
            ["BOM", "header", "CRLF"],
            id="a header behind a BOM",
        ),
    ],
)
@CHUNKS
def test_every_layout_is_read_and_named(
    path: Path, data: bytes, notes: list[str], chunk_bytes: int
) -> None:
    run = read(path, data, chunk_bytes=chunk_bytes)
    query = "#q" if b"#q" in data else "q"
    assert records(run) == [plain.Record(query, "d", 5.0)]
    assert run.facts.name == str(path)
    assert len(run.facts.notes) == len(notes)
    assert all(note in ", ".join(run.facts.notes) for note in notes)


@QUICK
@given(plain.lines(plain.TREC_RUN, plain.SCORES), plain.CHUNKS)
def test_a_header_changes_nothing_but_the_notice(
    path: Path, lines: list[str], chunk_bytes: int
) -> None:
    bare = "".join(lines).encode()
    plain_run = read(path, bare)
    data = b"query-id Q0 corpus-id rank score run name\n" + bare
    run = read(path, data, chunk_bytes=chunk_bytes)
    assert everything(run)[1:] == everything(plain_run)[1:]
    assert run.facts.lines == plain_run.facts.lines
    assert {*run.facts.notes} == {*plain_run.facts.notes, "a header line"}


@pytest.mark.parametrize(
    "query",
    ["{", "{q}", "[1]", "d\x0b1", "d\x0c1", "a\x1cb", "a\x85b", "\xa0"],
)
@pytest.mark.parametrize("end", [" Q0 d 1 5 t\n", " Q0 d 1 5\n", " d -5\n"])
def test_an_id_is_any_text_without_blanks(path: Path, query: str, end: str) -> None:
    run = read(path, (query + end).encode())
    assert records(run) == [plain.Record(query, "d", 5.0)]


# ---- what is kept -------------------------------------------------------------------


@QUICK
@given(
    plain.files(
        plain.TREC_RUN, st.sampled_from(["1", "0.1", "3", "16777219", "16777220"])
    ),
    plain.CHUNKS,
    st.integers(1, 4),
)
def test_what_is_kept_holds_the_top_of_every_query(
    path: Path, data: bytes, chunk_bytes: int, depth: int
) -> None:
    run = read(path, data, Keep(depth), chunk_bytes=chunk_bytes)
    everyone = plain.plain_records(data, plain.TREC_RUN)
    kept = records(run)
    positions = [everyone.index(record) for record in kept]
    assert positions == sorted(positions)
    top, of_kept = plain.plain_lists(everyone), plain.plain_lists(kept)
    assert {q: of_kept[q][:depth] for q in top} == {q: top[q][:depth] for q in top}
    for query in top:
        # All ties with the last of the top are there, whatever their ids: also those
        # in single precision, which are counted.
        rows = [record for record in everyone if record.query == query]
        last = sorted((np.float32(row.value) for row in rows), reverse=True)[:depth][-1]
        assert {row for row in rows if np.float32(row.value) == last} <= set(kept)
    listed = Counter(record.query for record in everyone)
    assert dict(zip(run.queries, run.listed.tolist(), strict=True)) == listed
    assert len(np.unique(run.document_keys)) == len(
        {record.document for record in everyone}
    )


@pytest.mark.parametrize("keep", [Keep(drop_self=True), Keep(1, drop_self=True)])
@CHUNKS
def test_rows_that_name_their_own_query_are_dropped_and_counted(
    path: Path, keep: Keep, chunk_bytes: int
) -> None:
    data = b"q1 Q0 q1 1 9 t\nq1 Q0 d1 2 8 t\nq1 Q0 q2 3 7 t\nq2 Q0 q2 1 9 t\n"
    run = read(path, data, keep, chunk_bytes=chunk_bytes)
    assert records(run)[0] == plain.Record("q1", "d1", 8.0)
    assert len(run.documents) == (1 if keep.depth and chunk_bytes > 99 else 2)
    assert (run.dropped, int(run.listed.sum()), run.facts.lines) == (2, 2, 4)
    assert len(np.unique(run.document_keys)) == 2


# ---- what cannot be meant -----------------------------------------------------------

OVER = [*LINES.splitlines(keepends=True)]


def second(line: bytes) -> bytes:
    """A good line, this one, and two good ones."""
    return b"".join([OVER[0], line, b"\n", *OVER[1:]])


FAULTS = [
    pytest.param(
        second(b"q1 Q0 d9 2 one t\nq1 Q0 d8 3 1.5\nq1 Q0 d\0 4 1 t\nq1 Q0 d7 \xff 1 t"),
        2,
        ["one"],
        id="the first of four faults",
    ),
    pytest.param(second(b"q1 Q0 d9 2 nan t"), 2, ["nan"], id="nan"),
    pytest.param(second(b"q1 Q0 d9 2 NaN t"), 2, ["NaN"], id="NaN"),
    pytest.param(second(b"q1 Q0 d9 2 inf t"), 2, ["inf"], id="inf"),
    pytest.param(second(b"q1 Q0 d9 2 -Infinity t"), 2, ["Inf"], id="infinity"),
    pytest.param(second(b"q1 Q0 d9 2 1e999 t"), 2, ["1e999"], id="beyond doubles"),
    pytest.param(second(b"q1 Q0 d9 2 0,75 t"), 2, ["0,75"], id="a comma"),
    pytest.param(second(b"q1 Q0 d9 2 high t"), 2, ["high"], id="a word"),
    pytest.param(second(b"q1 Q0 d9 2 0x1p3 t"), 2, ["0x1p3"], id="hexadecimal"),
    pytest.param(second(b"q1 Q0 d9 2 1_0 t"), 2, ["1_0"], id="an underscore"),
    pytest.param(second("q1 Q0 d9 2 \u0663 t".encode()), 2, [], id="Arabic digits"),
    pytest.param(second(b"q1 Q0 d9 2 - t"), 2, ["number"], id="a dash"),
    pytest.param(b"q1 Q0 d1 1 nan t\n" + LINES, 1, ["nan"], id="nan on the first line"),
    pytest.param(b"q1 Q0 d1 1 2,5 t\n", 1, ["2,5"], id="a comma on the first line"),
    pytest.param(second(b"q1 Q0 d9 2 1.5"), 2, ["6", "5"], id="a tag is missing"),
    pytest.param(second(b"q1 Q0"), 2, ["6", "2"], id="two columns"),
    pytest.param(b"q1,d1,2.5\n", 1, ["got 1", "not commas"], id="commas"),
    pytest.param(
        second(b"q1 Q0 d8 2 1.5\nq1 Q0 d9 3 1.4 my tag"),
        2,
        ["6", "5"],
        id="one column too few, then one too many",
    ),
    pytest.param(second(b"q1 Q0  2 1.5 t"), 2, ["6", "5"], id="an empty document"),
    pytest.param(second(b" Q0 d9 2 1.5 t"), 2, ["6", "5"], id="an empty query"),
    pytest.param(second(b"q1\tQ0\td9\t2\t1.5\t"), 2, ["6", "5"], id="an empty tag"),
    pytest.param(LINES + b"q2 Q0 d3 2", 4, ["6", "4"], id="cut off"),
    pytest.param(LINES + b"q", 4, ["6", "1"], id="cut off early"),
    pytest.param(second(b"q1 Q0 a doc 2 1.5 t"), 2, ["blank"], id="a blank in an id"),
    pytest.param(b"q1 Q0 a doc 2 1.5 t\n", 1, ["blank"], id="a blank in the first id"),
    pytest.param(second(b"q1 Q0 vol 7 2 1.5 t"), 2, ["blank"], id="and a number"),
    pytest.param(
        second(b"q1 Q0 art of 9 lives 2 1.5 t"), 2, ["blank"], id="three blanks"
    ),
    pytest.param(
        second(b"q1 Q0 a doc 2 1.5 t").replace(b" t\n", b"\n"), 2, [], id="and no tag"
    ),
    pytest.param(
        second("q1\xa0Q0 d9 2 1.5 t t".encode()), 2, [], id="a no-break space in front"
    ),
    pytest.param(
        second("q1 Q0 d9 2 1.5\xa0t t".encode()), 2, ["1.5"], id="a no-break space"
    ),
    pytest.param(second(b"q1 Q0 d1 2 1.5 t"), 2, ["line 1", "d1"], id="listed twice"),
    pytest.param(second(OVER[0][:-1]), 2, ["line 1"], id="a line twice"),
    pytest.param(
        b"# x\n\n" + LINES + b"\nq1 Q0 d3 1 0 t\nq1 Q0 d2 9 -1 t\n",
        8,
        ["line 4", "d2"],
        id="listed twice, far apart",
    ),
    pytest.param(second(b"q1 Q0 d\0 2 1.5 t"), 2, ["NUL"], id="a NUL byte"),
    pytest.param(LINES + b"\0\0\0\0", 4, ["NUL"], id="NUL bytes at the end"),
    pytest.param(b"\0" + LINES, 1, [], id="a NUL byte first"),
    pytest.param(second(b"q1 Q0 d\xe9 2 1.5 t"), 2, ["UTF-8", "e9"], id="Latin-1"),
    pytest.param(b"q\xe9 Q0 d 2 1.5 t\n", 1, ["UTF-8"], id="Latin-1 on the first line"),
    pytest.param(second(b"q1 Q0 \xc3 2 1.5 t"), 2, ["UTF-8"], id="half a letter"),
    pytest.param(second(b"# caf\xe9"), 2, ["UTF-8"], id="Latin-1 in a comment"),
    pytest.param(b"# caf\xe9\n" + LINES, 1, ["UTF-8"], id="in the first comment"),
    pytest.param(
        b"qid 0 doc rank score caf\xe9\n" + LINES, 1, ["UTF-8"], id="in the header"
    ),
    pytest.param(
        b"# \0\nqid 0 doc rank score tag\n" + LINES, 1, ["NUL"], id="above the header"
    ),
    pytest.param(
        b"qid\r 0 doc rank score tag\n" + LINES, 1, ["return"], id="CR in the header"
    ),
    pytest.param(second(b"q1 Q0 d9\r2 1.5 t"), 2, ["return"], id="CR inside a line"),
    pytest.param(LINES.replace(b"\n", b"\r"), 1, ["return"], id="CR for line ends"),
    pytest.param(
        second(b"qid 0 doc rank score tag"), 2, ["score"], id="a header further down"
    ),
    pytest.param(
        b"q1 Q0 d0 one high t\n" + LINES, 1, ["high"], id="a header of a known query"
    ),
    pytest.param(
        b"q1 Q0 d0 one high\n" + LINES.replace(b" t\n", b"\n"),
        1,
        ["high"],
        id="the same without tags",
    ),
    pytest.param(
        b"q1 d0 high\nq2 d1 1\nq1 d1 1\n", 1, ["high"], id="the same of MS MARCO"
    ),
    pytest.param(
        b"qid 0 doc rank score tag\n" * 2 + LINES, 2, ["score"], id="two headers"
    ),
    pytest.param(
        b"#q Q0 d 1 5 t\nqid 0 doc rank score tag\n" + LINES,
        2,
        ["score"],
        id="a header behind a record like a comment",
    ),
    pytest.param(b"q1 Q0 d0 1 high t\n" + LINES, 1, ["high"], id="a score alone"),
    pytest.param(b"q1 0 d1 1\nq1 0 d2 0\n", 1, ["swapped"], id="qrels"),
    pytest.param(b"q1 d1\n", 1, ["2"], id="two columns throughout"),
    pytest.param(b"q1\n", 1, ["1"], id="one column throughout"),
    pytest.param(b"q1 d1 1 1.5 t\n", 1, ["'t'"], id="Q0 is missing"),
    pytest.param(b"", None, ["empty"], id="an empty file"),
    pytest.param(b"\n \n\r\n", None, ["empty"], id="blank lines alone"),
    pytest.param(b"# a comment\n", None, ["empty"], id="comments alone"),
    pytest.param(plain.BOM, None, ["empty"], id="a BOM alone"),
    pytest.param(b"qid 0 doc rank score tag\n", None, ["empty"], id="a header alone"),
    pytest.param(
        LINES.decode().encode("utf-16"), None, ["UTF-16"], id="UTF-16 with a mark"
    ),
    pytest.param(LINES.decode().encode("utf-16-le"), None, ["UTF-16"], id="UTF-16 LE"),
    pytest.param(LINES.decode().encode("utf-16-be"), 1, [], id="UTF-16 BE"),
]


@pytest.mark.parametrize(("data", "line", "fragments"), FAULTS)
@CHUNKS
def test_a_fault_is_refused_with_its_place(
    path: Path, data: bytes, line: int | None, fragments: list[str], chunk_bytes: int
) -> None:
    with pytest.raises(InputError) as caught:
        read(path, data, chunk_bytes=chunk_bytes)
    message = str(caught.value)
    place = f"{path}: " if line is None else f"{path}:{line}: "
    assert message.startswith(place)
    assert "\n" not in message
    assert all(fragment in message[len(place) :] for fragment in fragments)


@QUICK
@given(
    plain.lines(plain.TREC_RUN, plain.SCORES),
    st.integers(0, 30),
    st.sampled_from(
        [
            "x Q0 y 1 nan t\n",
            "x Q0 y 1\n",
            "x Q0 y z 1 0.5 t\n",
            "x Q0 \0 1 0.5 t\n",
            "x Q0 y 1 0.5\rt\n",
        ]
    ),
    plain.CHUNKS,
    plain.PROCESSES,
)
def test_line_numbers_are_the_files_own(
    path: Path,
    lines: list[str],
    place: int,
    fault: str,
    chunk_bytes: int,
    processes: int,
) -> None:
    place = min(place, len(lines))
    data = "".join([*lines[:place], fault, *lines[place:]]).encode()
    with pytest.raises(InputError) as caught:
        read(path, data, chunk_bytes=chunk_bytes, processes=processes)
    assert str(caught.value).startswith(f"{path}:{place + 1}: ")


@QUICK
@given(
    plain.lines(plain.TREC_RUN, plain.SCORES),
    st.integers(0, 11),
    st.integers(0, 30),
    plain.CHUNKS,
    st.sampled_from([Keep(), Keep(1), Keep(2)]),
)
def test_a_document_listed_twice_is_refused_with_both_lines(
    path: Path, lines: list[str], of: int, later: int, chunk_bytes: int, keep: Keep
) -> None:
    numbered = [
        (number, record)
        for number, line in enumerate(lines, 1)
        for record in plain.plain_records(line.encode(), plain.TREC_RUN)
    ]
    first, record = numbered[of % len(numbered)]
    second = min(first + later, len(lines)) + 1
    again = f"{record.query} Q0 {record.document} 1 -1e300 t\n"
    data = "".join([*lines[: second - 1], again, *lines[second - 1 :]]).encode()
    with pytest.raises(InputError, match=rf":{second}: .*line {first} ") as caught:
        read(path, data, keep, chunk_bytes=chunk_bytes)
    assert str(caught.value).startswith(f"{path}:{second}: ")


@pytest.mark.parametrize("chunk_bytes", [50, 1 << 20])
def test_a_repetition_among_thousands_of_lines_is_found(
    path: Path, chunk_bytes: int
) -> None:
    lines = [b"q%d Q0 d%d 1 %d t\n" % (i // 500, i, -i) for i in range(1_500)]
    lines[1_400] = b"q2 Q0 d1003 1 -5000 t\n"
    with pytest.raises(InputError, match=r":1401: .*line 1004 again.*q2 Q0 d1003"):
        read(path, b"".join(lines), Keep(1), chunk_bytes=chunk_bytes)


def test_a_repetition_far_away_in_a_scattered_file_is_found(path: Path) -> None:
    # More lines than are searched for repetitions at once.
    lines = [b"q%d Q0 d%d 1 %d t\n" % (i % 300, i, -i) for i in range(70_000)]
    lines.append(b"q7 Q0 d307 1 -1e9 t\n")
    with pytest.raises(InputError, match=r":70001: .*line 308 again"):
        read(path, b"".join(lines), Keep(1))


def test_lines_whose_query_and_document_hash_alike_are_no_repetition(
    path: Path,
) -> None:
    # The n-th query is mixed into its documents' keys; a short id is its own key, so
    # that two ids can be made for which the results are one.
    first = int(mixed(np.array([1], np.uint64))[0])
    others = mixed(np.arange(2, 5_000, dtype=np.uint64)).tolist()
    number, change = next(
        (number, (first ^ other).to_bytes(8, "little"))
        for number, other in enumerate(others, 1)
        if not (first ^ other) & 0x8080808080808080
    )
    letters = [next(a for a in range(33, 127) if 32 < a ^ c < 127) for c in change]
    documents = [b"d"] * (number + 1)
    documents[0] = bytes(letters)
    documents[number] = bytes(a ^ c for a, c in zip(letters, change, strict=True))
    lines = [b"%d Q0 %s 1 1 t\n" % (1 + i, d) for i, d in enumerate(documents)]
    assert len(read(path, b"".join(lines)).documents) == number + 1


def test_dropped_rows_keep_their_place_in_the_count_of_lines(path: Path) -> None:
    data = b"q1 Q0 q1 1 9 t\nq1 Q0 d1 2 8 t\nq1 Q0 d2 3 7 t\nq1 Q0 d1 4 6 t\n"
    for above, line in ((b"", 4), (b"# x\n", 5)):
        with pytest.raises(InputError, match=rf":{line}: .*line {line - 2} again"):
            read(path, above + data, Keep(drop_self=True))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: cannot be opened: No such file"):
        read_run(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"cannot be opened: .*directory"):
        read_run(str(tmp_path))


@pytest.mark.parametrize("length", [1, 4, 7])
@pytest.mark.parametrize("again", [None, 0, 11])
def test_a_repetition_is_found_among_lists_of_equal_length(
    path: Path, length: int, again: int | None
) -> None:
    # Documents of neighbouring lists are the same, which is no repetition.
    rows = [(q, f"{10 + d}") for q in range(12) for d in range(length)]
    if again is not None and length > 1:
        rows[again * length + 1] = rows[again * length]
    lines = [f"q{q} Q0 {d} 1 {-i} t\n" for i, (q, d) in enumerate(rows)]
    if again is None or length == 1:
        assert len(read(path, "".join(lines).encode()).documents) == 12 * length
        return
    with pytest.raises(InputError, match=rf":{again * length + 2}: .* again"):
        read(path, "".join(lines).encode())
