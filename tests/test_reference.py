"""The oracle itself against pytrec_eval, scipy, hand-worked values and enumeration."""

# The nulls are called A, B, C and D everywhere, so test names carry these letters.
# ruff: noqa: N802

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference as ref

pytrec_eval: Any = pytest.importorskip("pytrec_eval")
stats: Any = pytest.importorskip("scipy.stats")

SHARED = Path(__file__).parents[2] / "shared"
FAMILIES = ("nDCG@2", "nDCG", "AP@2", "AP", "RR@2", "RR", "P@2", "R@2", "Success@2")
DOCUMENTS = "abcdefgh"
Q = 0.05 / 8


def random_case(
    seed: int, *, queries: int = 3, docs: int = 4, grades: tuple[int, ...] = (0, 1, 2)
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Return a small run and qrels; the first query has gold and an answer."""
    rng = np.random.default_rng([seed, 99])
    names = list(DOCUMENTS[:docs])
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for i in range(queries):
        found = rng.permutation(names)[: rng.integers(1, docs + 1)].tolist()
        run[f"q{i}"] = {doc: float(rng.integers(0, 3)) for doc in found}
        judged = rng.permutation(names)[: rng.integers(1, docs + 1)].tolist()
        qrels[f"q{i}"] = {doc: int(rng.choice(grades)) for doc in judged}
    qrels["q0"]["a"] = 2
    return run, qrels


# ---- order, gold, score --------------------------------------------------------


def test_ties_go_by_utf8_bytes_descending_and_scores_compare_as_doubles() -> None:
    # U+E000 is EE 80 80 in UTF-8 and U+10000 is F0 90 80 80; UTF-16 turns them round.
    assert ref.ranked({"\ue000": 1.0, "\U00010000": 1.0}) == ["\U00010000", "\ue000"]
    # One double apart, the same 32-bit float.
    assert ref.ranked({"z": 1.0, "a": 1.0 + 2**-52}) == ["a", "z"]
    assert ref.ranked({"9": 0.0, "10": -0.0}) == ["9", "10"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # list x a b c d; gold a:2 b:1 e:3 (e not found), d judged -1.
        # DCG@3 = 2/log2(3) + 1/2; ideal@3 = 3 + 2/log2(3) + 1/2.
        pytest.param(
            "nDCG@3",
            (2 / math.log2(3) + 0.5) / (3.5 + 2 / math.log2(3)),
            id="graded, ideal from all judgments",
        ),
        pytest.param("nDCG@1", 0.0, id="nothing at rank 1"),
        pytest.param("AP", (1 / 2 + 2 / 3) / 3, id="precision at ranks 2 and 3"),
        pytest.param("AP@2", (1 / 2) / 3, id="cut before b"),
        pytest.param("RR", 1 / 2, id="first at rank 2"),
        pytest.param("RR@1", 0.0, id="cut before the first"),
        pytest.param("P@10", 2 / 10, id="short list, full denominator"),
        pytest.param("R@2", 1 / 3, id="one of three"),
        pytest.param("Success@1", 0.0, id="no success at 1"),
        pytest.param("Success@2", 1.0, id="success at 2"),
        pytest.param("R@5_top1", 0.0, id="strict: only e counts"),
    ],
)
def test_score_agrees_with_values_worked_by_hand(metric: str, expected: float) -> None:
    gold = {"a": 2, "b": 1, "e": 3, "d": -1}
    assert ref.score(metric, list("xabcd"), gold) == pytest.approx(expected, abs=1e-15)


def test_level_moves_every_metric_but_ndcg() -> None:
    gold = {"a": 1, "b": 2}
    # trec_eval -l 2 on the list a, b: nDCG unmoved, the others see b alone.
    ndcg = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert ref.score("nDCG@10", ["a", "b"], gold, level=2) == pytest.approx(ndcg)
    assert ref.score("AP", ["a", "b"], gold, level=2) == 0.5
    assert ref.score("RR", ["a", "b"], gold, level=2) == 0.5
    assert ref.score("R@1", ["a", "b"], gold, level=2) == 0.0


def test_top1_keeps_the_best_grade_then_the_smallest_id_in_bytes() -> None:
    assert ref.top1({"z": 3, "é": 3, "a": 2}) == {"z": 1}
    assert ref.top1({"10": 1, "9": 1}) == {"10": 1}
    assert ref.top1({"a": 1}, level=2) == {}
    assert ref.top1({}) == {}


def trec_name(metric: str) -> tuple[str, str]:
    """Return pytrec_eval's name of a measure to ask for, and of its result."""
    family, cutoff, _ = ref.parse(metric)
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


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("metric", [*FAMILIES, "R@2_top1", "nDCG@5", "P@5", "RR@3"])
def test_score_agrees_with_pytrec_eval_on_each_query(metric: str, level: int) -> None:
    # pytrec_eval-terrier 0.5.11. It compares 32-bit floats, so it gets n..1 in our
    # order; it crashes on negative grades, so it gets 0; it cannot cut for RR.
    for seed in range(15):
        run, qrels = random_case(seed, queries=4, docs=7, grades=(-2, -1, 0, 1, 2, 3))
        lists = {query: ref.ranked(run[query]) for query in run}
        oracle_qrels = {
            query: {doc: max(grade, 0) for doc, grade in qrels[query].items()}
            for query in qrels
        }
        oracle_level = level
        family, cutoff, strict = ref.parse(metric)
        if strict:
            oracle_qrels = {query: ref.top1(qrels[query], level) for query in qrels}
            oracle_level = 1
        if family == "RR":
            lists = {query: lists[query][:cutoff] for query in lists}
        asked, answered = trec_name(metric.removesuffix("_top1"))
        evaluator = pytrec_eval.RelevanceEvaluator(
            {query: oracle_qrels[query] or {"none": 0} for query in oracle_qrels},
            {asked},
            relevance_level=oracle_level,
        )
        oracle = evaluator.evaluate(
            {
                q: {d: float(len(lists[q]) - i) for i, d in enumerate(lists[q])}
                for q in run
            }
        )
        for query, judged in qrels.items():
            ours = ref.score(metric, ref.ranked(run[query]), judged, level)
            assert ours == pytest.approx(oracle[query][answered], abs=1e-12), seed


# ---- the benchmark -------------------------------------------------------------


def test_judged_queries_stay_and_unjudged_ones_go() -> None:
    run = {"q1": {"a": 1.0}, "q9": {"a": 1.0}}
    qrels = {"q2": {"a": 1}, "q1": {"a": 1}, "q3": {"b": 0}}
    bench = ref.benchmark(run, qrels, "Success@1")
    assert bench.queries == ["q1", "q2", "q3"]
    assert bench.rankings == {"q1": ["a"], "q2": [], "q3": []}
    assert bench.golds == {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {}}
    assert ref.mean_score(run, qrels, "Success@1") == pytest.approx(1 / 3)
    assert ref.mean_score(run, qrels, "Success@1", answered_only=True) == 1.0


def test_top_k_cuts_the_list_and_leaves_the_ideal() -> None:
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 1}}
    ideal = 1 + 1 / math.log2(3)
    assert ref.mean_score(run, qrels, "nDCG@10", top_k=1) == pytest.approx(1 / ideal)


