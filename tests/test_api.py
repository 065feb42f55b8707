"""The public API: `from falsify_cli import gate, Verdict`, and what comes back."""

from __future__ import annotations

import copy
import doctest
import importlib.resources
import json
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import falsify_cli
from falsify_cli import Verdict, gate
from falsify_cli.errors import FalsifyError, InputError, InternalError, UsageError
from falsify_cli.judgement import Judgement
from falsify_cli.verdict import ExitCode, State

MODULE = ROOT / "fixtures" / "stdlib-module"
ONE = ROOT / "fixtures" / "stdlib-one"

RUN = {
    "q1": {"d1": 3.0, "d2": 2.0, "d4": 1.0},
    "q2": {"d2": 0.5, "d1": 0.25},
    "q3": {"d3": 7.0},
}
QRELS = {
    "q1": {"d1": 1, "d2": 0, "d3": 2},
    "q2": {"d2": 1},
    "q3": {"d4": 1, "d3": 0},
}


def judged(run: Any = RUN, qrels: Any = QRELS, *metric: Any, **asked: Any) -> Any:
    """Call gate with few draws, checking no types: what it is given may be wrong."""
    call: Any = gate
    return call(run, qrels, *metric, **({"n_boot": 200} | asked))


def report(judgement: Judgement) -> dict[str, Any]:
    """What was found, without where it was found, as JSON would have it."""
    plain = json.loads(json.dumps(judgement.to_dict(per_query=True)))
    assert isinstance(plain, dict)
    del plain["inputs"]
    return plain


@cache
def plain_report() -> dict[str, Any]:
    return report(judged())


# ---- the package -----------------------------------------------------------------


def test_the_package_offers_gate_verdict_and_its_version() -> None:
    errors = {"FalsifyError", "InputError", "InternalError", "UsageError"}
    assert set(falsify_cli.__all__) == {"gate", "Verdict", "__version__", *errors}
    for name in falsify_cli.__all__:
        assert getattr(falsify_cli, name) is not None
    assert [str(verdict) for verdict in Verdict] == ["PASS", "FAIL", "UNDER-NS"]
    assert judged().version == falsify_cli.__version__
    assert falsify_cli.__version__.split(".")[0].isdecimal()


def test_a_name_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"falsify_cli.*no attribute 'grate'"):
        _ = falsify_cli.grate


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = {"numpy", "typer", "rich", "pytrec_eval"}
    code = f"import falsify_cli, sys; print({heavy} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_using_the_api_needs_neither_typer_nor_rich() -> None:
    code = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
        "from falsify_cli import gate\n"
        "print(gate({'q': {'d': 1.0}}, {'q': {'d': 1}}, 'RR', n_boot=200).verdict)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("UNDER-NS\n", "")


def test_the_package_says_that_it_is_typed_and_ships_the_schema() -> None:
    package = importlib.resources.files(falsify_cli)
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("report").joinpath("schema.json").is_file()


def test_the_example_of_the_docstring_holds() -> None:
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder().find(gate, "gate", globs={"gate": gate}):
        runner.run(example)
    failed, tried = runner.summarize(verbose=False)
    assert (failed, tried) == (0, 2)


# ---- what comes back --------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "qrels", "verdict", "code"),
    [
        pytest.param(MODULE / "bm25.run", MODULE / "qrels.txt", "PASS", 0, id="PASS"),
        pytest.param(
            MODULE / "popular.run", MODULE / "qrels.txt", "FAIL", 1, id="FAIL"
        ),
        pytest.param(
            ONE / "bm25-12.run", ONE / "qrels-12.txt", "UNDER-NS", 3, id="UNDER-NS"
        ),
    ],
)
def test_a_judgement_has_verdict_exit_code_score_and_nulls(
    run: Path, qrels: Path, verdict: str, code: int
) -> None:
    found = gate(run, qrels)
    assert found.verdict is Verdict(verdict)
    assert found.exit_code is ExitCode(code)
    assert found.to_dict()["exit_code"] == code
    result = found.results[0]
    assert (found.score, found.nulls) == (result.score, result.nulls)
    assert list(found.nulls) == ["A", "B", "C", "D"]
    for letter, null in found.nulls.items():
        assert null.letter == letter
        assert isinstance(null.state, State)
        assert type(null.delta) is float
        assert null.delta == pytest.approx(found.score - null.expected, abs=1e-15)
        assert null.interval.low < null.delta < null.interval.high


def test_an_exit_code_can_be_told_to_the_report() -> None:
    assert judged().to_dict(exit_code=0)["exit_code"] == 0
    assert judged().to_dict()["exit_code"] == 3


