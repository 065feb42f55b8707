"""The report: JSON as schema.json describes it, and a table that fits 80 columns."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from falsify_cli import gate
from falsify_cli.interval import Interval
from falsify_cli.judgement import Hint, Judgement, NullResult, Result
from falsify_cli.report import json as json_report
from falsify_cli.report.table import Look, _bar, printable, render, signed, verdict_line
from falsify_cli.texts import NOTHING_JUDGED, hint
from falsify_cli.verdict import State, Verdict

FIXTURES = ROOT / "fixtures"
SCHEMA = json.loads((ROOT / "falsify_cli/report/schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# Steers a terminal, a log or a reader's eye: CSI in one byte and in two, a window
# title, a line end of every kind, text that runs backwards.
NASTY = "a\x1b[31m\x9b1m\x1b]0;t\x07\r\n\x85\u2028\u202e\x7fb"


# ---- the judgements that are shown -----------------------------------------------


def on_fixture(run: str, metric: str | list[str] = "nDCG@10", **asked: Any) -> Any:
    """Judge a run of fixtures/ against the qrels beside it."""
    run_file = FIXTURES / f"{run}.run"
    qrels = "qrels-12.txt" if run.endswith("-12") else "qrels.txt"
    asked = {"n_boot": 200} | asked
    return gate(run_file, run_file.with_name(qrels), metric, **asked)


def flattered(queries: int = 60, **asked: Any) -> Judgement:
    """Every list has the three fairly good documents of its query, never the best."""
    qrels = {
        f"q{i:02}": {f"best{i}": 2} | {f"fair{i}-{j}": 1 for j in range(3)}
        for i in range(queries)
    }
    run = {
        query: {document: 1.0 for document, grade in judged.items() if grade == 1}
        for query, judged in qrels.items()
    }
    return gate(run, qrels, n_boot=200, **asked)


def of_pytrec_eval() -> Judgement:
    """A measure without a kernel, from mappings."""
    qrels = {f"q{i}": {f"d{i}": 1, f"d{i + 1}": 0, f"d{i + 2}": 2} for i in range(6)}
    run = {f"q{i}": {f"d{i + j}": 3.0 - j for j in range(3)} for i in range(6)}
    return gate(run, qrels, "bpref", n_boot=200)


def with_one_gold_set(queries: int = 5) -> Judgement:
    """Nulls that can say nothing."""
    qrels = {f"q{i}": {"d1": 1} for i in range(queries)}
    run = {f"q{i}": {"d1": 2.0, f"d{i}": 1.0} for i in range(2, queries)}
    return gate(run, qrels, ["RR", "Success@3"], n_boot=200)


def with_everything_odd(name: str = "d") -> Judgement:
    """Ids of a reader's nightmare, in every notice that names ids."""
    qrels = {f"{name}{i}": {f"{name}{i}": 1, "rest": 0} for i in range(9)}
    run = {f"{name}{i}": {f"{name}{i}": 1.0} for i in range(3, 15)}
    return gate(run, qrels, n_boot=200)


CASES: dict[str, Callable[[], Judgement]] = {
    "PASS": lambda: on_fixture("stdlib-module/bm25"),
    "FAIL": lambda: on_fixture("stdlib-module/popular"),
    "UNDER-NS": lambda: on_fixture("stdlib-one/bm25-12"),
    "several metrics": lambda: on_fixture(
        "stdlib-many/bm25", ["nDCG@10", "AP", "RR@5", "P@10", "R@10_top1", "Success@3"]
    ),
    "every option": lambda: on_fixture(
        "stdlib-many/popular",
        "P@5",
        top_k=7,
        rel_level=2,
        queries="answered",
        corpus=FIXTURES / "stdlib-many/corpus.txt",
        strict=True,
        drop_self=True,
        tau=0.123456,
        alpha=0.2,
        seed=10**40,
    ),
    "a companion that agrees": lambda: on_fixture("stdlib-many/random"),
    "a companion that does not": flattered,
    "a companion and hints": lambda: flattered(5),
    "a companion that counts": lambda: flattered(strict=True),
    "a large corpus": lambda: on_fixture("stdlib-one/bm25-12", corpus=10**12),
    "measure of pytrec_eval": of_pytrec_eval,
    "one gold set": with_one_gold_set,
    "many notices": with_everything_odd,
    "nasty ids": lambda: with_everything_odd(NASTY),
    "long ids": lambda: with_everything_odd("long-" * 60),
    "wide ids": lambda: with_everything_odd("文書" * 30),
}


