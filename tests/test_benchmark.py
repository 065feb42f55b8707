"""Run and qrels together: which queries count, and in what order documents come."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from random import Random

import numpy as np
import plain_reader as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_cli import defaults
from falsify_cli.benchmark import (
    Benchmark,
    Lists,
    join,
    judged_share,
    spelled_otherwise,
)
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids
from falsify_cli.read import (
    Keep,
    qrels_of_mapping,
    read_qrels,
    read_run,
    run_of_mapping,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=40)

Scores = dict[str, dict[str, float]]
Grades = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for one run and one qrels file."""
    return tmp_path_factory.mktemp("benchmark")


def joined(run: Scores, qrels: Grades, *, answered_only: bool = False) -> Benchmark:
    return join(
        run_of_mapping(run), qrels_of_mapping(qrels), answered_only=answered_only
    )


def lists_of(
    benchmark: Benchmark, depth: int | None = None
) -> dict[str, list[str | None]]:
    """Every query's ranked documents."""
    return {
        query: benchmark.lists.of([place], depth)[0]
        for place, query in enumerate(benchmark.judgments.queries)
    }


def ranked(scores: dict[str, float]) -> list[str | None]:
    """The ranking of one query's documents."""
    return lists_of(joined({"q": scores}, {"q": {"x": 1}}))["q"]


# ---- order --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        pytest.param({"a": 1.0, "b": 2.0}, ["b", "a"], id="the larger score first"),
        pytest.param({"a": -2.0, "b": -1.0}, ["b", "a"], id="negative scores"),
        pytest.param({"a": 1.0, "b": 1.0}, ["b", "a"], id="a tie by id, descending"),
        pytest.param({"10": 0.0, "9": 0.0}, ["9", "10"], id="ids are no numbers"),
        pytest.param({"d": 0.0, "d1": 0.0}, ["d1", "d"], id="a prefix comes last"),
        pytest.param({"B": 0.0, "a": 0.0}, ["a", "B"], id="capitals are smaller"),
        pytest.param({"z": 0.0, "\xe9": 0.0}, ["\xe9", "z"], id="bytes, no dictionary"),
        # EE 80 80 and F0 90 80 80 in UTF-8; UTF-16 turns them round.
        pytest.param(
            {"\ue000": 0.0, "\U00010000": 0.0}, ["\U00010000", "\ue000"], id="no UTF-16"
        ),
        pytest.param({"a": 0.0, "b": -0.0}, ["b", "a"], id="minus nought is nought"),
        pytest.param(
            {"a": 1.0 + 2**-52, "b": 1.0}, ["a", "b"], id="one double apart is no tie"
        ),
        pytest.param(
            {"a": 16777217.0, "b": 16777216.0}, ["a", "b"], id="nor in single precision"
        ),
        pytest.param({"a": 1e-320, "b": 0.0}, ["a", "b"], id="subnormal"),
        pytest.param(
            {"a": 1e300, "b": 9e299}, ["a", "b"], id="beyond single precision"
        ),
        pytest.param({"a": -9e299, "b": -1e300}, ["a", "b"], id="and below nought"),
        pytest.param(
            {"x" * 70 + "a": 0.0, "x" * 70 + "b": 0.0, "y": 0.0},
            ["y", "x" * 70 + "b", "x" * 70 + "a"],
            id="long ids",
        ),
        pytest.param(
            {"e": 1.0, "a": 2.0, "d": 1.0, "b": 2.0, "c": 3.0},
            ["c", "b", "a", "e", "d"],
            id="two ties",
        ),
    ],
)
def test_documents_come_by_score_then_by_id_descending(
    scores: dict[str, float], order: list[str]
) -> None:
    assert ranked(scores) == order
    assert ranked(dict(reversed(scores.items()))) == order


# Few scores make ties; two of them are equal in single precision alone.
TYING = st.sampled_from(["1", "2", "2.0", "16777217", "16777216", "-0", "0"])
JUDGED = {"q": {"d": 1}}


def in_pieces(lines: list[str], seed: int) -> bytes:
    """The lines in another order: a query's lines are scattered."""
    lines = [line.rstrip("\n") + "\n" for line in lines]
    Random(seed).shuffle(lines)
    return "".join(lines).encode()


