"""What is odd but legal, or follows from the benchmark, in one line each."""

from __future__ import annotations

import numpy as np

from falsify_cli import defaults
from falsify_cli.benchmark import Benchmark, Lists, spelled_otherwise
from falsify_cli.columns import distinct
from falsify_cli.gold import Gold
from falsify_cli.grading import Grading
from falsify_cli.interval import Groups, Interval
from falsify_cli.nulls import capped_queries
from falsify_cli.read import FileFacts
from falsify_cli.settings import Corpus
from falsify_cli.texts import NOTHING_JUDGED
from falsify_cli.ties import Ties

# The share of queries that list themselves first from which it is no accident.
_SELF_SHARE = 0.01

# Documents that meet in another spelling from which it is no accident.
_LEAST_MEETINGS = 3


def input_notices(benchmark: Benchmark, *, answered_only: bool = False) -> list[str]:
    """What the files and their join hold."""
    count, answered = len(benchmark), int(benchmark.answered.sum())
    odd = benchmark.oddities
    lines = [*_layout("run", benchmark.run), *_layout("qrels", benchmark.qrels)]
    if odd.repeated_judgments:
        repeated = _s(odd.repeated_judgments, "duplicate judgment")
        lines.append(f"{repeated} counted once.")
    if answered < count:
        lines.append(
            f"Not in the run, and scored 0: {count - answered} of {count} judged "
            f"queries."
        )
    if answered_only:
        lines.append(
            f"Only the {count} queries that this run answers count; with another run "
            f"the nulls are drawn otherwise."
        )
    if benchmark.ignored:
        lines.append(
            f"Ignored for having no judgments: "
            f"{_s(len(benchmark.ignored), 'query', 'queries')} of the run "
            f"({_some(benchmark.ignored)})."
        )
    if odd.rows_dropped:
        dropped = _s(odd.rows_dropped, "row")
        lines.append(f"{dropped} dropped: the document is the query.")
    if odd.rank_contradicts:
        lines.append(
            f"The rank column contradicts the scores in "
            f"{_s(odd.rank_contradicts, 'query', 'queries')}; the scores decide."
        )
    if len(odd.first_is_query) > _SELF_SHARE * max(answered, 1):
        lines.append(
            f"The best document has the query's own id in "
            f"{_s(len(odd.first_is_query), 'query', 'queries')} "
            f"({_some(odd.first_is_query)}); --drop-self removes such rows."
        )
    return lines + _spelling_notices(benchmark)


def _spelling_notices(benchmark: Benchmark) -> list[str]:
    """Ids that would meet in another spelling, where these are no accidents."""
    queries, documents = spelled_otherwise(benchmark)
    lines = []
    for what, meeting, least in (
        ("queries", queries, 1),
        ("documents", documents, _LEAST_MEETINGS),
    ):
        if meeting is not None and len(meeting.pairs) >= least:
            lines.append(
                f"{len(meeting.pairs)} {what} of the run are not in the qrels as they "
                f"are spelled: {meeting}."
            )
    return lines


def _layout(kind: str, facts: FileFacts) -> list[str]:
    return [f"{facts.name or kind}: {', '.join(facts.notes)}."] if facts.notes else []


def metric_notices(grading: Grading, ties: Ties | None, share: float) -> list[str]:
    """What a metric makes of run and benchmark."""
    gold, lines = grading.gold, []
    empty = int((gold.sets < 0).sum())
    if empty:
        lines.append(
            f"With no relevant document, and scored 0: "
            f"{_s(empty, 'judged query', 'judged queries')}."
        )
    if not share:
        lines.append(NOTHING_JUDGED)
    if ties is not None:
        lines += _tie_notices(ties)
    lines += _near_tie_notices(grading)
    lines += _coincidences(gold)
    if one_list_for_all(grading.lists, grading.depth):
        lines.append(
            "Query-blind: every query gets the same list, so the gap to A is 0."
        )
    if grading.metric.cutoff is None and grading.top_k is None:
        lines.append(
            "C's lists are as long as the run's own, for want of a cutoff; --top-k "
            "sets their length whatever the run."
        )
    return lines