@cache
def case(name: str) -> Judgement:
    return CASES[name]()


def renamed(judgement: Judgement, name: str) -> Judgement:
    """The same, found in files of another name."""
    return replace(
        judgement,
        run=replace(judgement.run, name=name),
        qrels=replace(judgement.qrels, name=name),
        parameters=replace(judgement.parameters, corpus=name, group=name),
    )


def report(judgement: Judgement, *, per_query: bool = False) -> dict[str, Any]:
    code = int(judgement.exit_code)
    text = json_report.render(judgement, per_query=per_query, exit_code=code)
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


every_case = pytest.mark.parametrize("name", CASES)


# ---- the schema ------------------------------------------------------------------


def objects_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Every place of the schema that lists properties."""
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            yield schema
        for part in schema.values():
            yield from objects_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects_of(part)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == "falsify.report/1"


def test_the_schema_describes_and_requires_every_key() -> None:
    objects = list(objects_of(SCHEMA))
    assert len(objects) >= 10
    for place in objects:
        assert place["additionalProperties"] is False
        assert set(place["required"]) == set(place["properties"]) - {"per_query"}
        for key, property_ in place["properties"].items():
            assert len(property_["description"]) >= 8, key


@every_case
@pytest.mark.parametrize("per_query", [False, True])
def test_a_report_is_valid(name: str, per_query: bool) -> None:
    found = report(case(name), per_query=per_query)
    assert [error.message for error in VALIDATOR.iter_errors(found)] == []


def test_a_report_in_groups_is_valid(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.write_text("".join(f"q{i:02} g{i // 2}\n" for i in range(60)))
    found = report(flattered(group=groups))
    assert found["parameters"]["group"] == str(groups)
    assert found["benchmark"]["groups"] == 30
    VALIDATOR.validate(found)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every object of a report, as the path to it; of a list only the first item."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from places_of(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from places_of(value[0], (*path, 0))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_a_key_more_or_less_is_no_report() -> None:
    whole = report(case("a companion and hints"), per_query=True)
    assert whole["results"][0]["hints"]
    assert whole["results"][0]["companion"]
    for path in list(places_of(whole)):
        more = copy.deepcopy(whole)
        at(more, path)["another"] = 1
        assert not VALIDATOR.is_valid(more), path
        for key in at(whole, path):
            less = copy.deepcopy(whole)
            del at(less, path)[key]
            assert VALIDATOR.is_valid(less) is (key == "per_query"), (path, key)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("schema", "falsify.report/2", id="another format"),
        pytest.param("verdict", "MAYBE", id="no verdict"),
        pytest.param("exit_code", 2, id="exit code without report"),
        pytest.param("exit_code", "0", id="exit code as text"),
        pytest.param("results", [], id="no result"),
        pytest.param("parameters.queries", "all", id="no choice of queries"),
        pytest.param("parameters.n_boot", 199, id="too few draws"),
        pytest.param("parameters.tau", 0, id="no margin"),
        pytest.param("benchmark.corpus_source", "guessed", id="no source"),
        pytest.param("benchmark.queries_judged", 0, id="no query"),
        pytest.param("benchmark.queries_judged", 1.5, id="half a query"),
        pytest.param("inputs.run.sha256", "00", id="no hash"),
        pytest.param("inputs.run.lines", 0, id="no line"),
        pytest.param("results.0.score", 1.01, id="score above 1"),
        pytest.param("results.0.nulls.A.state", "PASS", id="no state"),
        pytest.param("results.0.nulls.A.p_value", 0, id="p of 0"),
        pytest.param("results.0.nulls.A.exact", None, id="exactness unknown"),
        pytest.param("results.0.nulls.C.expected", -0.01, id="score below 0"),
        pytest.param("results.0.companion", {}, id="companion of nothing"),
        pytest.param("results.0.hints.0.null", "E", id="a fifth null"),
    ],
)
def test_a_value_out_of_its_range_is_no_report(path: str, value: Any) -> None:
    found = report(case("a companion and hints"))
    assert VALIDATOR.is_valid(found)
    *way, last = (int(key) if key.isdecimal() else key for key in path.split("."))
    at(found, tuple(way))[last] = value
    assert not VALIDATOR.is_valid(found)


# ---- JSON ------------------------------------------------------------------------

# What a reader of the format was promised.
PROMISED = {
    *("schema", "version", "inputs", "parameters", "benchmark", "verdict", "results"),
    "exit_code",
}
PROMISED_OF_PARAMETERS = {
    *("tau", "alpha", "n_boot", "seed", "top_k", "rel_level", "queries", "corpus"),
}
PROMISED_OF_BENCHMARK = {
    *("queries_judged", "queries_answered", "queries_without_relevant"),
    *("queries_ignored", "relevant_per_query", "distinct_gold_sets"),
    *("corpus_size", "corpus_source"),
}
PROMISED_OF_INPUT = {"name", "sha256", "lines"}
PROMISED_OF_RESULT = {
    *("metric", "score", "verdict", "nulls", "hints", "notices", "companion"),
}
PROMISED_OF_NULL = {
    *("expected", "exact", "standard_error", "draws_mean", "delta", "interval"),
    *("p_value", "state", "meaning"),
}
PROMISED_OF_INTERVAL = {"low", "high", "level", "resampling_error"}


@every_case
def test_every_promised_key_is_there(name: str) -> None:
    found = report(case(name))
    assert set(found) >= PROMISED
    assert set(found["inputs"]) == {"run", "qrels"}
    assert set(found["parameters"]) >= PROMISED_OF_PARAMETERS
    assert set(found["benchmark"]) >= PROMISED_OF_BENCHMARK
    assert found["schema"] == "falsify.report/1"
    for file in found["inputs"].values():
        assert set(file) >= PROMISED_OF_INPUT
    for result in found["results"]:
        assert set(result) >= PROMISED_OF_RESULT
        assert list(result["nulls"]) == ["A", "B", "C", "D"]
        for null in result["nulls"].values():
            assert set(null) >= PROMISED_OF_NULL
            assert set(null["interval"]) == PROMISED_OF_INTERVAL


@every_case
def test_a_number_has_at_most_12_significant_digits(name: str) -> None:
    code = int(case(name).exit_code)
    text = json_report.render(case(name), per_query=True, exit_code=code)
    seen: list[str] = []
    json.loads(text, parse_float=seen.append)
    assert len(seen) > 50
    for number in seen:
        assert len(Decimal(number).normalize().as_tuple().digits) <= 12, number
    assert "-0.0" not in {number for number in seen if float(number) == 0}


def test_a_gap_of_minus_zero_is_zero() -> None:
    result = flattered(5).results[0]
    null = replace(result.nulls["A"], delta=-0.0, p_value=0.1 + 0.2)
    judgement = replace(
        flattered(5), results=(replace(result, nulls=dict(result.nulls) | {"A": null}),)
    )
    found = report(judgement)["results"][0]["nulls"]["A"]
    assert (str(found["delta"]), str(found["p_value"])) == ("0.0", "0.3")


@every_case
def test_the_values_are_those_of_the_judgement(name: str) -> None:
    judgement = case(name)
    found = report(judgement)
    assert found["verdict"] == str(judgement.verdict)
    assert found["exit_code"] == {"PASS": 0, "FAIL": 1, "UNDER-NS": 3}[found["verdict"]]
    for plain, result in zip(found["results"], judgement.results, strict=True):
        same_result(plain, result)
        assert plain["notices"] == [*judgement.notices, *result.notices]
        if result.companion is None:
            assert plain["companion"] is None
        else:
            same_result(plain["companion"], result.companion)
            assert plain["companion"]["notices"] == list(result.companion.notices)


def same_result(plain: dict[str, Any], result: Result) -> None:
    assert plain["metric"] == result.metric
    assert plain["verdict"] == str(result.verdict)
    assert plain["own_verdict"] == str(result.own_verdict)
    assert plain["score"] == pytest.approx(result.score, rel=1e-11)
    assert [hint["text"] for hint in plain["hints"]] == [h.text for h in result.hints]
    for letter, null in result.nulls.items():
        row, span = plain["nulls"][letter], null.interval
        assert row["expected"] == pytest.approx(null.expected, rel=1e-11)
        assert row["exact"] is null.exact
        assert row["delta"] == pytest.approx(null.delta, rel=1e-11)
        assert row["interval"] == pytest.approx(
            {
                "low": span.low,
                "high": span.high,
                "level": span.level,
                "resampling_error": max(span.low_error, span.high_error),
            },
            rel=1e-11,
        )
        assert row["p_value"] == pytest.approx(null.p_value, rel=1e-11)
        assert row["state"] == str(null.state)
        assert row["meaning"] == null.meaning


@every_case
def test_the_rows_a_query_average_to_the_score_and_to_what_nulls_expect(
    name: str,
) -> None:
    found = report(case(name), per_query=True)
    companions = [r["companion"] for r in found["results"] if r["companion"]]
    for result in [*found["results"], *companions]:
        rows = result["per_query"]
        ids = [row["query"] for row in rows]
        assert ids == sorted(ids, key=str.encode)
        assert len(ids) == found["benchmark"]["queries_judged"]
        mean = math.fsum(row["score"] for row in rows) / len(rows)
        assert mean == pytest.approx(result["score"], abs=1e-11)
        for letter, null in result["nulls"].items():
            mean = math.fsum(row["expected"][letter] for row in rows) / len(rows)
            assert mean == pytest.approx(null["expected"], abs=1e-11)


def test_the_rows_a_query_come_only_when_asked_for() -> None:
    assert "per_query" not in report(case("PASS"))["results"][0]


def test_the_exit_code_is_the_one_that_is_told() -> None:
    text = json_report.render(case("FAIL"), per_query=False, exit_code=0)
    assert json.loads(text)["exit_code"] == 0
    assert json.loads(text)["verdict"] == "FAIL"


def test_a_mapping_has_no_name_and_no_hash() -> None:
    for file in report(flattered())["inputs"].values():
        assert (file["name"], file["sha256"]) == (None, None)


def test_a_measure_of_pytrec_eval_knows_nothing_of_ties() -> None:
    assert report(of_pytrec_eval())["results"][0]["ties"] is None
    assert report(case("PASS"))["results"][0]["ties"] is not None


RUN_TEXT = b"# a comment\nq1 Q0 d1 1 0.9 t\n\nq1 Q0 d2 2 0.8 t\r\nq2 Q0 d1 1 0.7 t"
QRELS_TEXT = b"q1 0 d1 1\nq1 0 d2 0\n\n\nq2 0 d1 1\nq2 0 d3 1\n"


@pytest.mark.parametrize("squeeze", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("piped", ["nothing", "run", "qrels"])
def test_an_input_has_its_name_its_records_and_the_hash_of_the_stored_bytes(
    squeeze: bool, piped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = {"run": RUN_TEXT, "qrels": QRELS_TEXT, "nothing": b""}
    if squeeze:
        stored = {kind: gzip.compress(text, mtime=0) for kind, text in stored.items()}
    for kind, data in stored.items():
        (tmp_path / kind).write_bytes(data)
    names = {kind: str(tmp_path / kind) for kind in stored} | {piped: "-"}
    with (tmp_path / piped).open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        inputs = report(gate(names["run"], names["qrels"], n_boot=200))["inputs"]
    for kind, records in (("run", 3), ("qrels", 4)):
        assert inputs[kind]["name"] == names[kind]
        assert inputs[kind]["sha256"] == hashlib.sha256(stored[kind]).hexdigest()
        assert inputs[kind]["lines"] == records
        assert ("gzip" in inputs[kind]["notes"]) is squeeze


def test_nothing_is_hashed_where_nobody_asks() -> None:
    inputs = report(on_fixture("stdlib-one/bm25-12", digest=False))["inputs"]
    assert [file["sha256"] for file in inputs.values()] == [None, None]


@every_case
def test_the_json_is_one_object_that_ends_its_line(name: str) -> None:
    text = json_report.render(case(name), per_query=False, exit_code=0)
    assert text.startswith('{\n  "schema": ')
    assert text.endswith("}\n")
    # Whatever the encoding of where it goes; and no CSI reaches a terminal raw.
    assert text.isascii()
    assert all(sign.isprintable() or sign == "\n" for sign in text)


# ---- the table: what is sent to a terminal ----------------------------------------

NAMES = {
    "plain": "run.txt",
    "long": "folder/" * 40 + "run.txt",
    "one long word": "x" * 500,
    "blanks": "a  b   c " * 40,
    "wide": "走行" * 90,
    "nasty": NASTY * 20,
    "markup": "[red]run[/red] :smile: [link=x]",
    "not utf-8": "run\udcff.txt",
}

every_name = pytest.mark.parametrize("file_name", NAMES.values(), ids=NAMES)
every_look = pytest.mark.parametrize(
    "look",
    [Look(), Look(ascii=True), Look(color=True), Look(color=True, ascii=True)],
    ids=["plain", "ascii", "colour", "colour, ascii"],
)


def columns(line: str) -> int:
    """Cells of a terminal: East Asian wide signs take two."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in line)
    return len(line) + wide