def test_the_first_metric_speaks_for_the_judgement() -> None:
    found = judged(RUN, QRELS, ["RR", "nDCG@10"])
    assert [result.metric for result in found.results] == ["RR", "nDCG@10"]
    assert found.score == found.results[0].score != found.results[1].score
    assert found.nulls is found.results[0].nulls


def parts_of(found: Judgement) -> dict[str, Any]:
    result = found.results[0]
    return {
        "judgement": found,
        "inputs": found.run,
        "parameters": found.parameters,
        "benchmark": found.benchmark,
        "result": result,
        "null": result.nulls["A"],
        "interval": result.nulls["A"].interval,
        "ties": result.ties,
        "hint": result.hints[0],
        "query": result.per_query[0],
    }


@pytest.mark.parametrize("part", parts_of(judged()))
def test_what_comes_back_is_frozen(part: str) -> None:
    value = parts_of(judged())[part]
    for name in value.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)


def test_scores_of_queries_come_sorted_with_what_nulls_expect() -> None:
    rows = judged(RUN, QRELS, "RR").results[0].per_query
    assert [row.query for row in rows] == ["q1", "q2", "q3"]
    assert [row.score for row in rows] == [1.0, 1.0, 0.0]
    assert len(rows) == 3
    assert [row.query for row in rows[1:]] == ["q2", "q3"]
    assert rows[-1] == rows[2]
    # Gold sets {d1, d3}, {d2} and {d4}: q1's list finds them at ranks 1, 2 and 3.
    assert rows[0].expected["A"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert list(rows[0].expected) == ["A", "B", "C", "D"]


# ---- what goes in -----------------------------------------------------------------


def written(folder: Path, run: Any, qrels: Any) -> tuple[Path, Path]:
    run_file, qrels_file = folder / "run", folder / "qrels"
    run_file.write_text(
        "".join(
            f"{query} Q0 {document} 0 {score!r} t\n"
            for query, row in run.items()
            for document, score in row.items()
        )
    )
    qrels_file.write_text(
        "".join(
            f"{query} 0 {document} {grade}\n"
            for query, row in qrels.items()
            for document, grade in row.items()
        )
    )
    return run_file, qrels_file


def test_mappings_are_judged_as_files_are(tmp_path: Path) -> None:
    files = written(tmp_path, RUN, QRELS)
    for metric in ("nDCG@2", "AP", "bpref"):
        expected = report(judged(RUN, QRELS, metric))
        assert report(judged(*files, metric)) == expected
        assert report(judged(RUN, files[1], metric)) == expected


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_may_be_a_str_or_a_path(kind: Callable[[Path], Any]) -> None:
    run, qrels = kind(ONE / "bm25-12.run"), kind(ONE / "qrels-12.txt")
    found = judged(run, qrels, corpus=kind(ONE / "corpus.txt"))
    assert found.run.name == str(run)
    assert found.parameters.corpus == str(ONE / "corpus.txt")
    assert found.benchmark.corpus_size == 1676


@pytest.mark.parametrize("kind", [list, tuple])
def test_metrics_may_be_one_name_or_several(kind: Callable[[list[str]], Any]) -> None:
    one = judged(RUN, QRELS, "AP")
    assert report(judged(RUN, QRELS, kind(["AP"]))) == report(one)
    several = judged(RUN, QRELS, kind(["ndcg_cut_2", "map"]))
    assert [result.metric for result in several.results] == ["nDCG@2", "AP"]
    assert several.results[1].nulls == one.results[0].nulls


def test_the_default_metric_is_ndcg_at_10() -> None:
    assert [result.metric for result in judged().results] == ["nDCG@10"]


def test_what_is_given_is_left_as_it_was() -> None:
    # In the order of a sort, and not: both could be tempting to change.
    run = {"q3": {"d3": 1.0, "d1": 2.0}, "q1": {"d2": 1.0, "d1": 1.0}, "q9": {"d": 1.0}}
    qrels = {"q3": {"d3": 1, "d1": 0}, "q1": {"d1": 2, "d2": -1}}
    metrics = ["RR", "bpref"]
    before = copy.deepcopy((run, qrels, metrics))
    judged(run, qrels, metrics, top_k=1, drop_self=True, queries="answered")
    assert (run, qrels, metrics) == before
    # Equal dictionaries may have their keys in another order.
    assert [*run, *run["q3"], *qrels] == [*before[0], *before[0]["q3"], *before[1]]


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_kind_of_mapping_will_do(kind: Callable[[Any], Any]) -> None:
    run = kind({query: kind(row) for query, row in RUN.items()})
    qrels = kind({query: kind(row) for query, row in QRELS.items()})
    assert report(judged(run, qrels)) == plain_report()


@pytest.mark.parametrize("score", [np.float64, np.float32, int, np.int64])
@pytest.mark.parametrize("grade", [np.int64, np.uint8, np.float32, float])
def test_numbers_of_a_mapping_may_be_numpys(
    score: Callable[[float], Any], grade: Callable[[int], Any]
) -> None:
    run = {q: {d: score(4 * s) for d, s in row.items()} for q, row in RUN.items()}
    qrels = {q: {d: grade(g) for d, g in row.items()} for q, row in QRELS.items()}
    assert report(judged(run, qrels)) == plain_report()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("tau", np.float64(0.25), id="tau, double"),
        pytest.param("tau", np.float32(0.25), id="tau, single"),
        pytest.param("alpha", np.float32(0.25), id="alpha"),
        pytest.param("n_boot", np.int64(300), id="n_boot"),
        pytest.param("seed", np.int64(5), id="seed"),
        pytest.param("top_k", np.int64(2), id="top_k"),
        pytest.param("rel_level", np.int64(2), id="rel_level"),
        pytest.param("corpus", np.int64(50), id="corpus"),
        pytest.param("strict", np.bool_(True), id="strict"),
        pytest.param("drop_self", np.bool_(True), id="drop_self"),
    ],
)
def test_options_may_be_numpys(name: str, value: Any) -> None:
    found = report(judged(RUN, QRELS, "RR", **{name: value}))
    assert found == report(judged(RUN, QRELS, "RR", **{name: value.item()}))
    assert found["parameters"][name] == value.item()