@pytest.mark.parametrize(
    ("qrels", "fault"),
    [
        pytest.param({"q2": {"a": 1}}, "no query", id="none shared"),
        pytest.param({}, "no query", id="no judgments"),
        pytest.param({"q1": {"a": 0}}, "no document", id="nothing relevant"),
    ],
)
def test_nothing_to_evaluate_is_an_error(
    qrels: dict[str, dict[str, int]], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        ref.benchmark({"q1": {"a": 1.0}}, qrels, "P@1")


# ---- worked examples -----------------------------------------------------------


def worked_examples() -> list[Any]:
    path = SHARED / "worked_examples.json"
    if not path.exists():
        reason = pytest.mark.skip(
            reason="the shared folder is not beside this checkout"
        )
        return [pytest.param({}, id="absent", marks=reason)]
    examples = json.loads(path.read_text(encoding="utf-8"))
    return [pytest.param(example, id=example["name"]) for example in examples]


def run_of(lines: list[str]) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for query, _, doc, _, score, _ in map(str.split, lines):
        run.setdefault(query, {})[doc] = float(score)
    return run


def qrels_of(lines: list[str]) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for query, _, doc, grade in map(str.split, lines):
        qrels.setdefault(query, {})[doc] = int(grade)
    return qrels


@pytest.mark.shared
@pytest.mark.parametrize("example", worked_examples())
def test_worked_example_is_met(example: dict[str, Any]) -> None:
    run, qrels = run_of(example["run"]), qrels_of(example["qrels"])
    metric, top_k, corpus = example["metric"], example["top_k"], example["corpus"]
    bench = ref.benchmark(run, qrels, metric, top_k=top_k)
    scores = ref.mean(bench.scores().values())
    enumerated = {
        "A": ref.mean(ref.null_scores_A(bench)),
        "B": ref.mean(ref.query_means_B(bench).values()),
        "C": ref.mean(ref.query_means_C(bench, corpus).values()),
        "D": ref.mean(ref.query_means_D(bench).values()),
    }
    assert len(bench.queries) == example["queries"]
    assert scores == pytest.approx(example["score"], abs=1e-12)
    assert ref.p_value_A_exact(run, qrels, metric, top_k=top_k) == example["p_A"]
    for null, found in {"score": scores, **enumerated}.items():
        exact = example["exact"][null]
        if exact is not None:
            assert found == Fraction(exact), null
    for null, found in enumerated.items():
        assert found == pytest.approx(example["null"][null], abs=1e-12), null
        d = ref.differences(
            run, qrels, metric, null, top_k=top_k, corpus_size=corpus
        ).values()
        assert ref.mean(d) == pytest.approx(example["delta"][null], abs=1e-12), null
        if len({frozenset(gold.items()) for gold in bench.golds.values()}) == 1:
            assert null == "C" or max(map(abs, d)) == 0  # U = 1: they say nothing


# ---- nulls: closed forms against enumeration -----------------------------------


@pytest.mark.parametrize("metric", [*FAMILIES, "R@2_top1"])
def test_all_cells_mean_is_the_mean_over_all_permutations(metric: str) -> None:
    for seed in range(4):
        case = random_case(seed, queries=4)
        assert ref.closed_A(*case, metric) == pytest.approx(
            ref.expected_A(*case, metric), abs=1e-12
        )


@pytest.mark.parametrize("metric", [*FAMILIES, "R@2_top1"])
def test_B_is_the_mean_over_all_joint_choices(metric: str) -> None:
    for seed in range(4):
        case = random_case(seed)
        joint = ref.null_scores_B(ref.benchmark(*case, metric))
        assert ref.expected_B(*case, metric) == pytest.approx(
            float(ref.mean(joint)), abs=1e-12
        )


def test_gold_sets_differ_by_grade_only_where_the_metric_looks_at_grades() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 2}, "q3": {"a": 1}, "q4": {"a": 0}}
    graded = ref.distinct_gold_sets(ref.gold_sets(qrels, "nDCG@1"))
    assert graded == [{"a": 1}, {"a": 2}]
    assert ref.distinct_gold_sets(ref.gold_sets(qrels, "P@1")) == [{"a": 1}]


