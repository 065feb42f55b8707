"""Small versions of calibrate.py: how often the gate errs where the truth is known.

Seeds are fixed, so a test is red or green for good; the bounds are wider than those
of calibrate.py by several standard errors, so that another numpy is no reason either.
"""

from __future__ import annotations

from functools import cache

import calibrate as cal
import numpy as np
import pytest
import tiny
from processes import BY_NAME, PROCESSES, Process, Truth, population, score, truth

from falsify_cli import gate

HUB = "a hub document on top of every list"
MISPLACED = "a hub everywhere but where it answers"
SKEWED = "single gold, Zipf with a 35% label"
UNIFORM = "single gold, uniform over 50"
SEVERAL = "several gold, mean 5, graded"
SIZED = "knows how many answers, not which"
EMPTY = "zero-inflated, a tenth without gold"
CLUSTERED = "several gold, mean 5, clustered"


@cache
def true_gaps(name: str, count: int) -> Truth:
    return truth(name, count, 4_000)


def tally(name: str, count: int, gap: float, benchmarks: int) -> cal.Tally:
    true = true_gaps(name, count)
    return cal.tally_of(cal.Cell(name, count, gap, true, range(benchmarks)))


# --- the program, as calibrate.py calls it ---


@pytest.mark.parametrize("name", [UNIFORM, SEVERAL, EMPTY])
def test_a_simulated_benchmark_is_judged_as_the_gate_judges_it(name: str) -> None:
    people = population(name)
    run, qrels = cal.sample(people, 30, 0.3, np.random.default_rng(4))
    (one,) = cal.judged(run, qrels, people.process, 7)
    process = people.process
    found = gate(
        run, qrels, process.metric, n_boot=cal.N_BOOT, seed=7, corpus=process.corpus
    )
    assert [null.state for null in found.nulls.values()] == one.states
    assert [null.interval for null in found.nulls.values()] == one.spans
    assert found.results[0].own_verdict is one.verdict


# --- the truth ---


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_populations_score_as_pytrec_eval_scores_them(process: Process) -> None:
    pytest.importorskip("pytrec_eval")
    people = population(process.name)
    some = [place for place in range(60) if people.sets[place] >= 0]
    sets = people.sets[some]
    documents = np.minimum(people.skilled[some], process.documents)
    grades = np.pad(people.grades, ((0, 0), (0, 1)))[sets[:, None], documents]
    mine = score(process.measure, grades, people.sizes[sets], people.ideals[sets])
    theirs = tiny.trec_eval_scores(
        process.metric,
        {f"{place}": list(people.runs[1][place]) for place in some},
        {f"{place}": people.qrels[place] for place in some},
    )
    assert mine.tolist() == pytest.approx(list(theirs.values()), abs=1e-12)


def test_true_gaps_of_a_finder_of_single_answers_have_a_closed_form() -> None:
    # The skilled list is the answer and junk: it scores 1 on its own gold and p_a on
    # that of another query, p its shares. A, and with it D: (1 - 1/N)(1 - sum p^2).
    # B: the answer is one of U sets, so 1 - E[1/U]; with two labels U is 1 with
    # chance p^N + (1 - p)^N. C: one document of 10,000.
    name, count = "two labels only", 5
    share = float((population(name).sets == 0).mean())
    found = true_gaps(name, count)
    a = (1 - 1 / count) * (1 - share**2 - (1 - share) ** 2)
    b = 0.5 * (1 - share**count - (1 - share) ** count)
    expected = [a, b, 1 - 1 / 10_000, a]
    assert found.skilled[0] == pytest.approx(a, abs=1e-12)
    assert found.skilled == pytest.approx(expected, abs=5 * max(found.error) + 1e-4)


@pytest.mark.parametrize("name", [HUB, SKEWED, SEVERAL, SIZED, EMPTY, CLUSTERED])
def test_the_gaps_seen_average_to_the_true_ones(name: str) -> None:
    cell = cal.Cell(name, 10, 0.2, true_gaps(name, 10), range(60))
    off = cal.tally_of(cell).deviations(cell.truth, cell.skill)
    assert max(map(abs, off)) < 4