def test_every_option_is_reported_as_it_was_given(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.write_text("q1 a\nq2 a\nq3 b\n")
    asked = {
        "tau": 0.125,
        "alpha": 0.25,
        "n_boot": 250,
        "seed": 3,
        "top_k": 2,
        "rel_level": 1,
        "queries": "answered",
        "corpus": 77,
        "strict": True,
        "drop_self": True,
        "group": groups,
    }
    found = report(judged(RUN, QRELS, **asked))
    assert found["parameters"] == asked | {"group": str(groups)}
    assert found["benchmark"]["groups"] == 2
    assert found["benchmark"]["corpus_size"] == 77
    assert found["benchmark"]["corpus_source"] == "given"


def test_progress_is_told_and_ends_at_its_end() -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, steps: int) -> None:
        told.append((done, steps))

    judged(RUN, QRELS, ["nDCG", "RR"], progress=tell)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= steps for done, steps in told)
    assert told[-1] == (4, 4)  # the four nulls, of all metrics together


# ---- what is refused --------------------------------------------------------------


def test_a_mistake_of_the_user_is_a_falsify_error_and_a_fault_of_ours_is_not() -> None:
    assert issubclass(InputError, FalsifyError)
    assert issubclass(UsageError, FalsifyError)
    assert not issubclass(InternalError, FalsifyError)


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        pytest.param({"tau": 0.0}, "tau: .* found 0.0", id="tau 0"),
        pytest.param({"tau": 1.0}, "tau: .* found 1.0", id="tau 1"),
        pytest.param({"tau": float("nan")}, "tau: .* found nan", id="tau nan"),
        pytest.param({"alpha": 0.0}, "alpha: .* found 0.0", id="alpha 0"),
        pytest.param({"alpha": 1.0}, "alpha: .* found 1.0", id="alpha 1"),
        pytest.param({"n_boot": 199}, "n-boot: .* 200 .* found 199", id="n_boot 199"),
        pytest.param(
            {"n_boot": 799, "alpha": 0.01},
            "n-boot: .*at least 800 at this alpha, found 799",
            id="n_boot below 8 / alpha",
        ),
        pytest.param({"seed": -1}, "seed: .* found -1", id="seed -1"),
        pytest.param({"top_k": 0}, "top-k: .* found 0", id="top_k 0"),
        pytest.param({"rel_level": 0}, "rel-level: .* found 0", id="rel_level 0"),
        pytest.param({"queries": "all"}, "queries: .* found all", id="queries all"),
        pytest.param({"corpus": 0}, "corpus: .* found 0", id="corpus 0"),
        pytest.param({"threads": -1}, "threads: .* found -1", id="threads -1"),
        pytest.param({"metric": []}, "metric: .* found none", id="no metric"),
        pytest.param({"metric": "nope"}, "'nope': no such metric", id="no such metric"),
        pytest.param({"metric": ["RR", "P"]}, "'P': .* a cutoff", id="no cutoff"),
    ],
)
def test_an_argument_out_of_range_is_a_usage_error(
    asked: dict[str, Any], fault: str
) -> None:
    # Files are read by several threads, mappings by none.
    run, qrels = ONE / "bm25-12.run", ONE / "qrels-12.txt"
    with pytest.raises(UsageError, match=fault):
        judged(run, qrels, **asked)