@QUICK
@given(
    plain.lines(plain.TREC_RUN, TYING | plain.SCORES),
    st.integers(0, 99),
    st.integers(1, 5),
    plain.CHUNKS,
)
def test_the_kept_lines_give_the_top_that_all_lines_give(
    folder: Path, lines: list[str], seed: int, depth: int, chunk_bytes: int
) -> None:
    path = folder / "run"
    path.write_bytes(in_pieces(lines, seed))
    records = plain.plain_records(path.read_bytes(), plain.TREC_RUN)
    qrels = qrels_of_mapping({record.query: {"d": 1} for record in records})
    whole = join(read_run(str(path)), qrels)
    part = join(read_run(str(path), Keep(depth), chunk_bytes=chunk_bytes), qrels)
    expected = plain.plain_lists(records)
    assert lists_of(whole) == expected
    assert lists_of(part, depth) == {q: d[:depth] for q, d in expected.items()}
    # The blocks of equal scores that begin within the top are whole as well.
    assert top_of(part, depth) == top_of(whole, depth)
    assert part.lists.lengths.tolist() == whole.lists.lengths.tolist()
    assert part.corpus_seen == whole.corpus_seen


@pytest.mark.usefixtures("small_work_is_shared")
@QUICK
@given(
    plain.lines(plain.TREC_RUN, TYING | plain.SCORES),
    st.sampled_from(["as they come", "best first", "best first, in two halves"]),
    st.integers(1, 3),
    plain.CHUNKS,
    st.sampled_from([1, 2]),
)
def test_the_lines_that_matter_give_what_all_lines_give(
    folder: Path, lines: list[str], order: str, near: int, chunk: int, processes: int
) -> None:
    path = folder / "run"
    path.write_bytes("".join(lines).encode())
    records = plain.plain_records(path.read_bytes(), plain.TREC_RUN)
    if order != "as they come":
        records.sort(key=lambda r: -r.value)
        half = len(records) // 2 if "halves" in order else len(records)
        records = [
            record
            for part in (records[:half], records[half:])
            for record in sorted(part, key=lambda r: r.query)
        ]
        text = (f"{r.query} Q0 {r.document} 1 {r.value!r} t\n" for r in records)
        path.write_bytes("".join(text).encode())
    qrels = qrels_of_mapping(
        {r.query: {records[i // 2].document: 1} for i, r in enumerate(records)}
    )
    keep = Keep(judged=qrels.vocabulary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "LOOKED_AT", near)
        whole = join(read_run(str(path)), qrels)
        run = read_run(str(path), keep, chunk_bytes=chunk, processes=processes)
        part = join(run, qrels)
    if order == "best first":
        assert run.places is not None
    for field in fields(Lists):
        mine, theirs = getattr(part.lists, field.name), getattr(whole.lists, field.name)
        if field.name == "documents":
            mine, theirs = mine.to_list(), theirs.to_list()
        assert list(mine) == list(theirs), field.name
    assert asdict(part.oddities) == asdict(whole.oddities)
    assert part.corpus_seen == whole.corpus_seen
    expected = plain.plain_lists(records)
    for query, documents in lists_of(part).items():
        shown = expected.get(query, [])
        assert len(documents) == len(shown)
        for rank, (mine, theirs) in enumerate(zip(documents, shown, strict=True), 1):
            assert mine == theirs or (mine is None and rank > near)
            assert mine is not None or theirs not in qrels.vocabulary.ids.to_list()


def test_few_lines_of_long_lists_are_kept_where_these_are_in_order(
    folder: Path,
) -> None:
    lines = [f"q{i // 500} Q0 d{i} 1 {-i} t\n" for i in range(3_000)]
    lines[400:402] = "q0 Q0 d400 1 -400.5 t\n", "q0 Q0 d401 1 -400.5 t\n"
    qrels = qrels_of_mapping({f"q{i}": {f"d{333 + 500 * i}": 1} for i in range(6)})
    path, keep = folder / "run", Keep(judged=qrels.vocabulary)
    path.write_text("".join(lines))
    run = read_run(str(path), keep)
    # Ten of each list, the judged one, the last one, and the tie.
    assert len(run.documents) == 6 * 12 + 2
    lists = join(run, qrels).lists
    judged = np.flatnonzero(lists.codes >= 0)
    assert lists.ranks[judged].tolist() == [334] * 6
    assert lists.of([0], None)[0][333] == "d333"
    assert lists.of([0], None)[0][399:402] == [None, "d401", "d400"]
    # A list that goes on further down, one not in order, and what cannot be reread.
    for late in ("q0 Q0 e 1 -9999 t\n", "q5 Q0 e 1 7 t\n"):
        path.write_text("".join([*lines, late]))
        again = read_run(str(path), keep)
        assert again.places is None
        assert len(again.documents) == 3_001


def top_of(benchmark: Benchmark, depth: int) -> list[tuple[int, ...]]:
    """Query, rank, code and tie block of every line down to a depth."""
    lists = benchmark.lists
    columns = (lists.queries, lists.ranks, lists.codes, lists.tie_firsts)
    rows = zip(*(c.tolist() for c in (*columns, lists.tie_lasts)), strict=True)
    return [row for row in rows if row[1] <= depth]


@QUICK
@given(
    plain.lines(plain.TREC_RUN, TYING),
    plain.lines(plain.TREC_QRELS, plain.GRADES),
    st.integers(0, 99),
)
def test_the_order_of_lines_changes_no_number(
    folder: Path, run_lines: list[str], qrels_lines: list[str], seed: int
) -> None:
    common = "a-query Q0 a-document 1 1.5 t\n", "a-query 0 a-document 1\n"
    benchmarks = []
    for number in (0, seed):
        run, qrels = folder / "run", folder / "qrels"
        run.write_bytes(in_pieces([*run_lines, common[0]], number))
        qrels.write_bytes(in_pieces([*qrels_lines, common[1]], number))
        benchmarks.append(join(read_run(str(run)), read_qrels(str(qrels))))
    one, two = benchmarks
    assert lists_of(one) == lists_of(two)
    assert top_of(one, 99) == top_of(two, 99)
    assert one.judgments.queries == two.judgments.queries
    for name in ("query", "document", "grade"):
        columns = [getattr(b.judgments, name).tolist() for b in benchmarks]
        assert columns[0] == columns[1]
    assert sorted(one.ignored) == sorted(two.ignored)
    assert one.corpus_seen == two.corpus_seen


def test_lists_name_their_ties_and_judged_documents() -> None:
    run = {"q2": {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}, "q1": {"x": 1.0}}
    benchmark = joined(run, {"q2": {"b": 1, "c": 0, "e": 1}, "q1": {"a": 2}})
    lists = benchmark.lists
    assert lists_of(benchmark) == {"q1": ["x"], "q2": ["b", "c", "a", "d"]}
    assert lists.starts.tolist() == [0, 1, 5]
    assert lists.queries.tolist() == [0, 1, 1, 1, 1]
    assert lists.ranks.tolist() == [1, 1, 2, 3, 4]
    assert lists.tie_firsts.tolist() == [1, 1, 2, 2, 4]
    assert lists.tie_lasts.tolist() == [1, 1, 3, 3, 4]
    assert lists.lengths.tolist() == [1, 4]
    assert benchmark.judgments.vocabulary.ids.to_list() == ["a", "b", "c", "e"]
    # x and d are judged nowhere; a is judged, though not for q2.
    assert lists.codes.tolist() == [-1, 1, 2, 0, -1]
    assert judged_share(benchmark, None) == 2 / 5
    assert judged_share(benchmark, 1) == 1 / 2


# ---- queries ------------------------------------------------------------------------


def test_judged_queries_stay_and_unjudged_ones_are_named() -> None:
    run = {"q9": {"d": 1.0}, "q2": {"d": 1.0}, "q8": {"e": 1.0}}
    benchmark = joined(run, {"q3": {"d": 1}, "q10": {"d": 0}, "q2": {"d": 1}})
    assert benchmark.judgments.queries == ["q10", "q2", "q3"]
    assert benchmark.answered.tolist() == [False, True, False]
    assert lists_of(benchmark) == {"q10": [], "q2": ["d"], "q3": []}
    assert sorted(benchmark.ignored) == ["q8", "q9"]
    assert len(benchmark) == 3


def test_unanswered_queries_leave_where_asked_to() -> None:
    run = {"q2": {"d": 1.0, "e": 2.0}, "q4": {"d": 1.0}, "q9": {"f": 1.0}}
    qrels: Grades = {"q1": {"z": 1}, "q2": {"d": 1, "y": 2}, "q4": {"d": 3}}
    benchmark = joined(run, qrels, answered_only=True)
    assert lists_of(benchmark) == {"q2": ["e", "d"], "q4": ["d"]}
    assert benchmark.answered.tolist() == [True, True]
    assert benchmark.ignored == ("q9",)
    judgments, names = benchmark.judgments, benchmark.judgments.vocabulary.ids
    assert [
        (judgments.queries[query], names[document], grade)
        for query, document, grade in zip(
            judgments.query.tolist(),
            judgments.document.tolist(),
            judgments.grade.tolist(),
            strict=True,
        )
    ] == [("q2", "d", 1), ("q2", "y", 2), ("q4", "d", 3)]


@pytest.mark.parametrize(
    ("run", "qrels", "seen"),
    [
        pytest.param({"q": {"a": 1.0}}, {"q": {"a": 1}}, 1, id="one document"),
        pytest.param({"q": {"a": 1.0}}, {"q": {"b": 0}}, 2, id="two"),
        pytest.param(
            {"q": {"a": 1.0, "b": 0.0}, "x": {"c": 1.0}},
            {"q": {"b": 1}, "y": {"d": 1, "a": 0}},
            4,
            id="of unshared queries too",
        ),
        pytest.param(
            {"q": {"1": 1.0, "01": 0.0, "1.0": 0.0, "4294967297": 0.0}},
            {"q": {"1": 1, "001": 1, "4294967296": 1}},
            6,
            id="numbers are ids like any other",
        ),
        pytest.param(
            {"q": {"x" * 70: 1.0, "x" * 71: 0.0}}, {"q": {"x" * 70: 1}}, 2, id="long"
        ),
    ],
)
def test_the_corpus_seen_is_every_document_once(
    run: Scores, qrels: Grades, seen: int
) -> None:
    assert joined(run, qrels).corpus_seen == seen


@QUICK
@given(
    plain.lines(plain.TREC_RUN, TYING),
    plain.lines(plain.TREC_QRELS, plain.GRADES),
    st.integers(1, 3),
    plain.CHUNKS,
)
def test_the_corpus_seen_counts_the_lines_that_are_not_kept(
    folder: Path, run_lines: list[str], qrels_lines: list[str], depth: int, chunk: int
) -> None:
    run, qrels = folder / "run", folder / "qrels"
    run.write_bytes("".join(run_lines).encode())
    listed = plain.plain_records(run.read_bytes(), plain.TREC_RUN)
    qrels_lines = [*qrels_lines, f"{listed[0].query} 0 a-document 1\n"]
    qrels.write_bytes("".join(qrels_lines).encode())
    judged = plain.plain_records(qrels.read_bytes(), plain.TREC_QRELS)
    read = read_run(str(run), Keep(depth), chunk_bytes=chunk)
    benchmark = join(read, read_qrels(str(qrels)))
    assert benchmark.corpus_seen == len({r.document for r in listed + judged})
    assert set(benchmark.ignored) == {r.query for r in listed} - {
        r.query for r in judged
    }


@pytest.mark.parametrize(
    ("run", "qrels", "fragments"),
    [
        pytest.param({"a": {"d": 1.0}}, {"b": {"d": 1}}, ["a", "b"], id="strangers"),
        pytest.param({"1": {"d": 1.0}}, {"1.1": {"d": 1}}, ["1.1"], id="1 and 1.1"),
        pytest.param(
            {"7": {"d": 1.0}, "8": {"d": 1.0}},
            {"007": {"d": 1}, "008": {"d": 1}},
            ["007", "leading zero"],
            id="leading zeros",
        ),
    ],
)
def test_no_query_in_common_is_refused_with_examples(
    run: Scores, qrels: Grades, fragments: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        joined(run, qrels)
    assert all(fragment in str(caught.value) for fragment in fragments)
    assert "\n" not in str(caught.value)


def test_a_run_whose_rows_were_all_dropped_answers_nothing() -> None:
    run = run_of_mapping({"q": {"q": 1.0}}, Keep(drop_self=True))
    try:
        benchmark = join(run, qrels_of_mapping({"q": {"d": 1}}))
    except InputError:
        return
    assert not benchmark.answered.any()
    assert benchmark.corpus_seen == 1


# ---- oddities -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "contradicted", "single"),
    [
        pytest.param(["a 1 3", "b 2 2", "c 3 1"], 0, 0, id="in order"),
        pytest.param(["c 3 1", "a 1 3", "b 2 2"], 0, 0, id="in another order of lines"),
        pytest.param(["a 2 3", "b 1 2", "c 3 1"], 1, 0, id="two ranks swapped"),
        pytest.param(["a 1 1", "b 2 2", "c 3 3"], 1, 0, id="all ranks turned round"),
        pytest.param(["a 1 1", "b 2 1", "c 3 1"], 0, 0, id="a tie says nothing"),
        pytest.param(["a 4 2", "b 1 2", "c 3 1"], 1, 0, id="one of a tie is too low"),
        pytest.param(["a 1 2", "b 4 2", "c 3 1"], 1, 0, id="or the other one"),
        pytest.param(["a 0 3", "b 0 2", "c 0 1"], 0, 0, id="ranks that are all equal"),
        pytest.param(["a x 1", "b y 2", "c z 3"], 0, 0, id="ranks that are no numbers"),
        pytest.param(
            ["a 1 16777217", "b 2 16777216"], 0, 1, id="equal as single floats"
        ),
        pytest.param(["a 1 1e-50", "b 2 1e-60"], 0, 1, id="both too small for them"),
        pytest.param(["a 1 1e60", "b 2 1e50"], 0, 1, id="both too large for them"),
        pytest.param(["a 1 1.5", "b 2 1.5"], 0, 0, id="equal as doubles"),
    ],
)
@pytest.mark.parametrize("keep", [Keep(), Keep(3)])
def test_odd_ranks_and_scores_are_counted_by_query(
    folder: Path, lines: list[str], contradicted: int, single: int, keep: Keep
) -> None:
    path = folder / "run"
    rows = [f"{q} Q0 {line} t\n" for q in ("q1", "q2") for line in lines]
    path.write_text("".join(rows))
    qrels = qrels_of_mapping({"q1": {"d": 1}, "q2": {"d": 1}})
    benchmark = join(read_run(str(path), keep), qrels)
    odd, lists = benchmark.oddities, benchmark.lists
    near = len(set(lists.queries[lists.near_ties].tolist()))
    assert (odd.rank_contradicts, near) == (
        2 * contradicted,
        2 * single,
    )


def test_queries_that_find_themselves_first_are_named() -> None:
    run = {
        "q1": {"q1": 2.0, "d": 1.0},
        "q2": {"q2": 1.0, "d": 2.0},
        "q3": {"q3": 1.0, "d": 1.0},
        "q4": {"q4": 1.0},
    }
    qrels: Grades = {query: {"d": 1} for query in ("q0", "q1", "q2", "q3")}
    # q3 wins its tie with d; q4 is not judged, q0 lists nothing.
    assert joined(run, qrels).oddities.first_is_query == ("q1", "q3")


def test_the_arguments_stay_as_they_were() -> None:
    run = run_of_mapping({"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    qrels = qrels_of_mapping({"q": {"a": 1}, "r": {"b": 1}})
    arrays = [run.query, run.documents.starts, run.scores, run.ranks, run.listed]
    arrays += [qrels.query, qrels.document, qrels.grade]
    before = [array.copy() for array in arrays]
    join(run, qrels, answered_only=True)
    for old, new in zip(before, arrays, strict=True):
        np.testing.assert_array_equal(old, new)


# ---- the arrangement of a file ------------------------------------------------------

ARRANGED = [
    pytest.param(
        "q1 Q0 c 2 1|q2 Q0 z 1 1|q1 Q0 b 3 2|q2 Q0 y 2 0|q1 Q0 a 1 3", id="ranks"
    ),
    pytest.param(
        "q1 Q0 a 1 3|q2 Q0 z 1 1|q1 Q0 b 2 1.0000000001|q1 Q0 c 3 1", id="32-bit ties"
    ),
    pytest.param(
        "q1 Q0 A 1 2|q2 Q0 B 1 2|q1 Q0 a 2 1|q2 Q0 b 2 1", id="other spellings"
    ),
]


@pytest.mark.parametrize("lines", ARRANGED)
@pytest.mark.parametrize("depth", [1, 2, 10, None])
def test_notices_do_not_depend_on_how_a_file_is_arranged(
    folder: Path, lines: str, depth: int | None
) -> None:
    qrels = qrels_of_mapping({"q1": {"a": 1}, "q2": {"b": 1}})
    said = set()
    for order in (list, sorted, reversed):
        path = folder / "run"
        path.write_text("".join(f"{row} t\n" for row in order(lines.split("|"))))
        for chunk in (10, 1 << 20):
            benchmark = join(read_run(str(path), Keep(depth), chunk_bytes=chunk), qrels)
            columns = (getattr(benchmark.lists, f.name) for f in fields(Lists))
            shown = [c.to_list() if isinstance(c, Ids) else c.tolist() for c in columns]
            said.add(repr([shown, asdict(benchmark.oddities)]))
            assert spelled_otherwise(benchmark)[1] is None or "A 1 2" not in lines
    assert len(said) == 1


def test_a_judged_document_is_met_at_any_rank() -> None:
    rows = {f"DOC{i}": 30.0 - i for i in range(12)} | {"doc1": 1.0}
    run = run_of_mapping({"q": rows}, Keep(10))
    benchmark = join(run, qrels_of_mapping({"q": {"doc1": 1, "x": 0}}))
    assert benchmark.met.tolist() == [True, False]
    assert spelled_otherwise(benchmark) == (None, None)