def assert_fit_to_print(text: str, look: Look) -> None:
    if not look.color:
        assert "\x1b" not in text
    plain = ESCAPES.sub("", text)
    assert plain.endswith("\n")
    assert all(sign.isprintable() or sign == "\n" for sign in plain)
    if look.ascii:
        assert text.isascii()
    for line in plain.splitlines():
        assert columns(line) <= 80, line
        assert line == line.rstrip()


@every_case
@every_look
def test_a_table_fits_80_columns_and_cannot_steer_a_terminal(
    name: str, look: Look
) -> None:
    assert_fit_to_print(render(case(name), look), look)


@every_name
@every_look
def test_a_file_name_cannot_widen_the_table_nor_steer_a_terminal(
    file_name: str, look: Look
) -> None:
    assert_fit_to_print(render(renamed(case("UNDER-NS"), file_name), look), look)


@every_case
def test_what_is_wrapped_stands_under_itself(name: str) -> None:
    labels = "PASS|FAIL|UNDER-NS|WARN|[ABCD]|hint|also|note|repeat"
    _, *parts = re.split(r"^null  .*\n", render(case(name)), flags=re.MULTILINE)
    assert len(parts) == len(case(name).results)
    for part in parts:
        for line in ROW.sub("", part).splitlines():
            starts_one = re.match(rf"({labels}) +\S", line)
            goes_on = line.startswith(" " * 8)
            is_heading = re.search(r"% judged in (all lists|the top \d+)$", line)
            assert not line or starts_one or goes_on or is_heading, line