def test_the_fewest_draws_and_the_smallest_corpus_are_enough() -> None:
    assert judged(RUN, QRELS, n_boot=800, alpha=0.01).parameters.n_boot == 800
    assert judged(RUN, QRELS, n_boot=200, alpha=0.04).parameters.n_boot == 200
    assert judged(RUN, QRELS, corpus=4).benchmark.corpus_size == 4


@pytest.mark.parametrize(
    ("run", "qrels", "asked", "fault"),
    [
        pytest.param("no/run", QRELS, {}, "no/run: cannot be opened", id="no file"),
        pytest.param(RUN, "no/qrels", {}, "no/qrels: cannot be opened", id="no qrels"),
        pytest.param({}, QRELS, {}, "run: empty", id="empty run"),
        pytest.param(RUN, {}, {}, "qrels: empty", id="empty qrels"),
        pytest.param({"q8": {"d": 1.0}}, QRELS, {}, "q8", id="other ids"),
        pytest.param(
            {"q1": {"d1": float("nan")}}, QRELS, {}, "run: .*finite", id="nan score"
        ),
        pytest.param({"q1": {"d1": "1"}}, QRELS, {}, "found '1'", id="score as text"),
        pytest.param({"q1": ["d1"]}, QRELS, {}, "found list", id="list of ids"),
        pytest.param({1: {"d1": 1.0}}, QRELS, {}, "found 1", id="number as id"),
        pytest.param(RUN, {"q1": {"d1": 0.5}}, {}, "found 0.5", id="half a grade"),
        pytest.param(
            RUN, {"q1": {"d1": 0}}, {}, "found none of grade 1", id="nothing relevant"
        ),
        pytest.param(
            RUN, QRELS, {"corpus": 3}, "at least the 4 .* found 3", id="small corpus"
        ),
        pytest.param(
            RUN, QRELS, {"corpus": "no/ids"}, "no/ids: cannot", id="no corpus file"
        ),
        pytest.param(
            RUN, QRELS, {"group": "no/groups"}, "no/groups: cannot", id="no group file"
        ),
        pytest.param(
            {"q1": {}, "q8": {"d1": 1.0}},
            QRELS,
            {},
            "run: expected",
            id="only an empty list is judged",
        ),
        pytest.param(
            {"q1": {"q1": 1.0}},
            QRELS,
            {"drop_self": True},
            "run",
            id="nothing is left of the run",
        ),
    ],
)
def test_an_input_that_cannot_be_judged_is_an_input_error(
    run: Any, qrels: Any, asked: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InputError, match=fault):
        judged(run, qrels, **asked)


def test_a_file_of_which_nothing_is_left_is_an_input_error(tmp_path: Path) -> None:
    files = written(tmp_path, {"q1": {"q1": 1.0}, "q2": {"q2": 1.0}}, QRELS)
    with pytest.raises(InputError):
        judged(*files, drop_self=True)


def test_standard_input_is_not_both_run_and_qrels() -> None:
    with pytest.raises(UsageError, match="standard input"):
        judged("-", "-")


def test_a_list_left_empty_answers_no_query() -> None:
    run = {"q1": {"d1": 1.0}, "q2": {}}
    expected = report(judged({"q1": {"d1": 1.0}}))
    assert report(judged(run)) == expected
    assert expected["benchmark"]["queries_answered"] == 1


def test_no_other_metric_changes_what_is_said_of_a_result() -> None:
    # Ranks contradict and 32-bit ties lie below the first one's cutoff.
    run = {
        "q1": {"a": 9.0, "b": 8.0, "c": 1.0, "d": 1.0 - 1e-12},
        "q2": {"a": 9.0, "c": 8.0},
    }
    for metrics in (["Success@1", "AP"], ["P@3", "nDCG@10"], ["AP", "P@1"]):
        together = judged(run, QRELS, metrics)
        for metric, result in zip(metrics, together.results, strict=True):
            (alone,) = judged(run, QRELS, metric).results
            assert alone.notices == result.notices
            assert ("32-bit" in " ".join(alone.notices)) == (
                metric not in ("P@1", "Success@1")
            )