@pytest.mark.parametrize("top_k", [None, 1, 3, 9])
@pytest.mark.parametrize("metric", [*FAMILIES, "AP@4", "P@9", "RR@4", "R@3_top1"])
def test_closed_form_of_C_is_the_mean_over_all_lists(
    metric: str, top_k: int | None
) -> None:
    for seed, corpus in [(0, 4), (1, 5), (2, 6)]:
        case = random_case(seed)
        assert ref.closed_C(*case, metric, corpus, top_k) == pytest.approx(
            ref.expected_C(*case, metric, corpus, top_k), abs=1e-12
        )


def test_C_takes_each_lists_own_length_for_a_metric_without_cutoff() -> None:
    run = {"q1": {"x": 2.0, "y": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    # q1: a is at rank 1 or 2 with chance 1/4 each: (1 + 1/2)/4. q2: length 0.
    assert ref.expected_C(run, qrels, "RR", 4) == pytest.approx(3 / 16)
    # A given K holds for every list, answered or not.
    assert ref.expected_C(run, qrels, "RR", 4, top_k=1) == pytest.approx(1 / 4)


def test_C_on_one_document_and_one_query() -> None:
    run, qrels = {"q": {"a": 1.0}}, {"q": {"a": 1}}
    assert ref.closed_C(run, qrels, "AP@1", 1) == 1.0
    assert ref.expected_C(run, qrels, "AP@1", 1) == 1.0


@pytest.mark.parametrize("metric", ["nDCG@2", "nDCG", "P@2", "R@1", "R@3"])
def test_closed_form_of_D_is_the_mean_over_orders_u_and_v(metric: str) -> None:
    capped = 0
    for seed in range(12):
        case = random_case(seed, grades=(0, 1, 2, 3))
        capped += len(ref.capped_queries(ref.gold_sets(case[1], metric)))
        assert ref.closed_D(*case, metric) == pytest.approx(
            ref.expected_D(*case, metric), abs=1e-12
        )
    assert capped >= 3  # the cases reach min(1, g w)


@pytest.mark.parametrize("metric", [*FAMILIES, "R@2_top1"])
def test_D_is_the_plain_draw_where_queries_have_one_gold_document(metric: str) -> None:
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 2.0, "a": 1.0}, "q3": {"a": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"a": 2}, "q3": {"b": 1}, "q4": {"c": 3}}
    enumerated = ref.expected_D(run, qrels, metric)
    assert ref.closed_D(run, qrels, metric) == pytest.approx(enumerated, abs=1e-12)
    assert ref.expected_A(run, qrels, metric) == pytest.approx(enumerated, abs=1e-12)
    # One empty gold set: D keeps its 0 for that query, A deals the 0 to anyone.
    qrels["q4"] = {"c": 0}
    enumerated = ref.expected_D(run, qrels, metric)
    assert ref.closed_D(run, qrels, metric) == pytest.approx(enumerated, abs=1e-12)