@pytest.mark.parametrize(
    "file_name", ["run.txt", "[red]run[/red]", ":smile:", "a 7 'b' None"]
)
def test_a_file_name_is_shown_as_it_is_and_in_no_colour(file_name: str) -> None:
    text = render(renamed(case("UNDER-NS"), file_name), Look(color=True))
    assert text.startswith(f"{file_name} against {file_name}\n12 queries judged, ")


@every_name
def test_the_verdict_line_is_one_line_whatever_the_file_is_called(
    file_name: str,
) -> None:
    line = verdict_line(renamed(case("UNDER-NS"), file_name))
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@every_case
def test_colour_is_all_that_colour_adds(name: str) -> None:
    coloured = render(case(name), Look(color=True))
    assert "\x1b[" in coloured
    assert ESCAPES.sub("", coloured) == render(case(name))


@pytest.mark.parametrize(
    ("name", "color"), [("PASS", 32), ("FAIL", 31), ("UNDER-NS", 33)]
)
def test_a_verdict_has_its_colour(name: str, color: int) -> None:
    assert f"\x1b[1;{color}m{name}" in render(case(name), Look(color=True))


def test_the_signs_beyond_ascii_have_a_spelling_within() -> None:
    assert "█┃█" in render(case("PASS"))
    assert " Δ " in render(case("PASS"))
    plain = render(case("PASS"), Look(ascii=True))
    assert "#|#" in plain
    assert " delta " in plain
    assert "?" not in plain


