"""Controls: systems made to order, their verdicts, and what is said of them all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, SHARED

from falsify_cli import defaults
from falsify_cli.controls import Answer, Control, Controls, Expected, Outcome, controls
from falsify_cli.errors import InputError, UsageError
from falsify_cli.judgement import Hint, Parameters
from falsify_cli.report import controls_table
from falsify_cli.report.json import render_plain
from falsify_cli.report.table import Look
from falsify_cli.systems import (
    DocumentLists,
    Ground,
    ideal_lists,
    pool_lists,
    popular_lists,
    random_lists,
    same_lists,
    sampled_lists,
    shuffled_lists,
    wrong_lists,
)
from falsify_cli.verdict import ExitCode, Verdict

Qrels = dict[str, dict[str, int]]

ASKED = Parameters(
    tau=defaults.TAU,
    alpha=defaults.ALPHA,
    n_boot=200,
    seed=0,
    top_k=None,
    rel_level=1,
    queries="judged",
    corpus=None,
    strict=False,
    drop_self=False,
    group=None,
)
CHEATS = ("random", "popular", "sampled", "shuffled", "anti-oracle", "constant")
ONE, MODULE, MANY = (
    ROOT / f"fixtures/{name}/qrels.txt"
    for name in ("stdlib-one", "stdlib-module", "stdlib-many")
)
every_fixture = pytest.mark.parametrize(
    "qrels", [ONE, MODULE, MANY], ids=["one", "module", "many"]
)
# q1 has the best document second by id, q2 nothing, q3 shares c with q1.
TINY: Qrels = {
    "q1": {"a": 1, "b": 0, "c": 3, "d": -1},
    "q2": {"a": 0},
    "q3": {"c": 1, "e": 2},
}


def ground(
    qrels: Qrels | Path, metric: str = "nDCG@10", seed: int = 0, **asked: Any
) -> Ground:
    source = qrels if isinstance(qrels, dict) else str(qrels)
    return Ground.of(source, metric, replace(ASKED, seed=seed, **asked))


def spelled(ground: Ground, lists: DocumentLists) -> list[list[str]]:
    return [ground.universe.names(documents) for documents in lists]


def single_answers(count: int) -> Qrels:
    return {f"q{i:03}": {f"d{i:03}": 1} for i in range(count)}


# ---- the systems -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "level", "lists"),
    [
        ("nDCG@10", 1, [["c", "a"], [], ["e", "c"]]),
        ("nDCG@10", 2, [["c", "a"], [], ["e", "c"]]),
        ("nDCG@1", 1, [["c"], [], ["e"]]),
        ("AP", 1, [["a", "c"], [], ["c", "e"]]),
        ("AP", 2, [["c"], [], ["e"]]),
        ("R@5_top1", 1, [["c"], [], ["e"]]),
    ],
)
def test_the_oracle_lists_the_gold_of_the_metric_best_first(
    metric: str, level: int, lists: list[list[str]]
) -> None:
    tiny = ground(TINY, metric, rel_level=level)
    assert spelled(tiny, ideal_lists(tiny)) == lists


def test_popular_documents_are_those_of_most_queries_in_the_order_of_their_codes() -> (
    None
):
    tiny = ground(TINY)
    # c is relevant to two queries, a and e to one each.
    assert spelled(tiny, popular_lists(tiny)) == [["c", "a", "e"]] * 3


def test_one_score_for_all_puts_the_largest_ids_on_top() -> None:
    tiny = ground(TINY, "P@3")
    assert spelled(tiny, same_lists(tiny)) == [["e", "d", "c"]] * 3
    assert spelled(tiny, pool_lists(tiny)) == [["d", "c", "b"], ["a"], ["e", "c"]]


def test_wrong_documents_are_judged_ones_where_there_are_any() -> None:
    tiny = ground(TINY)
    wrong = spelled(tiny, wrong_lists(tiny, seed=0))
    assert [set(row) for row in wrong] == [{"b", "d"}, {"a"}, {"a", "b", "d"}]


def test_random_lists_draw_every_document_of_the_corpus_alike() -> None:
    many = ground(single_answers(2000), "P@3", corpus=10_000)
    drawn = random_lists(many, seed=0)
    assert all(len(set(row.tolist())) == 3 for row in drawn)
    numbers = np.concatenate(drawn)
    # 6000 uniform numbers below 10,000 average 5000, with a standard error of 37.
    assert abs(numbers.mean() - 4999.5) < 5 * 37
    assert numbers.max() < 10_000
    names = many.universe.names(np.array([0, 1999, 2000]))
    assert names == ["d000", "d999", "unseen-2000"]


def test_a_made_up_id_is_nobody_elses(tmp_path: Path) -> None:
    odd = ground({"q": {"unseen-1": 1}}, corpus=3)
    assert odd.universe.names(np.arange(3)) == ["unseen-1", "_unseen-1", "_unseen-2"]


def test_the_corpus_of_a_file_holds_the_judged_documents_as_well(
    tmp_path: Path,
) -> None:
    (tmp_path / "corpus").write_text("z\nc\na\ny\nx\nw\n")
    tiny = ground(TINY, corpus=str(tmp_path / "corpus"))
    names = tiny.universe.names(np.arange(tiny.universe.size))
    assert sorted(names) == [*"abcdewxyz"]
    assert "3 of the judged documents are not in the corpus file" in str(tiny.notices)


def test_sampled_lists_begin_with_a_label_as_often_as_it_is_one() -> None:
    # a is relevant to 3 of 6 (query, document) pairs, b to 2, c to 1.
    answers = ["a", "a", "a", "b", "b", "c"]
    qrels = {f"q{i:04}": {answers[i % 6]: 1} for i in range(6000)}
    six = ground(qrels)
    lists = sampled_lists(six, seed=0)
    assert {len(set(row.tolist())) for row in lists} == {3}
    first = Counter(names[0] for names in spelled(six, lists))
    assert [first[d] / 6000 for d in "abc"] == pytest.approx(
        [1 / 2, 1 / 3, 1 / 6], abs=0.03
    )
    # Second after a, b comes in proportion to what is left: 2 to 1.
    second = Counter(n[1] for n in spelled(six, lists) if n[0] == "a")
    assert second["b"] / second.total() == pytest.approx(2 / 3, abs=0.04)


@pytest.mark.parametrize("seed", range(20))
def test_nobody_keeps_its_gold_set_while_none_has_more_than_half(seed: int) -> None:
    answers = "aaaabbbc"
    qrels = {f"q{i}": {answer: 1} for i, answer in enumerate(answers)}
    shuffled = spelled(eight := ground(qrels), shuffled_lists(eight, seed))
    assert all(row[0] != answer for row, answer in zip(shuffled, answers, strict=True))
    assert sorted(row[0] for row in shuffled) == sorted(answers)


def test_as_few_as_can_be_keep_a_gold_set_that_most_have() -> None:
    answers = "aaaaabbc"
    qrels = {f"q{i}": {answer: 1} for i, answer in enumerate(answers)}
    shuffled = spelled(eight := ground(qrels), shuffled_lists(eight, seed=0))
    kept = [row[0] == answer for row, answer in zip(shuffled, answers, strict=True)]
    # Five have a, and there are three other answers to give them.
    assert sum(kept) == 2


# ---- their verdicts ---------------------------------------------------------------


@pytest.mark.parametrize("metric", ["nDCG@10", "AP", "R@5_top1"])
@every_fixture
def test_on_the_fixtures_good_systems_pass_and_no_cheat_does(
    qrels: Path, metric: str
) -> None:
    found = controls(ground(qrels, metric))
    told = {c.name: c.result.own_verdict for c in found}
    assert list(told) == ["oracle", "good", *CHEATS]
    assert told["oracle"] is told["good"] is Verdict.PASS
    # 80 queries and a score of 0 or 1 are too few for every cheat of stdlib-many.
    sure = qrels != MANY or metric != "R@5_top1"
    caught = sum(told[name] is Verdict.FAIL for name in CHEATS)
    assert caught == len(CHEATS) if sure else caught >= 4
    assert found.answer is (Answer.YES if caught == len(CHEATS) else Answer.PARTLY)
    assert found.exit_code is ExitCode.PASS
    scores = {c.name: c.result.score for c in found}
    assert scores["oracle"] == pytest.approx(1)
    assert 0.55 <= scores["good"] <= 0.65
    assert scores["anti-oracle"] == 0


def test_query_blind_systems_have_no_gap_to_the_permuted_labels() -> None:
    found = {c.name: c for c in controls(ground(MODULE))}
    for name in ("popular", "constant"):
        assert found[name].result.nulls["A"].delta == pytest.approx(0, abs=1e-12)


def test_the_constant_score_is_broken_by_ids() -> None:
    # By hand: e, d, c, b, a. DCG of q1: 3 / log2(4) + 1 / log2(6), ideal
    # 3 + 1 / log2(3); of q3: 2 + 1 / log2(4), ideal 2 + 1 / log2(3); q2 scores 0.
    found = {c.name: c.result for c in controls(ground(TINY))}
    log2 = np.log2
    first = (3 / log2(4) + 1 / log2(6)) / (3 + 1 / log2(3))
    third = (2 + 1 / log2(4)) / (2 + 1 / log2(3))
    assert found["constant"].score == pytest.approx((first + third) / 3)
    # The pool of q1: d, c, b, a; of q3: e, c.
    first = (3 / log2(3) + 1 / log2(5)) / (3 + 1 / log2(3))
    assert found["pool"].score == pytest.approx((first + 1) / 3)


def test_the_pool_is_no_control_where_only_relevant_documents_are_judged() -> None:
    assert "pool" not in {c.name for c in controls(ground(single_answers(5)))}
    pool = next(c for c in controls(ground(TINY)) if c.name == "pool")
    assert (pool.expected, pool.outcome) == (Expected.ANY, Outcome.REPORTED)


def test_what_lists_nothing_is_left_out() -> None:
    found = controls(ground({"q": {"d": 1}}))
    assert "anti-oracle" not in {c.name for c in found}
    assert found.answer is Answer.NO


def test_few_queries_are_no_fault_of_the_benchmark() -> None:
    found = controls(ground(single_answers(12), corpus=1000))
    assert {c.outcome for c in found.cheats} == {Outcome.OPEN}
    assert (found.answer, found.exit_code) == (Answer.NO, ExitCode.PASS)


def test_a_seed_gives_the_same_bytes_and_another_one_other_systems() -> None:
    one, again, other = (
        render_plain(controls(ground(MODULE, seed=seed)).to_dict())
        for seed in (3, 3, 4)
    )
    assert one == again
    scores = [
        {c["name"]: c["score"] for c in json.loads(text)["controls"]}
        for text in (one, other)
    ]
    assert scores[0]["random"] != scores[1]["random"]
    assert scores[0]["sampled"] != scores[1]["sampled"]
    assert scores[0]["popular"] == scores[1]["popular"]


def test_groups_are_resampled_together(tmp_path: Path) -> None:
    # 60 queries that are 10 needs: as queries the oracle passes, as needs it need not.
    qrels = single_answers(60)
    (tmp_path / "groups").write_text(
        "".join(f"{query} {i % 4}\n" for i, query in enumerate(qrels))
    )
    alone = controls(ground(qrels))
    grouped = controls(ground(qrels, group=str(tmp_path / "groups")))
    assert alone.controls[0].result.own_verdict is Verdict.PASS
    assert grouped.controls[0].result.own_verdict is Verdict.UNDER_NS
    assert "60 queries in 4 groups" in controls_table.render(grouped)


# ---- what is said of them all -----------------------------------------------------


def with_verdicts(**verdicts: Verdict) -> Controls:
    """Real controls with other verdicts: PASS, or FAIL where they are cheats."""
    found = controls(ground(single_answers(5)))

    def changed(control: Control) -> Control:
        good = control.expected is Expected.PASS
        verdict = verdicts.get(control.name, Verdict.PASS if good else Verdict.FAIL)
        result = replace(control.result, own_verdict=verdict)
        return replace(control, judgement=replace(control.judgement, results=(result,)))

    return replace(found, controls=tuple(map(changed, found)))


PASS, FAIL, UNDER_NS = Verdict.PASS, Verdict.FAIL, Verdict.UNDER_NS
NONE_CAUGHT = dict.fromkeys(CHEATS, UNDER_NS)


@pytest.mark.parametrize(
    ("verdicts", "answer", "code", "words"),
    [
        pytest.param({}, "YES", 0, "all 6 cheats fail", id="all right"),
        pytest.param(
            {"popular": PASS}, "NO", 1, "popular should not pass and does", id="a cheat"
        ),
        pytest.param(
            {"popular": PASS, "random": PASS},
            *("NO", 1, "random and popular should not pass and do:"),
            id="two cheats",
        ),
        pytest.param(
            {"good": FAIL}, "NO", 1, "good should pass and does not", id="good"
        ),
        pytest.param(
            {"popular": UNDER_NS}, "PARTLY", 0, "catch 5 of 6 cheats", id="one open"
        ),
        pytest.param(NONE_CAUGHT, "NO", 0, "catch no cheat", id="none caught"),
        pytest.param(
            {"good": UNDER_NS}, "PARTLY", 0, "good cannot be told", id="good open"
        ),
        pytest.param(
            {**NONE_CAUGHT, "popular": PASS}, "NO", 1, "popular should", id="the worst"
        ),
    ],
)
def test_one_answer_for_all(
    verdicts: dict[str, Verdict], answer: str, code: int, words: str
) -> None:
    found = with_verdicts(**verdicts)
    assert (str(found.answer), int(found.exit_code)) == (answer, code)
    assert words in controls_table.sentence(found)
    text = " ".join(controls_table.render(found).split())
    assert f"{answer} {controls_table.sentence(found)}" in text
    plain = found.to_dict()
    assert (plain["answer"], plain["exit_code"]) == (answer, code)


def test_hints_name_only_what_cannot_be_told() -> None:
    text = controls_table.render(controls(ground(single_answers(12), corpus=1000)))
    assert "queries of this kind would tell" in text
    assert "hint" not in controls_table.render(controls(ground(ONE)))


@pytest.mark.parametrize(
    ("name", "numbers", "needed"),
    [
        ("good", {"A": 30, "B": 500}, 500),
        ("good", {"A": None, "B": 500}, None),
        ("popular", {"A": 30, "B": 500}, 30),
        ("popular", {"A": None, "B": 500}, 500),
        ("popular", {"A": None}, None),
        ("good", {}, None),
    ],
)
def test_a_good_system_has_to_beat_all_nulls_a_cheat_to_be_caught_by_one(
    name: str, numbers: dict[str, int | None], needed: int | None
) -> None:
    found = {c.name: c for c in controls(ground(single_answers(5)))}[name]
    hints = tuple(Hint(letter, number, "") for letter, number in numbers.items())
    result = replace(found.result, hints=hints)
    judgement = replace(found.judgement, results=(result,))
    assert replace(found, judgement=judgement).queries_needed == needed


@pytest.mark.parametrize("ascii", [False, True])
def test_a_report_is_80_columns_wide(ascii: bool) -> None:
    many = {f"q{i}": {f"{'é' * 90}{i}": 1, "x": 0} for i in range(9)}
    text = controls_table.render(controls(ground(many)), Look(ascii=ascii))
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii() or not ascii


def test_colour_changes_no_letter() -> None:
    found = controls(ground(TINY))
    colored = controls_table.render(found, Look(color=True))
    assert "\x1b[" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in plain.splitlines()] == controls_table.render(
        found
    ).splitlines()


# ---- mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rel_level": 2}, "expected a relevant document, found none of grade 2"),
        ({"corpus": 4}, "corpus: expected a corpus of at least the 5 documents"),
    ],
)
def test_qrels_that_cannot_be_used_are_refused(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        controls(ground(single_answers(5), "AP", **asked))


@pytest.mark.parametrize(
    ("metric", "asked", "message"),
    [
        ("nDGC@10", {}, "did you mean"),
        ("AP", {"tau": 2.0}, "tau: expected"),
        ("AP", {"n_boot": 10}, "n-boot: expected"),
        ("AP", {"seed": -1}, "seed: expected"),
        ("AP", {"top_k": 0}, "top-k: expected"),
        ("AP", {"corpus": 0}, "corpus: expected a file, or a number"),
        ("AP", {"rel_level": 0}, "rel-level: expected"),
        ("AP", {"group": "-"}, "group: expected a file"),
        ("AP", {"group": "-", "corpus": "-"}, "standard input: expected one file"),
    ],
)
def test_arguments_out_of_range_are_refused(
    metric: str, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        controls(ground(single_answers(5), metric, **asked))


# ---- the command ------------------------------------------------------------------


def run(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "falsify_cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1"},
    )


NAME = "fixtures/stdlib-module/qrels.txt"
QUICK = ("--n-boot", "200")


def test_the_command_prints_a_table_and_exits_0() -> None:
    done = run("controls", NAME, *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == NAME
    assert lines[3].split()[:2] == ["nDCG@10", "score"]
    assert [line.split()[0] for line in lines[4:12]] == ["oracle", "good", *CHEATS]
    assert "\nYES     " in done.stdout


def test_the_command_writes_json_and_one_line(tmp_path: Path) -> None:
    text = MODULE.read_text()
    file = tmp_path / "report.json"
    done = run(
        *("controls", "-", *QUICK, "--format", "json", "-o", file, "-q"), stdin=text
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "YES  standard input  nDCG@10  6 of 6 cheats caught\n"
    found = json.loads(file.read_text())
    assert found["schema"] == "falsify.controls/1"
    assert found["inputs"]["qrels"]["name"] == "-"
    assert [c["name"] for c in found["controls"]] == ["oracle", "good", *CHEATS]
    oracle = found["controls"][0]
    assert (oracle["verdict"], oracle["outcome"]) == ("PASS", "yes")
    assert set(oracle["nulls"]) == set("ABCD")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["controls"], "QRELS"),
        (["controls", "no.txt"], "no.txt: cannot be opened"),
        (["controls", NAME, "-l", "2", "-m", "AP"], "expected a relevant document"),
        (["controls", NAME, "--group", NAME], "expected a query id"),
        (["controls", NAME, "-o", NAME], "is the input"),
        (["controls", NAME, "-m", "num_rel"], "no null models"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], fragment: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert fragment in done.stderr


def test_a_benchmark_that_takes_good_for_dumb_exits_1(tmp_path: Path) -> None:
    # One answer a query and a hundred places: P@100 is 0.01 at its best.
    file = tmp_path / "qrels"
    file.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(80)))
    done = run("controls", file, "-m", "P@100", "--corpus", "10000", *QUICK)
    assert done.returncode == 1
    assert "oracle and good should pass and do not" in " ".join(done.stdout.split())


# ---- real benchmarks --------------------------------------------------------------

SMALL = (
    *("small/cacm/qrels.txt", "small/dl19/qrels.txt"),
    "small/trec-covid-r1/qrels.txt",
)
LARGER = (
    *("small/cranfield-bm25/qrels.txt", "small/scifact-bm25/qrels.txt"),
    *("small/touche2020/qrels.txt", "small/nfcorpus/qrels.txt"),
)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("qrels", "metric"),
    [
        *((qrels, metric) for qrels in SMALL for metric in ("AP", "P@10", "R@5_top1")),
        *((qrels, "nDCG@10") for qrels in (*SMALL, *LARGER)),
    ],
)
def test_no_cheat_passes_and_no_oracle_fails(qrels: str, metric: str) -> None:
    found = controls(ground(SHARED / "data" / qrels, metric))
    assert found.exit_code is ExitCode.PASS
    told = {c.name: c.result.own_verdict for c in found}
    assert told["oracle"] is Verdict.PASS
    assert told["good"] is Verdict.PASS