@pytest.mark.parametrize("gap", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("name", [HUB, SKEWED, SEVERAL, SIZED])
def test_the_skill_for_a_gap_makes_it_the_smallest_gap(name: str, gap: float) -> None:
    true = true_gaps(name, 10)
    skill = true.skill_for(gap)
    assert skill is not None
    assert min(true.gaps(skill)) == pytest.approx(gap, abs=1e-4)


# --- the promises ---


@pytest.mark.parametrize("name", [HUB, MISPLACED, SKEWED, SEVERAL, SIZED])
@pytest.mark.parametrize("count", [10, 80])
def test_at_the_margin_hardly_any_benchmark_passes(name: str, count: int) -> None:
    found = tally(name, count, cal.TAU, 50)
    assert found.passed <= 0.08
    assert found.joint >= 0.88


@pytest.mark.parametrize("gap", [0.1, 0.2])
@pytest.mark.parametrize("name", [HUB, UNIFORM, SEVERAL])
def test_a_gap_of_twice_the_margin_hardly_ever_fails(name: str, gap: float) -> None:
    assert tally(name, 80, gap, 30).failed <= 0.1


@pytest.mark.parametrize("name", [UNIFORM, SEVERAL, SIZED])
def test_a_wide_gap_over_many_queries_passes(name: str) -> None:
    assert tally(name, 150, 0.4, 12).passed >= 0.9


@pytest.mark.parametrize("cheat", cal.CHEATS)
@pytest.mark.parametrize("name", cal.CHEATED_PROCESSES)
def test_no_cheat_passes(cheat: str, name: str) -> None:
    for count in (5, 20, 80):
        task = cal.CheatTask(cheat, name, count, range(8))
        assert cal.tally_of_cheat(task).passes == 0


@pytest.mark.parametrize("cheat", cal.CHEATS)
def test_cheats_fail_where_there_are_queries_enough(cheat: str) -> None:
    task = cal.CheatTask(cheat, UNIFORM, 300, range(6))
    assert cal.tally_of_cheat(task).fails >= 5


def test_paraphrases_pass_falsely_unless_they_are_grouped() -> None:
    plain, grouped = cal.Tally(), cal.Tally()
    for name in (UNIFORM, "eight gold sets of three"):
        cell = cal.Cell(name, cal.NEEDS, cal.TAU, true_gaps(name, cal.NEEDS), range(60))
        both = cal.tallies_of_paraphrases(cell)
        plain, grouped = plain + both[0], grouped + both[1]
    assert plain.passed > 0.04
    assert grouped.passed <= 0.05


def test_the_hinted_number_of_queries_mostly_settles_the_null() -> None:
    total = cal.Hinted()
    for name in (UNIFORM, SKEWED, HUB, SEVERAL):
        for gap in (0.0, 0.2, 0.4):
            cell = cal.Cell(name, 20, gap, true_gaps(name, 20), range(6))
            if cell.truth.skill_for(gap) is not None:
                total += cal.hinted_of(cell)
    assert total.followed >= 30
    assert 0.5 <= total.share <= 0.98


# --- the program around them ---


def test_a_process_by_name_is_one() -> None:
    assert len(BY_NAME) == len(PROCESSES) >= 12


@pytest.mark.parametrize(
    ("share", "count", "beyond", "missed"),
    [
        pytest.param(0.02, 100, 0, 0, id="at the bound"),
        pytest.param(0.03, 100, 1, 0, id="within two errors of 1.4%"),
        pytest.param(0.05, 100, 1, 1, id="beyond them"),
        pytest.param(0.03, 1000, 1, 1, id="the same share of more"),
    ],
)
def test_a_check_tells_noise_from_a_miss(
    share: float, count: int, beyond: int, missed: int
) -> None:
    check = cal.Check("PASS", 0.02, {"cell": (share, count)})
    assert (len(check.beyond), len(check.missed)) == (beyond, missed)