def test_printable_text_is_left_alone() -> None:
    assert printable("Müller 走行 a.b") == "Müller 走行 a.b"


@given(st.text())
def test_printable_spells_out_everything_else(text: str) -> None:
    assert printable(text).isprintable()


# ---- the table: what it says ------------------------------------------------------

ROW = re.compile(
    r"^([ABCD]) ([a-z ]+?) +(\d\.\d{4})(~?) +([+-]\d\.\d{4}) "
    r"\[([+-]\d\.\d{3}), ([+-]\d\.\d{3})\] (\d\.\d{3}) (\w+) +([█┃ ]+)$",
    re.MULTILINE,
)
NULL_NAMES = ["permuted labels", "uniform labels", "random retrieval", "matched labels"]


def words(judgement: Judgement) -> str:
    """The report as one line."""
    return " ".join(render(judgement).split())


@every_case
def test_a_row_shows_a_null(name: str) -> None:
    results = case(name).results
    rows = ROW.findall(render(case(name)))
    assert len(rows) == 4 * len(results)
    nulls = [null for result in results for null in result.nulls.values()]
    for row, null, title in zip(rows, nulls, NULL_NAMES * len(results), strict=True):
        assert row[:2] == (null.letter, title)
        assert float(row[2]) == pytest.approx(null.expected, abs=0.51e-4)
        assert bool(row[3]) is not null.exact
        shown = [float(text) for text in row[4:8]]
        assert shown[0] == pytest.approx(null.delta, abs=0.51e-4)
        assert shown[1] == pytest.approx(null.interval.low, abs=0.51e-3)
        assert shown[2] == pytest.approx(null.interval.high, abs=0.51e-3)
        assert shown[3] == pytest.approx(null.p_value, abs=0.51e-3)
        assert row[8] == str(null.state)


