"""Qrels files: read as the plain reader does, or refused with the fault's place."""

from __future__ import annotations

from pathlib import Path

import plain_reader as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli.errors import InputError
from falsify_cli.read import Qrels, read_qrels

# Two processes read even a file of three lines.
pytestmark = pytest.mark.usefixtures("small_work_is_shared")

QUICK = settings(derandomize=True, deadline=None, max_examples=50)
CHUNKS = pytest.mark.parametrize("chunk_bytes", [1, 9, 1 << 20])

LINES = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write to; its name says nothing of what is in it."""
    return tmp_path_factory.mktemp("qrels") / "qrels.gz"


def read(
    path: Path, data: bytes, processes: int = 1, chunk_bytes: int = 1 << 20
) -> Qrels:
    path.write_bytes(data)
    return read_qrels(str(path), processes=processes, chunk_bytes=chunk_bytes)


def grades(qrels: Qrels) -> dict[str, dict[str, int]]:
    """Spell out the judgments."""
    found: dict[str, dict[str, int]] = {query: {} for query in qrels.queries}
    columns = (qrels.query.tolist(), qrels.document.tolist(), qrels.grade.tolist())
    for query, document, grade in zip(*columns, strict=True):
        assert qrels.vocabulary.ids[document] not in found[qrels.queries[query]]
        found[qrels.queries[query]][qrels.vocabulary.ids[document]] = grade
    return found


def expected_grades(records: list[plain.Record]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for record in records:
        found.setdefault(record.query, {})[record.document] = record.value
    return found


def is_sorted_by_bytes(qrels: Qrels) -> bool:
    """Whether queries, documents and judgments stand in the order of their bytes."""
    queries = [query.encode() for query in qrels.queries]
    documents = [name.encode() for name in qrels.vocabulary.ids.to_list()]
    pairs = list(zip(qrels.query.tolist(), qrels.document.tolist(), strict=True))
    return all(names == sorted(set(names)) for names in (queries, documents)) and (
        pairs == sorted(pairs)
    )


# ---- the plain reader's answer ------------------------------------------------------

FORMS = st.sampled_from([plain.TREC_QRELS, plain.BEIR_QRELS])


@QUICK
@given(
    FORMS.flatmap(
        lambda form: st.tuples(st.just(form), plain.files(form, plain.GRADES))
    ),
    plain.CHUNKS,
    plain.PROCESSES,
)
def test_qrels_read_as_line_by_line(
    path: Path, case: tuple[plain.Form, bytes], chunk_bytes: int, processes: int
) -> None:
    form, data = case
    qrels = read(path, data, chunk_bytes=chunk_bytes, processes=processes)
    records = plain.plain_records(data, form)
    assert grades(qrels) == expected_grades(records)
    assert is_sorted_by_bytes(qrels)
    assert (qrels.facts.lines, qrels.repeated) == (len(records), 0)
    words = ["CRLF", "blank", "comment", "BOM"]
    notes = [word for word in words if word in ", ".join(qrels.facts.notes)]
    assert ("CRLF" in notes) == (b"\r" in data)
    assert ("BOM" in notes) == data.startswith(plain.BOM)
    assert len(qrels.facts.notes) == len(notes) + (form is plain.BEIR_QRELS)


@QUICK
@given(plain.lines(plain.TREC_QRELS, plain.GRADES))
def test_the_order_of_lines_changes_nothing(path: Path, lines: list[str]) -> None:
    ahead = grades(read(path, "".join(lines).encode()))
    back = grades(read(path, "".join(reversed(lines)).encode()))
    assert list(ahead.items()) == list(back.items())
    assert [*map(list, ahead.values())] == [*map(list, back.values())]


@QUICK
@given(
    plain.lines(plain.TREC_QRELS, plain.GRADES),
    st.integers(0, 11),
    st.integers(0, 30),
    st.sampled_from(["same", "other"]),
    plain.CHUNKS,
)
def test_a_judgment_may_stand_twice_but_not_with_two_grades(
    path: Path, lines: list[str], of: int, later: int, what: str, chunk_bytes: int
) -> None:
    numbered = [
        (number, record)
        for number, line in enumerate(lines, 1)
        for record in plain.plain_records(line.encode(), plain.TREC_QRELS)
    ]
    first, record = numbered[of % len(numbered)]
    second = min(first + later, len(lines)) + 1
    grade = int(record.value) if what == "same" else int(record.value) - 1
    again = f"{record.query} 0 {record.document} {grade}\n"
    data = "".join([*lines[: second - 1], again, *lines[second - 1 :]]).encode()
    if what == "same":
        qrels = read(path, data, chunk_bytes=chunk_bytes)
        assert grades(qrels) == expected_grades([r for _, r in numbered])
        assert (qrels.repeated, qrels.facts.lines) == (1, len(numbered) + 1)
        return
    with pytest.raises(InputError) as caught:
        read(path, data, chunk_bytes=chunk_bytes)
    assert str(caught.value).startswith(f"{path}:{second}: ")
    assert f"line {first};" in str(caught.value)


# One of everything that is read past, so that every border falls into each of them.
ODD_FILE = (
    plain.BOM + b"\r\n# a comment\nquery-id 0 corpus-id score\r\n"
    b"q2 0 d1 1.0\r\n\t q1\t0  caf\xc3\xa9 +2\n# one more\n \t\n"
    b"#2 0 #1 -1\nq2 0 d1 1\nq1 0 " + b"long" * 20 + b" 1e1"
)


@pytest.mark.parametrize("processes", [1, 2])
def test_chunk_borders_make_no_difference(path: Path, processes: int) -> None:
    path.write_bytes(ODD_FILE)
    for size in range(1, len(ODD_FILE) + 2, 1 if processes == 1 else 9):
        qrels = read_qrels(str(path), chunk_bytes=size, processes=processes)
        assert grades(qrels) == {
            "#2": {"#1": -1},
            "q1": {"caf\xe9": 2, "long" * 20: 10},
            "q2": {"d1": 1},
        }
        assert is_sorted_by_bytes(qrels)
        assert (qrels.facts.lines, qrels.repeated) == (5, 1)
        assert len(qrels.facts.notes) == 5, size


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"".join(b"q 0 d%d %d\n" % (i, i % 3) for i in range(20_000)),
            id="one query of many documents",
        ),
        pytest.param(
            b"".join(b"q%d 0 d%d 1\n" % (i % 100, i) for i in range(20_000)),
            id="every query scattered",
        ),
        pytest.param(
            b"".join(b"q%d 0 %s 1\n" % (i, b"d" * 300_000) for i in range(3)),
            id="ids longer than chunks",
        ),
    ],
)
def test_large_shapes_read_as_line_by_line(path: Path, data: bytes) -> None:
    qrels = read(path, data, chunk_bytes=1 << 16)
    records = plain.plain_records(data, plain.TREC_QRELS)
    assert grades(qrels) == expected_grades(records)


# ---- formats ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        pytest.param(b"q 0 d 3\n", [], id="four columns"),
        pytest.param(b"q 0 d 3", [], id="no last line end"),
        pytest.param(b"q\tQ0\td\t3.0\n", [], id="tabs, and a grade with a point"),
        pytest.param(b"q\td\t3\n", ["BEIR"], id="three columns"),
        pytest.param(
            b"query-id\tcorpus-id\tscore\nq\td\t3\n",
            ["BEIR", "header"],
            id="three columns with a header",
        ),
        pytest.param(b"TOPIC ITER DOC REL\nq 0 d 3\n", ["header"], id="a header"),
        pytest.param(
            b"# judged by x\n\nqid 0 did label\nq 0 d 3\n",
            ["header", "blank", "comment"],
            id="a header behind a comment and a blank line",
        ),
        pytest.param(
            b"# judged 2\nq 0 d 3\n", ["comment"], id="a comment of three words"
        ),
        pytest.param(
            b"q 0 d 3\n# three more words\n",
            ["comment"],
            id="a comment of as many words as columns",
        ),
        pytest.param(b"#q 0 d 3\n", [], id="a query like a comment"),
        pytest.param(
            b"q d 3\r\n\r\n", ["BEIR", "CRLF", "blank"], id="BEIR from Windows"
        ),
    ],
)
@CHUNKS
def test_every_layout_is_read_and_named(
    path: Path, data: bytes, notes: list[str], chunk_bytes: int
) -> None:
    qrels = read(path, data, chunk_bytes=chunk_bytes)
    assert grades(qrels) == {"#q" if b"#q" in data else "q": {"d": 3}}
    assert len(qrels.facts.notes) == len(notes)
    assert all(note in ", ".join(qrels.facts.notes) for note in notes)


@pytest.mark.parametrize(
    "query", ["{", "{q}", "[1]", "d\x0b1", "d\x0c1", "a\x1cb", "a\x85b", "\xa0"]
)
@pytest.mark.parametrize("end", [" 0 d 1\n", " d 1\n"])
def test_an_id_is_any_text_without_blanks(path: Path, query: str, end: str) -> None:
    assert grades(read(path, (query + end).encode())) == {query: {"d": 1}}


# ---- what cannot be meant -----------------------------------------------------------

FIRST, REST = LINES[:10], LINES[10:]

FAULTS = [
    pytest.param(FIRST + b"q1 0 d9 0.5\n" + REST, 2, ["0.5"], id="half a grade"),
    pytest.param(FIRST + b"q1 0 d9 1e-3\n" + REST, 2, ["1e-3"], id="a thousandth"),
    pytest.param(FIRST + b"q1 0 d9 yes\n" + REST, 2, ["yes"], id="a word"),
    pytest.param(FIRST + b"q1 0 d9 nan\n" + REST, 2, ["nan"], id="nan"),
    pytest.param(FIRST + b"q1 0 d9 inf\n" + REST, 2, ["inf"], id="inf"),
    pytest.param(FIRST + b"q1 0 d9 1,0\n" + REST, 2, ["1,0"], id="a comma"),
    pytest.param(FIRST + b"q1 0 d9 1_0\n" + REST, 2, ["1_0"], id="an underscore"),
    pytest.param(FIRST + b"q1 0 d9 1e99\n" + REST, 2, ["1e99"], id="a huge grade"),
    pytest.param(FIRST + b"q1 0 d9 2147483648\n", 2, ["2147483648"], id="2^31"),
    pytest.param(
        b"q1 0 d0 relevant\n" + LINES, 1, ["relevant"], id="a word at the top"
    ),
    pytest.param(b"q1 d0 yes\nq2 d1 1\nq1 d1 1\n", 1, ["yes"], id="the same of BEIR"),
    pytest.param(b"q9 0 d0 0,5\n" + LINES, 1, ["0,5"], id="a comma at the top"),
    pytest.param(b"q9 0 d0 nan\n" + LINES, 1, ["nan"], id="nan at the top"),
    pytest.param(b"qid 0 did rel\n" * 2 + LINES, 2, ["rel"], id="two headers"),
    pytest.param(FIRST + b"qid 0 did rel\n" + REST, 2, ["rel"], id="a header later"),
    pytest.param(
        FIRST + b"q1 d9 1\n" + REST, 2, ["4", "3"], id="three columns of four"
    ),
    pytest.param(FIRST + b"q1 0  1\n" + REST, 2, ["4", "3"], id="an empty document"),
    pytest.param(
        FIRST + b"q1 0 d8\nq1 0 d9 1 1\n" + REST,
        2,
        ["4", "3"],
        id="one column too few, then one too many",
    ),
    pytest.param(b"q1 d9 1\n" + LINES, 2, ["3", "4"], id="four columns of three"),
    pytest.param(LINES + b"q2 0 d", 4, ["4", "3"], id="cut off"),
    pytest.param(FIRST + b"q1 0 a doc 1\n", 2, ["4", "5"], id="a blank in an id"),
    pytest.param(b"q1 0 a doc 1\n" + LINES, 1, ["5"], id="a blank in the first id"),
    pytest.param(
        FIRST + b"q1 0 d9 1 # sure\n", 2, ["4", "6"], id="a remark at the end"
    ),
    pytest.param(
        FIRST + b"q1 0 d1 2\n" + REST, 2, ["line 1", "d1", "q1"], id="two grades"
    ),
    pytest.param(
        b"# x\n\n" + LINES + b"\nq9 0 d1 0\nq1 0 d2 1\n",
        8,
        ["line 4", "d2", "q1"],
        id="two grades, far apart",
    ),
    pytest.param(b"q1 Q0 d1 1 0.5 t\n", 1, ["swapped"], id="a run"),
    pytest.param(b"q1 Q0 d1 1 0.5\n", 1, ["swapped"], id="a run without tags"),
    pytest.param(b"q1\n", 1, ["1"], id="one column"),
    pytest.param(b"q1 d1\n", 1, ["2"], id="two columns"),
    pytest.param(FIRST + b"q1 0 d\0 1\n", 2, ["NUL"], id="a NUL byte"),
    pytest.param(LINES + b"\0\0\0", 4, ["NUL"], id="NUL bytes at the end"),
    pytest.param(FIRST + b"q1 0 d\xe9 1\n", 2, ["UTF-8", "e9"], id="Latin-1"),
    pytest.param(
        b"qid 0 did caf\xe9\n" + LINES, 1, ["UTF-8"], id="Latin-1 in the header"
    ),
    pytest.param(FIRST + b"q1 0 d9\r1\n", 2, ["return"], id="CR inside a line"),
    pytest.param(LINES.replace(b"\n", b"\r"), 1, [], id="CR for line ends"),
    pytest.param(b"", None, ["empty"], id="an empty file"),
    pytest.param(b" \n# x\n", None, ["empty"], id="no record"),
    pytest.param(b"query-id corpus-id score\n", None, ["empty"], id="a header alone"),
    pytest.param(LINES.decode().encode("utf-16"), None, ["UTF-16"], id="UTF-16"),
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
    plain.lines(plain.TREC_QRELS, plain.GRADES),
    st.integers(0, 30),
    st.sampled_from(["x 0 y 0.5\n", "x 0 y\n", "x 0 y z 1\n", "x 0 y\0 1\n"]),
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
    if plain.plain_records("".join(lines[:place]).encode(), plain.TREC_QRELS):
        assert str(caught.value).startswith(f"{path}:{place + 1}: ")
