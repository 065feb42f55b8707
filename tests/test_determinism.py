"""Same files and seed, same report to the last digit, whatever the order of lines."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, read_in_chunks

from falsify_cli import gate
from falsify_cli.judgement import Judgement
from falsify_cli.threads import ahead, at_once

LINUX = sys.platform == "linux"
METRICS = ["nDCG@5", "AP", "R@5_top1"]


def run_lines() -> list[str]:
    """Twenty judged queries, ties and all, and five that nobody judged."""
    rng = np.random.default_rng(4)
    lines = []
    for i in [*range(20), *range(90, 95)]:
        documents = rng.permutation(40)[: rng.integers(3, 12)].tolist()
        scores = sorted(rng.integers(0, 6, len(documents)).tolist(), reverse=True)
        lines += [
            f"q{i} Q0 d{doc} {rank} {score} t"
            for rank, (doc, score) in enumerate(zip(documents, scores, strict=True), 1)
        ]
    return lines


def qrels_lines() -> list[str]:
    """Several graded documents a query; q3 and q19 without a relevant one."""
    rng = np.random.default_rng(5)
    return [
        f"q{i} 0 d{doc} {0 if i in (3, 19) else rng.integers(-1, 4)}"
        for i in range(20)
        for doc in rng.permutation(40)[:12].tolist()
    ]


def judged(
    folder: Path, run: list[str], qrels: list[str], **asked: Any
) -> dict[str, Any]:
    """The report on two files of these lines, but for the files' own hashes."""
    run_file, qrels_file = folder / "run", folder / "qrels"
    run_file.write_text("\n".join(run) + "\n")
    qrels_file.write_text("\n".join(qrels) + "\n")
    settings: dict[str, Any] = {"n_boot": 200, "metric": METRICS} | asked
    return report_of(gate(run_file, qrels_file, **settings))


def report_of(found: Judgement) -> dict[str, Any]:
    report = found.to_dict(per_query=True)
    for file in report["inputs"].values():
        assert len(file.pop("sha256") or "0" * 64) == 64
    return report


def shuffled(lines: list[str]) -> list[str]:
    return random.Random(1).sample(lines, len(lines))


def by_query_backwards(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: int(line.split()[0][1:]), reverse=True)