@every_case
def test_every_metric_has_its_score_verdict_and_depth(name: str) -> None:
    text = render(case(name))
    for result in case(name).results:
        where = "all lists" if result.depth is None else f"the top {result.depth}"
        share = f"{100 * result.judged_share:.0f}% judged in {where}"
        assert f"\n{result.metric}  {result.score:.4f}    {share}\n" in text
    own = re.findall(r"^(PASS|FAIL|UNDER-NS) ", text, re.MULTILINE)
    assert own == [str(result.own_verdict) for result in case(name).results]


@every_case
def test_every_notice_and_every_meaning_that_matters_is_told(name: str) -> None:
    text = words(case(name))
    for notice in case(name).notices:
        if name not in ("long ids", "wide ids"):  # those are cut within a word
            assert " ".join(printable(notice).split()) in text
    for result in case(name).results:
        for notice in result.notices:
            label = "WARN" if notice == NOTHING_JUDGED else "note"
            assert f"{label} {notice}" in text
        for null in result.nulls.values():
            told = f" {null.letter} {null.meaning}" in text
            assert told is (null.state in (State.FAIL, State.OPEN))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "PASS",
            "PASS No dumb system gets this score: the run beats all four by 0.05 or "
            "more.",
            id="all four pass",
        ),
        pytest.param(
            "FAIL",
            "FAIL A dumb system gets about this score: the run does not beat A and D "
            "by 0.05.",
            id="two fail",
        ),
        pytest.param(
            "UNDER-NS",
            "UNDER-NS Too few queries to tell: 12 do not settle whether the run beats "
            "A, B, C and D by 0.05.",
            id="four are open",
        ),
        pytest.param(
            "one gold set",
            "UNDER-NS This benchmark cannot tell whether the run beats A, B, C and D "
            "by 0.05, however many queries it has.",
            id="three are silent",
        ),
        pytest.param(
            "a companion that agrees",
            "also R@10_top1 0.0000, one relevant document a query, agrees: FAIL.",
            id="companion agrees",
        ),
        pytest.param(
            "a companion that does not",
            "also R@10_top1 0.0000, one relevant document a query, says FAIL: several "
            "relevant documents a query may flatter nDCG@10.",
            id="companion disagrees",
        ),
        pytest.param(
            "a companion that counts",
            "says FAIL (--strict: the worse one counts): several",
            id="companion counts",
        ),
    ],
)
def test_the_verdict_is_a_sentence(name: str, expected: str) -> None:
    assert expected in words(case(name))


