"""The tables of docs/two-public-benchmarks.md, from NFCorpus and SciFact.

    python tests/two_benchmarks.py FOLDER

FOLDER holds nfcorpus/ and scifact-bm25/ with the runs bm25, popularity and random,
and small/*/qrels.txt. It is no part of the repository, for its licences.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from falsify_cli import gate
from falsify_cli.benchmark import Benchmark, join
from falsify_cli.read import Keep, read_qrels, read_run

BENCHMARKS = {"NFCorpus": "nfcorpus", "SciFact": "scifact-bm25"}
RUNS = ("bm25", "popularity", "random")
METRICS = ("nDCG@10", "R@5_top1")

Judged = dict[str, int]
# A list, the single label that nulls replace, and the query's own judgments.
SingleLabelMetric = Callable[[list[str], str, Judged], float]


def paths(folder: Path, benchmark: str, run: str) -> tuple[Path, Path, Path]:
    """The run, the qrels and the corpus of one cell of the table."""
    name = BENCHMARKS[benchmark]
    return (
        folder / name / f"{run}.run.gz",
        folder / "small" / name / "qrels.txt",
        folder / name / "docids.txt",
    )


def our_rows(folder: Path) -> Iterator[str]:
    """The gate on every run and metric, as rows of a Markdown table."""
    for benchmark in BENCHMARKS:
        for metric in METRICS:
            for run in RUNS:
                path, qrels, corpus = paths(folder, benchmark, run)
                found = gate(path, qrels, metric, corpus=corpus)
                gaps = " | ".join(
                    f"{null.delta:+.3f}" for null in found.nulls.values()
                ).replace("-0.000", "+0.000")
                yield (
                    f"| {benchmark} | {metric} | {run} | {found.score:.3f} | {gaps} "
                    f"| {found.verdict} |"
                )


def single_label_rows(folder: Path) -> Iterator[str]:
    """BM25 on NFCorpus when a null replaces one label and leaves the others."""
    path, qrels, _ = paths(folder, "NFCorpus", "bm25")
    benchmark = join(read_run(str(path), Keep(10)), read_qrels(str(qrels)))
    for name, metric in (
        ("one label replaced, the other ones kept", kept_labels),
        ("one label replaced, no other one", lone_label),
    ):
        score, null = single_label_gap(benchmark, metric)
        yield f"| {name} | {score:.3f} | {null:.3f} | {score - null:+.3f} |"


def kept_labels(ranking: list[str], label: str, judged: Judged) -> float:
    """nDCG@10 with gain 2^grade - 1 over the query's own judgments and the label."""
    grades = {label: 1} | judged
    ideal = _dcg(sorted(grades.values(), reverse=True)[:10])
    return _dcg([grades.get(document, 0) for document in ranking[:10]]) / ideal


def lone_label(ranking: list[str], label: str, judged: Judged) -> float:
    """nDCG@10 over the label alone."""
    return _dcg([int(document == label) for document in ranking[:10]])


def _dcg(grades: list[int]) -> float:
    return math.fsum(
        (2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1)
    )


def single_label_gap(
    benchmark: Benchmark, metric: SingleLabelMetric
) -> tuple[float, float]:
    """The run's score, and the expected score when labels are permuted.

    Every query has one label, a document of its highest grade; a permuted label is
    equally often that of any query.
    """
    judgments, ids = benchmark.judgments, benchmark.judgments.vocabulary.ids
    names = ids.to_list()
    judged: list[Judged] = [{} for _ in judgments.queries]
    for query, document, grade in zip(
        judgments.query, judgments.document, judgments.grade, strict=True
    ):
        judged[query][names[document]] = int(grade)
    labels = [max(row, key=lambda document: row[document]) for row in judged]
    lists = [
        [document or "" for document in benchmark.lists.of([query], 10)[0]]
        for query in range(len(judged))
    ]
    own = [metric(*row) for row in zip(lists, labels, judged, strict=True)]
    crossed = [
        metric(ranking, label, row)
        for ranking, row in zip(lists, judged, strict=True)
        for label in labels
    ]
    return float(np.mean(own)), float(np.mean(crossed))


def main() -> None:
    """Print both tables."""
    folder = Path(sys.argv[1])
    for rows in (our_rows(folder), single_label_rows(folder)):
        for row in rows:
            print(row)
        print()


if __name__ == "__main__":
    main()
