"""Tiny benchmarks, and the two judges of them: the program and pytrec_eval.

`cases` draws small runs and qrels with everything that can be odd about them; `graded`
takes one through the program as far as a Grading, `trec_eval_scores` through
pytrec_eval. The slow oracle is reference.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import reference as ref
from hypothesis import strategies as st

from falsify_cli.benchmark import Benchmark, join
from falsify_cli.grading import Grading, grade
from falsify_cli.metrics import parse_metric
from falsify_cli.read import Keep, qrels_of_mapping, run_of_mapping

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
Case = tuple[Run, Qrels]

# Every kernel, without and with a cutoff, and the strict metric.
METRICS = (
    *("nDCG", "nDCG@2", "AP", "AP@2", "RR", "RR@2"),
    *("P@2", "R@2", "Success@2", "R@2_top1"),
)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    queries: int = 4,
    relevant: str = "abcd",
    unjudged: str = "xy",
    grades: tuple[int, ...] = (-1, 0, 1, 2, 3),
    least: int = 1,
) -> Case:
    """Draw a run and qrels of at most so many queries.

    Lists have ties and unjudged documents, some judged queries no list and no gold,
    and the run answers a query that nobody judged. At least one judged query is
    answered, and at least one document is relevant at grade `least`.
    """
    names = [f"q{i}" for i in range(draw(st.integers(1, queries)))]
    judged = st.dictionaries(
        st.sampled_from(relevant), st.sampled_from(grades), min_size=1
    )
    listed = st.dictionaries(
        st.sampled_from(relevant + unjudged), st.sampled_from([0.0, 1, 2.5]), min_size=1
    )
    qrels = {query: draw(judged) for query in names}
    if not any(grade >= least for row in qrels.values() for grade in row.values()):
        qrels[names[0]][relevant[0]] = least
    answered = draw(st.sets(st.sampled_from([*names, "q9"])))
    answered.add(draw(st.sampled_from(names)))
    return {query: draw(listed) for query in sorted(answered)}, qrels


def random_case(seed: int, queries: int = 12) -> Case:
    """Make a case of some size: 1 to 6 of 14 documents listed, 1 to 4 of 10 judged."""
    rng = np.random.default_rng([seed, 17])
    run: Run = {}
    qrels: Qrels = {}
    for i in range(queries):
        listed = rng.permutation(14)[: rng.integers(1, 7)].tolist()
        run[f"q{i}"] = {f"d{doc}": float(-rank) for rank, doc in enumerate(listed)}
        judged = rng.permutation(10)[: rng.integers(1, 5)].tolist()
        qrels[f"q{i}"] = {f"d{doc}": int(rng.integers(0, 4)) for doc in judged}
    qrels["q0"]["d0"] = 1
    return run, qrels


def joined(run: Run, qrels: Qrels, depth: int | None = None) -> Benchmark:
    """Read two mappings, keeping the lists' top `depth`, and join them."""
    return join(run_of_mapping(run, Keep(depth)), qrels_of_mapping(qrels))


def graded(
    run: Run,
    qrels: Qrels,
    metric: str,
    *,
    level: int = 1,
    top_k: int | None = None,
    corpus: int | None = None,
    depth: int | None = None,
) -> Grading:
    """Grade a run by the program; corpus: the documents seen where None."""
    benchmark = joined(run, qrels, depth)
    size = benchmark.corpus_seen if corpus is None else corpus
    return grade(benchmark, parse_metric(metric, level), top_k=top_k, corpus=size)


def trec_eval_scores(
    metric: str,
    lists: dict[str, list[str]],
    qrels: Qrels,
    level: int = 1,
    top_k: int | None = None,
) -> dict[str, float]:
    """Score ranked lists by pytrec_eval; a judged query without a list scores 0.

    pytrec_eval-terrier 0.5.11 compares 32-bit floats, so it gets n..1 in our order; it
    crashes on a query whose only grade is -2, so it gets 0 for negative grades; it
    cannot cut for RR, so it gets lists that are cut.
    """
    import pytrec_eval  # a test without it still imports this module

    family, cutoff, strict = ref.parse(metric)
    if strict:
        qrels = {query: ref.top1(judged, level) for query, judged in qrels.items()}
        level = 1
    depth = min((k for k in (cutoff, top_k) if k is not None), default=None)
    asked, answered = _trec_eval_names(family, cutoff)
    evaluator: Any = pytrec_eval.RelevanceEvaluator(
        {q: {d: max(g, 0) for d, g in row.items()} for q, row in qrels.items() if row},
        {asked},
        relevance_level=level,
    )
    rows = evaluator.evaluate(
        {
            query: {doc: float(-rank) for rank, doc in enumerate(ids[:depth])}
            for query, ids in lists.items()
            if ids
        }
    )
    return {query: rows[query][answered] if query in rows else 0.0 for query in qrels}


def _trec_eval_names(family: str, cutoff: int | None) -> tuple[str, str]:
    """What pytrec_eval wants to be asked, and what it calls its answer."""
    plain = {"nDCG": "ndcg", "AP": "map", "RR": "recip_rank"}
    cut = {
        "nDCG": "ndcg_cut",
        "AP": "map_cut",
        "P": "P",
        "R": "recall",
        "Success": "success",
    }
    if cutoff is None or family == "RR":
        return plain[family], plain[family]
    return f"{cut[family]}.{cutoff}", f"{cut[family]}_{cutoff}"