def test_a_strict_companion_makes_the_verdict() -> None:
    assert case("a companion that does not").verdict is Verdict.PASS
    assert case("a companion that counts").verdict is Verdict.FAIL
    found = report(case("a companion that counts"))["results"][0]
    assert (found["verdict"], found["own_verdict"]) == ("FAIL", "PASS")


def test_the_header_counts_queries_documents_and_groups(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.write_text("".join(f"q{i:02} g{i % 15}\n" for i in range(60)))
    head = words(flattered(group=groups, corpus=123456))
    assert head.startswith(
        "run against qrels 60 queries judged, 60 answered, 0 without relevant "
        "documents 4.0 relevant a query in 60 gold sets; corpus of 123,456 documents "
        "(given) resampled in 15 groups of queries nDCG@10 "
    )


def test_the_header_says_where_files_came_from() -> None:
    judgement = case("UNDER-NS")
    piped = replace(judgement, run=replace(judgement.run, name="-"))
    assert words(piped).startswith("standard input against ")
    assert "documents (seen in run and qrels)" in words(piped)
    assert "resampled" not in words(piped)


def test_the_header_tells_judged_from_answered_queries() -> None:
    # Nine judged queries, of which the last six are answered, and six that are not.
    text = words(case("many notices"))
    assert " 9 queries judged, 6 answered, 0 without relevant documents " in text


@pytest.mark.parametrize(
    ("alpha", "head"), [(0.05, " 98.75% interval "), (0.2, " 95% interval ")]
)
def test_the_table_names_the_confidence_of_one_interval(
    alpha: float, head: str
) -> None:
    assert head in render(flattered(5, alpha=alpha))


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (None, "More groups of this kind will not settle B."),
        (9, "A few more groups of this kind would settle B."),
        (10, "A few more groups of this kind would settle B."),
        (11, "About 11 groups of this kind would settle B."),
        (20_000, "About 20,000 groups of this kind would settle B."),
    ],
)
def test_a_hint_names_no_more_than_there_are(
    queries: int | None, expected: str
) -> None:
    assert hint("B", queries, 10, "groups") == Hint("B", queries, expected)


def test_nulls_that_as_many_queries_would_settle_share_a_hint() -> None:
    judgement = case("UNDER-NS")
    hints = (
        Hint("A", 20, "About 20 queries of this kind would settle A."),
        Hint("B", 30, "About 30 queries of this kind would settle B."),
        Hint("C", 20, "About 20 queries of this kind would settle C."),
        Hint("D", 20, "About 20 queries of this kind would settle D."),
    )
    result = replace(judgement.results[0], hints=hints)
    lines = render(replace(judgement, results=(result,))).splitlines()
    assert [line for line in lines if line.startswith("hint")] == [
        "hint    About 20 queries of this kind would settle A, C and D.",
        "hint    About 30 queries of this kind would settle B.",
    ]