def test_D_draws_a_capped_label_once_and_keeps_the_number_of_relevant() -> None:
    # Memberships a, a, b: w_a = 2/3, so q1 (g = 2) has g w_a = 4/3, capped to 1, and
    # b is drawn with chance 2/3. R@1 of the list a: q1 1/2 for sure; q2 2/3.
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
    bench = ref.benchmark(run, qrels, "R@1")
    assert ref.query_means_D(bench) == {"q1": Fraction(1, 2), "q2": Fraction(2, 3)}
    run = {"q1": {"b": 1.0}, "q2": {"b": 1.0}}
    bench = ref.benchmark(run, qrels, "R@1")
    assert ref.query_means_D(bench) == {"q1": Fraction(1, 3), "q2": Fraction(1, 3)}
    with pytest.raises(ValueError, match="no closed form"):
        ref.closed_D(run, qrels, "Success@1")


def test_a_drawn_label_has_the_mean_grade_in_every_order() -> None:
    weights = {"a": Fraction(1, 2), "b": Fraction(1, 8), "c": Fraction(3, 8)}
    grades = [3, 1, 1]
    for order in [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]]:
        drawn = dict.fromkeys(weights, Fraction(0))
        grade = dict.fromkeys(weights, Fraction(0))
        for left, right in ref.pieces_of_u(order, weights, 3):
            for v in range(3):
                labels = ref.labels_drawn(order, weights, grades, (left + right) / 2, v)
                for label, given in labels.items():
                    drawn[label] += (right - left) / 3
                    grade[label] += given * (right - left) / 3
        assert drawn == {"a": 1, "b": Fraction(3, 8), "c": 1}
        assert grade == {label: drawn[label] * Fraction(5, 3) for label in weights}