@pytest.mark.parametrize(
    "reorder",
    [
        pytest.param(shuffled, id="all lines shuffled"),
        pytest.param(by_query_backwards, id="queries in another order"),
        pytest.param(lambda lines: lines[::-1], id="lines backwards"),
    ],
)
def test_the_order_of_lines_changes_nothing(
    reorder: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    run, qrels = run_lines(), qrels_lines()
    plain = judged(tmp_path, run, qrels)
    assert judged(tmp_path, reorder(run), qrels) == plain
    assert judged(tmp_path, run, reorder(qrels)) == plain


def test_the_same_seed_gives_the_same_report_and_another_one_does_not(
    tmp_path: Path,
) -> None:
    run, qrels = run_lines(), qrels_lines()
    plain = judged(tmp_path, run, qrels, seed=1)
    assert judged(tmp_path, run, qrels, seed=1) == plain
    other = judged(tmp_path, run, qrels, seed=2)
    for mine, theirs in zip(plain["results"], other["results"], strict=True):
        assert mine["score"] == theirs["score"]
        for letter, null in mine["nulls"].items():
            assert null["interval"] != theirs["nulls"][letter]["interval"]
            assert null["draws_mean"] != theirs["nulls"][letter]["draws_mean"]
            if null["exact"]:
                assert null["expected"] == theirs["nulls"][letter]["expected"]


def test_unjudged_queries_are_named_in_one_order_whatever_the_runs() -> None:
    def notices(*unjudged: str) -> list[str]:
        run = {query: {"a": 1.0} for query in ("q1", *unjudged)}
        report = gate(run, {"q1": {"a": 1}}, "P@1", n_boot=200).to_dict()
        return [*report.get("notices", []), *report["results"][0]["notices"]]

    assert notices("q91", "q90", "q93", "q92") == notices("q92", "q93", "q90", "q91")


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_every_seed_from_0_is_taken_as_it_is(seed: int, tmp_path: Path) -> None:
    run, qrels = run_lines(), qrels_lines()
    plain = judged(tmp_path, run, qrels, seed=seed)
    assert plain["parameters"]["seed"] == seed
    assert judged(tmp_path, run, qrels, seed=seed + 1) != plain


def test_a_metric_is_judged_alike_alone_and_among_others(tmp_path: Path) -> None:
    run, qrels = run_lines(), qrels_lines()
    together = judged(tmp_path, run, qrels)["results"]
    for metric, result in zip(METRICS, together, strict=True):
        alone = gate(tmp_path / "run", tmp_path / "qrels", metric, n_boot=200)
        assert report_of(alone)["results"] == [result]


@pytest.mark.usefixtures("small_work_is_shared")
def test_processes_and_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, qrels, forked, fork = run_lines(), qrels_lines(), [], os.fork

    def counted() -> int:
        forked.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    # The system may not have forgotten the threads of the gate before yet.
    monkeypatch.setattr("falsify_cli.read.lines.may_fork", lambda: LINUX)
    read_in_chunks(monkeypatch, 100)
    alone = judged(tmp_path, run, qrels, threads=1, digest=False)
    assert not forked
    for threads in (2, 3, 4):
        assert alone == judged(tmp_path, run, qrels, threads=threads, digest=False)
    # At 2, 3 and 4 processes one helper fewer, for the run and for the qrels.
    assert len(forked) == (2 * (1 + 2 + 3) if LINUX else 0)


@pytest.mark.parametrize(
    ("metric", "spare", "drawing", "resampling"),
    [("AP", 0, 3, 3), ("AP", -1, 1, 1), ("bpref", 0, 1, 3)],
    ids=["large", "small", "pytrec_eval"],
)
def test_large_work_is_shared_by_threads(
    metric: str,
    spare: int,
    drawing: int,
    resampling: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, seen = run_lines(), []

    def at_once_watched(tasks: Any, threads: int, tick: Any) -> Any:
        seen.append(("at_once", threads))
        return at_once(tasks, threads, tick)

    def ahead_watched(items: Any, threads: int) -> Any:
        seen.append(("ahead", threads))
        return ahead(items, threads)

    monkeypatch.setattr("falsify_cli.nulls.at_once", at_once_watched)
    monkeypatch.setattr("falsify_cli.interval.ahead", ahead_watched)
    # 200 draws for 20 queries, of the metric and of R@10_top1; a line counts for eight.
    work = 2 * 200 * 20 + 8 * len(run)
    monkeypatch.setattr("falsify_cli.defaults.SHARED_CELLS", work - spare)
    judged(tmp_path, run, qrels_lines(), metric=metric, threads=3)
    assert seen == [("at_once", drawing), ("ahead", resampling)]


def test_mappings_in_any_order_are_judged_as_files_are(tmp_path: Path) -> None:
    run_rows: dict[str, dict[str, float]] = {}
    qrels_rows: dict[str, dict[str, int]] = {}
    for query, _, doc, _, score, _ in map(str.split, shuffled(run_lines())):
        run_rows.setdefault(query, {})[doc] = float(score)
    for query, _, doc, grade in map(str.split, shuffled(qrels_lines())):
        qrels_rows.setdefault(query, {})[doc] = int(grade)
    found = gate(run_rows, qrels_rows, METRICS, n_boot=200).to_dict(per_query=True)
    plain = judged(tmp_path, run_lines(), qrels_lines())
    assert found["results"] == plain["results"]
    assert found["benchmark"] == plain["benchmark"]


def test_the_hash_seed_of_python_changes_nothing(tmp_path: Path) -> None:
    judged(tmp_path, shuffled(run_lines()), shuffled(qrels_lines()))
    code = (
        "import sys, falsify_cli; print(falsify_cli.gate(*sys.argv[1:3], "
        "['nDCG@5', 'AP'], n_boot=200).to_dict(per_query=True))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / "run", tmp_path / "qrels"],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1