def test_the_verdict_line_names_verdict_file_and_scores() -> None:
    judgement = replace(case("several metrics"), verdict=Verdict.UNDER_NS)
    shown = verdict_line(renamed(judgement, "my.run"))
    scores = ", ".join(f"{r.metric} {r.score:.4f}" for r in judgement.results)
    assert shown == f"UNDER-NS  my.run  {scores}\n"
    assert verdict_line(flattered()).startswith("PASS  run  nDCG@10 0.")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "several metrics",
            "-m nDCG@10 -m AP -m RR@5 -m P@10 -m R@10_top1 -m Success@3 --seed 0 "
            "--n-boot 200 --tau 0.05 --alpha 0.05 --corpus 848",
            id="seen corpus",
        ),
        pytest.param(
            "every option",
            f"-m P@5 --seed {10**40} --n-boot 200 --tau 0.123456 --alpha 0.2 "
            f"--corpus {FIXTURES}/stdlib-many/corpus.txt --top-k 7 --rel-level 2 "
            f"--queries answered --strict --drop-self",
            id="every option",
        ),
    ],
)
def test_the_last_line_repeats_the_call(name: str, expected: str) -> None:
    found = words(case(name)).split(" repeat falsify ")[1]
    assert found == f"{case(name).version} {expected}"


# ---- the bar ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "expected", "full", "bar"),
    [
        # 12 cells for 0 to full, so 11 steps: at a full of 0.55 a step is 0.05.
        pytest.param(0.55, 0.0, 0.55, "┃███████████", id="null of 0"),
        pytest.param(0.55, 0.1, 0.55, "██┃█████████", id="null below run"),
        pytest.param(0.55, 0.55, 0.55, "███████████┃", id="null and run equal"),
        pytest.param(0.2, 0.3, 0.55, "█████ ┃     ", id="null above run"),
        pytest.param(0.2, 0.25, 0.55, "█████┃      ", id="null just above run"),
        pytest.param(0.2, 0.2, 0.55, "████┃       ", id="equal, below another null"),
        pytest.param(0.0, 0.55, 0.55, "           ┃", id="run of 0"),
        pytest.param(0.0, 0.0, 0.55, "┃           ", id="run and null of 0"),
        pytest.param(0.0, 0.0, 0.0, "┃           ", id="nothing but 0"),
        pytest.param(0.001, 0.55, 0.55, "█          ┃", id="hardly any score"),
        pytest.param(1e-300, 1e-300, 1e-300, "███████████┃", id="all of it tiny"),
    ],
)
def test_the_null_is_marked_on_the_bar_of_the_run(
    score: float, expected: float, full: float, bar: str
) -> None:
    span = Interval(0.0, 0.0, 0.9875, 0.0, 0.0)
    null = NullResult(
        "A", expected, True, 0.0, expected, 0.0, span, 1.0, State.OPEN, "?"
    )
    assert _bar(score, null, full, Look()) == bar
    ascii_bar = bar.replace("█", "#").replace("┃", "|")
    assert _bar(score, null, full, Look(ascii=True)) == ascii_bar


def test_the_bars_of_a_metric_have_one_scale() -> None:
    # Popular documents: A and D score what the run scores, B and C a quarter of it.
    bars = [row[9] for row in ROW.findall(render(case("FAIL")))]
    assert bars == ["███████████┃", "███┃████████", "███┃████████", "███████████┃"]


# ---- signs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        pytest.param(0.0, 3, "+0.000", id="zero"),
        pytest.param(-0.0, 3, "+0.000", id="minus zero"),
        pytest.param(-0.00049, 3, "+0.000", id="rounds to zero"),
        pytest.param(-0.00051, 3, "-0.001", id="rounds away from zero"),
        pytest.param(-0.00049, 4, "-0.0005", id="four places"),
        pytest.param(1.0, 4, "+1.0000", id="one"),
        pytest.param(-1.25, 2, "-1.25", id="below minus one"),
    ],
)
def test_a_gap_has_a_sign_and_zero_no_minus(
    value: float, places: int, text: str
) -> None:
    assert signed(value, places) == text


@given(st.floats(-2, 2), st.integers(1, 6))
def test_a_signed_number_is_the_number(value: float, places: int) -> None:
    text = signed(value, places)
    assert re.fullmatch(rf"[+-]\d\.\d{{{places}}}", text)
    assert not re.fullmatch(r"-0\.0+", text)
    assert abs(float(text) - value) <= 0.500001 * 10**-places