def test_pieces_of_u_leave_the_draw_unchanged_within_each() -> None:
    weights = {"a": Fraction(3, 7), "b": Fraction(2, 7), "c": Fraction(2, 7)}
    for left, right in ref.pieces_of_u(["b", "a", "c"], weights, 2):
        draws = [
            ref.labels_drawn(["b", "a", "c"], weights, [1, 2], left + part, 0)
            for part in (Fraction(0), (right - left) / 3, (right - left) * 9 / 10)
        ]
        assert draws[0] == draws[1] == draws[2]


# ---- differences ---------------------------------------------------------------


@pytest.mark.parametrize("null", ["A", "B", "C", "D"])
@pytest.mark.parametrize("metric", [*FAMILIES, "R@2_top1"])
def test_differences_average_to_the_gap(metric: str, null: str) -> None:
    for seed in range(3):
        case = random_case(seed)
        nulls = {
            "A": ref.expected_A(*case, metric),
            "B": ref.expected_B(*case, metric),
            "C": ref.expected_C(*case, metric, 6),
            "D": ref.expected_D(*case, metric),
        }
        d = ref.differences(*case, metric, null, corpus_size=6)
        gap = ref.mean_score(*case, metric) - nulls[null]
        assert ref.mean(d.values()) == pytest.approx(gap, abs=1e-12)


def test_differences_worked_by_hand() -> None:
    # Lists a, a, b against gold a, a, b: M = [[1,1,0],[1,1,0],[0,0,1]], grand 5/9.
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}, "q3": {"b": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"b": 1}}
    # A: 1 - 2/3 - (2/3 - 5/9) = 2/9 twice; 1 - 1/3 - (1/3 - 5/9) = 8/9.
    a = ref.differences(run, qrels, "P@1", "A")
    assert list(a.values()) == pytest.approx([2 / 9, 2 / 9, 8 / 9])
    assert ref.differences(run, qrels, "P@1", "D") == a
    # B: w = 1/4, 1/4, 1/2; r = 1/2; c = 2/3, 2/3, 1/3; g_B = 1/2.
    # 1 - 1/2 - 3/4 (1/6) = 3/8 twice; 1 - 1/2 - 3/2 (-1/6) = 3/4.
    b = ref.differences(run, qrels, "P@1", "B")
    assert list(b.values()) == pytest.approx([3 / 8, 3 / 8, 3 / 4])
    c = ref.differences(run, qrels, "P@1", "C", corpus_size=4)
    assert list(c.values()) == pytest.approx([3 / 4] * 3)


def test_the_same_list_for_every_query_has_no_gap_to_A() -> None:
    run = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(4)}
    _, qrels = random_case(3, queries=4)
    for metric in FAMILIES:
        assert ref.mean(
            ref.differences(run, qrels, metric, "A").values()
        ) == pytest.approx(0, abs=1e-12)
        assert ref.p_value_A_exact(run, qrels, metric) == 1.0


