"""Real runs: each query as pytrec_eval scores it, means as trec_eval prints them."""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import reference as ref
from conftest import SHARED
from tiny import Qrels, Run, trec_eval_scores

from falsify_cli.benchmark import join
from falsify_cli.errors import InputError
from falsify_cli.grading import grade
from falsify_cli.metrics import parse_metric
from falsify_cli.read import read_qrels, read_run

pytestmark = pytest.mark.shared
DATA = SHARED / "data"
METRICS = ("nDCG@10", "AP", "RR", "R@100")


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of the table in data/README.md.

    queries: in the run, in the qrels, in both. means: of METRICS over all judged
    queries, by trec_eval 10.0-rc3 (commit f425365), None where it refuses the run.
    """

    run: str
    qrels: str
    queries: tuple[int, ...]
    means: tuple[float, ...] | None


def pairs() -> list[Any]:
    readme = DATA / "README.md"
    if not readme.exists():
        return [pytest.param(Pair("", "", (), None), id="absent")]
    rows = list(rows_of(readme.read_text(encoding="utf-8")))
    return [pytest.param(row, id=f"{row.run}-{row.qrels}") for row in rows]


def rows_of(readme: str) -> Iterator[Pair]:
    """Read the rows whose first cell names a run."""
    columns: list[str] = []
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "run":
            columns = cells
        elif re.fullmatch(r"\S+\.run(\.gz)?", cells[0]) and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            means = [row[metric] for metric in METRICS]
            refused = all(re.fullmatch(r"\(.*\)", mean) for mean in means)
            yield Pair(
                row["run"],
                row["qrels"],
                tuple(map(int, row["queries"].split("/"))),
                None if refused else tuple(map(float, means)),
            )


PAIRS = pairs()
REFUSED = [pair for pair in PAIRS if pair.values[0].means is None]
SCORED = [pair for pair in PAIRS if pair not in REFUSED]


def lines_of(path: Path) -> Iterator[list[str]]:
    """Cut a file into fields, plainly: the oracle has a reader of its own."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            yield line.split()


@functools.lru_cache(maxsize=2)
def plain_qrels(name: str) -> Qrels:
    qrels: Qrels = {}
    for query, _, doc, grade_ in lines_of(DATA / name):
        qrels.setdefault(query, {})[doc] = int(grade_)
    return qrels


def plain_lists(name: str, judged: Qrels) -> dict[str, list[str]]:
    run: Run = {}
    for query, _, doc, _, score, *_ in lines_of(DATA / name):
        if query in judged:
            run.setdefault(query, {})[doc] = float(score)
    return {query: ref.ranked(scores) for query, scores in run.items()}


def test_the_table_has_the_rows_it_had() -> None:
    # Counted by hand with grep: 132 rows, two of them with values in brackets.
    assert (len(PAIRS), len(REFUSED)) == (132, 2)


@pytest.mark.parametrize("pair", SCORED)
def test_every_query_and_every_mean_are_those_of_trec_eval(pair: Pair) -> None:
    assert pair.means is not None
    run, qrels = read_run(str(DATA / pair.run)), read_qrels(str(DATA / pair.qrels))
    benchmark = join(run, qrels)
    answered = int(benchmark.answered.sum())
    assert (len(run.queries), len(qrels.queries), answered) == pair.queries
    judged = plain_qrels(pair.qrels)
    lists = plain_lists(pair.run, judged)
    for name, mean in zip(METRICS, pair.means, strict=True):
        metric = parse_metric(name)
        grading = grade(benchmark, metric, top_k=None, corpus=benchmark.corpus_seen)
        theirs = trec_eval_scores(name, lists, judged)
        mine = dict(zip(qrels.queries, grading.scores.tolist(), strict=True))
        assert mine == pytest.approx(theirs, abs=1e-12), name
        # trec_eval prints four places, by C's rounding of the double.
        assert f"{grading.score:.4f}" == f"{mean:.4f}", name


@pytest.mark.parametrize("pair", REFUSED)
def test_a_run_with_repeated_documents_is_refused_as_trec_eval_does(
    pair: Pair,
) -> None:
    with pytest.raises(InputError, match="expected a document once a query"):
        read_run(str(DATA / pair.run))