def _tie_notices(ties: Ties) -> list[str]:
    lines = []
    if ties.high - ties.low > defaults.TIE_RANGE_SHOWN:
        lines.append(
            f"Ties: equal scores decide the order in "
            f"{_s(ties.queries, 'query', 'queries')}; broken otherwise, the score "
            f"lies between {ties.low:.4f} and {ties.high:.4f}."
        )
        if ties.all_equal:
            lines.append(
                f"All scores are equal in "
                f"{_s(ties.all_equal, 'query', 'queries')}: the ids alone order them."
            )
    return lines


def _near_tie_notices(grading: Grading) -> list[str]:
    lists = grading.lists
    near = lists.near_ties
    if grading.depth is not None:
        # The line above is the one that has to be within the depth.
        near = near & (lists.ranks <= grading.depth + 1)
    if not near.any():
        return []
    queries = _s(len(distinct(lists.queries[near])), "query", "queries")
    old = "older trec_eval and pytrec_eval break those as ties"
    text = f"Scores are equal as 32-bit floats alone in {queries}: {old}"
    return [f"{text}, and may print another score."]


def _coincidences(gold: Gold) -> list[str]:
    """Which nulls say the same here, or nothing; and whether labels are capped."""
    lines = []
    sizes, sets = gold.query_sizes, len(gold.sizes)
    complete = bool((sizes > 0).all())
    if sets == 1:
        lines.append("All queries share one gold set: A, B and D say nothing here.")
    elif complete and sets == len(sizes):
        lines.append("All gold sets are distinct: B expects the same as A.")
    if sets > 1 and (sizes == 1).all():
        lines.append("One relevant document a query: D expects the same as A.")
    capped = capped_queries(gold)
    if capped and (sizes > 1).any():
        lines.append(
            f"D draws some label too rarely in {_s(capped, 'query', 'queries')}: it "
            f"is more popular than one draw a query can show, which errs towards "
            f"passing D."
        )
    return lines


def corpus_notices(corpus: Corpus) -> list[str]:
    """Where C draws from, when nobody said, and what is missing there."""
    if not corpus.given:
        seen = f"C draws from the {corpus.size:,} documents that run and qrels name"
        strict = "the real corpus is at least that large, so C errs on the strict side"
        return [f"{seen}; {strict}, and with another run it draws otherwise."]
    if not corpus.absent:
        return []
    return [f"{corpus.absent:,} relevant documents are missing from the corpus file."]


def paraphrase_notice(gold: Gold, groups: Groups) -> list[str]:
    """Whether queries look like several wordings of one need."""
    shared = (gold.multiplicities > 1) & (gold.sizes > 1)
    if not shared.any() or len(groups.sizes) < len(groups.codes):
        return []
    queries, sets = len(gold.sets), len(gold.sizes)
    counts = f"{queries:,} queries but only {_s(sets, 'gold set')}"
    return [f"{counts}: if these are paraphrases the verdict is too sure; use --group."]


def one_list_for_all(lists: Lists, depth: int | None) -> bool:
    """Whether all queries, several of them, list the same documents.

    As far as they matter: judged ones, and the first ten.
    """
    lengths = lists.lengths
    seen = (lists.codes >= 0) | (lists.ranks <= defaults.LOOKED_AT)
    if depth is not None:
        lengths, seen = np.minimum(lengths, depth), seen & (lists.ranks <= depth)
    lines = np.flatnonzero(seen)
    sizes = np.bincount(lists.queries[lines], minlength=len(lengths))
    if len(sizes) < 2 or not sizes[0] or (sizes != sizes[0]).any():
        return False
    first = np.tile(lines[: sizes[0]], len(sizes))
    return bool(
        (lengths == lengths[0]).all()
        and (lists.ranks[lines] == lists.ranks[first]).all()
        and lists.documents.take(lines).equal(lists.documents.take(first)).all()
    )


def resampling_notice(letter: str, interval: Interval, tau: float) -> list[str]:
    """Whether more resamples could move an end across its line."""
    near = [
        f"the {end} end of {letter} lies within its resampling error of {name}"
        for end, value, error, line, name in (
            ("lower", interval.low, interval.low_error, tau, "tau"),
            ("upper", interval.high, interval.high_error, 2 * tau, "2 tau"),
        )
        if abs(value - line) < error
    ]
    if not near:
        return []
    text = f"{' and '.join(near)}; a larger --n-boot makes it sharper."
    return [text[0].upper() + text[1:]]


def _s(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _some(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