# ---- the interval --------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [(3, -0.693, 0.939), (8, -0.006, None), (9, 0.075, None), (20, 0.513, 0.961)],
)
def test_limit_meets_the_anchors_of_a_perfect_run(
    n: int, low: float, high: float | None
) -> None:
    found = ref.limit_interval([1 - 1 / n] * n)
    assert found[0] == pytest.approx(low, abs=5e-4)
    assert high is None or found[1] == pytest.approx(high, abs=5e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("d", [-0.4, 0.0, 0.7, 1.0])
def test_limit_of_equal_differences_is_the_closed_form(n: int, d: float) -> None:
    q = Q ** (1 / n)
    low, high = ref.limit_interval([d] * n)
    assert low == pytest.approx(q * d - (1 - q), abs=1e-9)
    assert high == pytest.approx(q * d + (1 - q), abs=1e-9)


@pytest.mark.parametrize(("n", "ones"), [(5, 0), (5, 2), (5, 5), (30, 3), (200, 150)])
def test_limit_is_the_clopper_pearson_interval_on_two_valued_data(
    n: int, ones: int
) -> None:
    # The imaginary query stands at the end of the scale, so the two values are -1 and
    # +1: the interval of (d + 1)/2 is Clopper-Pearson's, from scipy.stats.beta.
    low, high = ref.limit_interval([1.0] * ones + [-1.0] * (n - ones))
    exact_low = stats.beta.ppf(Q, ones, n - ones + 1) if ones > 0 else 0.0
    exact_high = stats.beta.isf(Q, ones + 1, n - ones) if ones < n else 1.0
    assert (low + 1) / 2 == pytest.approx(exact_low, abs=1e-8)
    assert (high + 1) / 2 == pytest.approx(exact_high, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [2, 5, 15])
def test_limit_agrees_with_the_exact_distribution_in_fractions(
    n: int, seed: int
) -> None:
    rng = np.random.default_rng([seed, n])
    d = (rng.permutation(2000)[:n] / 1000 - 0.9).tolist()
    low, high = ref.limit_interval(d)
    values = [Fraction(value) for value in d]
    below = ref.exact_chance_at_most([*values, Fraction(-1)], Fraction(low))
    above = 1 - ref.exact_chance_at_most([*values, Fraction(1)], Fraction(high))
    assert float(below) == pytest.approx(Q, abs=1e-9)
    assert float(above) == pytest.approx(Q, abs=1e-9)


@pytest.mark.parametrize("groups", [None, list("aabbbcdeff")], ids=["none", "six"])
def test_resampled_interval_nears_the_limit(groups: list[str] | None) -> None:
    d = [0.9, -0.3, 0.2, 0.5, 0.1, 0.8, 0.0, 0.4, 0.6, 0.25]
    rows = 16000
    lowers, uppers = ref.interval_ends(d, rows, np.random.default_rng(1), groups)
    low, high = ref.limit_interval(d, groups=groups)
    # The share of resamples beyond the limit is binomial(rows, Q): within 5 sd.
    allowed = 5 * math.sqrt(rows * Q * (1 - Q))
    assert abs(sum(end <= low for end in lowers) - rows * Q) < allowed
    assert abs(sum(end >= high for end in uppers) - rows * Q) < allowed


def test_interval_takes_the_ranks_of_the_definition() -> None:
    # rows 319: t = floor(320 / 160) = 2, so the second smallest and second largest.
    d = [0.5, -0.25, 0.1]
    weights = np.random.default_rng(4).standard_exponential((319, 4))
    weights /= weights.sum(axis=1, keepdims=True)
    lowers = sorted((weights[:, :3] @ np.array(d) - weights[:, 3]).tolist())
    uppers = sorted((weights[:, :3] @ np.array(d) + weights[:, 3]).tolist())
    found = ref.interval(d, 319, 0.05, np.random.default_rng(4))
    assert found == pytest.approx((lowers[1], uppers[-2]), abs=1e-12)


def test_one_query_a_group_is_the_rule_without_groups() -> None:
    d = [0.5, -0.25, 0.1]
    plain = ref.interval(d, 200, 0.05, np.random.default_rng(4))
    single = ref.interval(d, 200, 0.05, np.random.default_rng(4), ["a", "b", "c"])
    assert plain == pytest.approx(single, abs=1e-15)
    assert ref.limit_interval(d) == ref.limit_interval(d, groups=["a", "b", "c"])


def test_paraphrases_count_as_one_when_grouped() -> None:
    # Ten equal queries a group weigh as much as one query where there are no groups.
    d = [0.3, 0.8, -0.1]
    repeated = [value for value in d for _ in range(10)]
    names = [name for name in "abc" for _ in range(10)]
    grouped = ref.limit_interval(repeated, groups=names)
    assert grouped == pytest.approx(ref.limit_interval(d), abs=1e-9)


def test_limit_stays_sound_beyond_minus_one() -> None:
    # B's differences can leave [-1, 1]; -1 is then not the lowest value.
    low, high = ref.limit_interval([-1.4, 0.2, 0.9])
    assert -1.4 < low < -1 < high < 1


def test_chance_not_positive_agrees_with_the_f_distribution() -> None:
    # 3 E's against 5: P(c gamma_3 <= gamma_5) = F(2*3, 2*5) at (5/3)/c.
    found = ref.chance_not_positive([0.7] * 3 + [-1.0] * 5)
    assert found == pytest.approx(stats.f.cdf((5 / 3) / 0.7, 6, 10), abs=1e-10)


# ---- the verdict ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "p", "expected"),
    [
        pytest.param(0.0499, 0.001, "open", id="end just under tau"),
        pytest.param(0.05, 0.001, "pass", id="end at tau"),
        pytest.param(0.0501, 0.001, "pass", id="end just over tau"),
        pytest.param(0.2, 0.0124, "pass", id="p just under"),
        pytest.param(0.2, 0.0125, "pass", id="p at alpha/4"),
        pytest.param(0.2, 0.0126, "open", id="p just over"),
    ],
)
def test_a_null_passes_by_its_end_and_its_p(
    low: float, p: float, expected: str
) -> None:
    assert ref.state(0.3, low, 0.5, p) == expected


@pytest.mark.parametrize(
    ("delta", "high", "expected"),
    [
        pytest.param(0.0499, 0.0999, "fail", id="both just under"),
        pytest.param(0.05, 0.0999, "open", id="gap at tau"),
        pytest.param(0.0499, 0.1, "open", id="end at twice tau"),
    ],
)
def test_a_null_fails_by_its_gap_and_its_end(
    delta: float, high: float, expected: str
) -> None:
    assert ref.state(delta, -0.1, high, 1.0) == expected
    assert ref.state(delta, -0.1, high, 1.0, silent=True) == "silent"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["pass"] * 4, "PASS"),
        (["pass", "pass", "pass", "open"], "UNDER-NS"),
        (["silent", "silent", "pass", "silent"], "UNDER-NS"),
        (["silent", "silent", "fail", "silent"], "FAIL"),
        (["open", "pass", "pass", "fail"], "FAIL"),
    ],
)
def test_verdict_follows_the_states(states: list[str], expected: str) -> None:
    assert ref.verdict(states) == expected


@pytest.mark.parametrize(("n", "expected"), [(48, "open"), (49, "fail")])
def test_constant_popular_list_fails_from_49_queries_on(n: int, expected: str) -> None:
    # d = 0 for every query to A, so the upper end is 1 - Q^(1/n), below 0.1 iff
    # n > log(Q)/log(0.9) = 48.2. Section 7: UNDER-NS below N = 49.
    run = {f"q{i}": {"a": 1.0} for i in range(n)}
    qrels = {f"q{i}": {"a" if i % 3 else f"b{i}": 1} for i in range(n)}
    d = list(ref.differences(run, qrels, "P@1", "A").values())
    assert max(map(abs, d)) < 1e-15
    assert ref.state(0.0, *ref.limit_interval(d), 1.0) == expected


def test_hint_agrees_with_a_case_worked_by_hand() -> None:
    # All d = 1: m2 = m3 = 0, low side, spread 0. n = 1: a = 2, mu = 0, k2 = 1,
    # k3 = 0: end = -z/sqrt(3) < tau. It grows with n; the true lower end is
    # 2 q - 1 >= 0.05 first at n = 8, the normal approximation may be off by one or two.
    found = ref.unrounded_hint([1.0] * 5)
    assert found is not None
    assert abs(found - 8) <= 2
    assert ref.unrounded_hint([1.0] * 50) == found


@pytest.mark.parametrize(
    "d",
    [
        pytest.param([-0.1, -0.1, -0.1, 0.0, 0.9], id="low, long tail above"),
        pytest.param([0.4, 0.4, 0.4, 0.4, -0.9], id="low, long tail below"),
        pytest.param([-0.2, -0.2, -0.2, 0.7], id="high, long tail above"),
        pytest.param([0.2, 0.2, 0.2, -0.7], id="high, long tail below"),
    ],
)
def test_hint_is_the_first_size_by_moments_taken_from_a_list(d: list[float]) -> None:
    # The same formula from other ends: k2 and k3 are the central moments of n/5 (or
    # n/4) copies of d and one v; scipy gives the skewness and the normal quantile.
    low = np.mean(d) >= 0.05
    v = -1.0 if low else 1.0

    def settles(n: int) -> bool:
        values = [*d, v]
        shares = np.array([n / len(d)] * len(d) + [1.0]) / (n + 1)
        centre = float(np.dot(shares, values))
        k2 = float(np.dot(shares, [(x - centre) ** 2 for x in values]))
        k3 = float(np.dot(shares, [(x - centre) ** 3 for x in values]))
        sd = math.sqrt(k2 / (n + 2))
        gamma = 2 * k3 / ((n + 2) * (n + 3)) / sd**3
        z = float(stats.norm.isf(Q))
        lean = z * float(stats.skew(d)) / (2 * math.sqrt(n))
        spread = 0.84 * float(np.std(d)) / math.sqrt(n)
        if low:
            end = centre - z * sd + sd * gamma * (z * z - 1) / 6
            return end - spread * max(0.2, 1 - lean) >= 0.05
        end = centre + z * sd + sd * gamma * (z * z - 1) / 6
        return end + spread * max(0.2, 1 + lean) < 0.1

    found = ref.unrounded_hint(d)
    assert found is not None
    assert found > 20
    assert settles(found)
    assert not any(settles(n) for n in range(1, found))
    assert ref.hint(d) == ref.one_figure(found)


@pytest.mark.parametrize("d", [[0.06, 0.3, 0.6, -0.2, 0.5], [0.0, 0.1, -0.1, 0.02]])
def test_hint_is_near_the_size_where_the_limit_settles(d: list[float]) -> None:
    # At the hinted size the pilot, repeated, must have settled: the hint asks 80%.
    found = ref.unrounded_hint(d)
    assert found is not None
    low, high = ref.limit_interval(d * math.ceil(found / len(d)))
    assert low >= 0.05 if np.mean(d) >= 0.05 else high < 0.1


def test_no_hint_where_more_queries_would_not_settle_it() -> None:
    assert ref.hint([0.05 + 0.0049, 0.05 + 0.0049]) is None
    assert ref.hint([0.0451, 0.0451]) is None
    assert ref.hint([0.5, 0.6], silent=True) is None
    assert ref.hint([0.056, 0.056]) is not None
    assert ref.hint([0.044, 0.044]) is not None


# ---- ties ----------------------------------------------------------------------


def test_tie_range_worked_by_hand() -> None:
    # c first; a, b, d tied at ranks 2 to 4; gold a and d.
    scores = {"a": 1.0, "b": 1.0, "c": 2.0, "d": 1.0}
    gold = {"a": 1, "d": 2}
    assert ref.tie_range(scores, gold, "RR") == (1 / 3, 1 / 2)
    assert ref.tie_range(scores, gold, "P@2") == (0.0, 0.5)
    worst, best = ref.tie_range(scores, gold, "nDCG@4")
    ideal = 2 + 1 / math.log2(3)
    assert worst == pytest.approx((1 / 2 + 2 / math.log2(5)) / ideal)
    assert best == pytest.approx((2 / math.log2(3) + 1 / 2) / ideal)


@pytest.mark.parametrize("metric", FAMILIES)
def test_our_order_lies_within_the_tie_range(metric: str) -> None:
    for seed in range(5):
        run, qrels = random_case(seed, docs=5)
        low, high = ref.tie_range(run["q0"], qrels["q0"], metric)
        assert low <= ref.score(metric, ref.ranked(run["q0"]), qrels["q0"]) <= high
