"""Run + qrels -> Benchmark: order, ties and gaps settled, ids become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from falsify_cli import defaults
from falsify_cli.columns import (
    Bools,
    Floats,
    Ints,
    distinct,
    single_precision,
    stretch_starts,
)
from falsify_cli.diagnose import Meeting, meeting
from falsify_cli.errors import InputError
from falsify_cli.ids import Ids, PackedKeys, Vocabulary
from falsify_cli.key_table import Keys
from falsify_cli.read import FileFacts, Qrels, Run

# Ids of each side that are tried in other spellings: 0.01 s of Python.
_TRIED = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """The judged documents of N queries, sorted by query, then document.

    queries: N ids sorted by their bytes. query, document, grade: (m,) each;
    document is a code of the vocabulary, which is sorted by bytes as well.
    """

    queries: list[str]
    vocabulary: Vocabulary
    query: Ints
    document: Ints
    grade: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The lines that matter of the ranked lists of N queries.

    Those are the first ten of each list, and below them the lines with a judged
    document and those with the score of another line, also where it is the same only
    as a 32-bit float; as far as lists were read.
    starts: (N + 1,) where each list begins among the m lines.
    documents: (m,) ids, best first. codes: (m,) their codes, -1 where unjudged.
    ranks: (m,) from 1. tie_firsts, tie_lasts: (m,) the ranks at which the line's
    block of equal scores begins and ends. near_ties: (m,) whether the score is below
    that of the line above, but not as a 32-bit float. lengths: (N,) documents listed.
    """

    starts: Ints
    documents: Ids
    codes: Ints
    ranks: Ints
    queries: Ints
    tie_firsts: Ints
    tie_lasts: Ints
    near_ties: Bools
    lengths: Ints

    def of(self, queries: Sequence[int], depth: int | None) -> list[list[str | None]]:
        """The ids of some lists, best first; None for those that do not matter."""
        lengths = self.lengths[queries]
        if depth is not None:
            lengths = np.minimum(lengths, depth)
        lists: list[list[str | None]] = [[None] * n for n in lengths.tolist()]
        wanted = np.full(len(self.lengths), -1)
        wanted[queries] = np.arange(len(lists))
        lines = np.flatnonzero(wanted[self.queries] >= 0)
        if depth is not None:
            lines = lines[self.ranks[lines] <= depth]
        for place, rank, document in zip(
            wanted[self.queries[lines]].tolist(),
            self.ranks[lines].tolist(),
            self.documents.take(lines).to_list(),
            strict=True,
        ):
            lists[place][rank - 1] = document
        return lists


@dataclass(frozen=True, slots=True, eq=False)
class Oddities:
    """What is odd but legal in a run, counted in queries.

    rank_contradicts: the rank column orders the first ten otherwise than the scores.
    first_is_query: ids of the queries whose best document is the query itself.
    rows_dropped: lines left out because the document is the query.
    repeated_judgments: judgments that stand in the qrels more than once.
    """

    rank_contradicts: int
    first_is_query: tuple[str, ...]
    rows_dropped: int
    repeated_judgments: int


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """One run over one set of judged queries.

    run, qrels: the facts of the two files. answered: (N,) whether the run lists
    anything. ignored: the run's queries that nobody judged. corpus_seen: distinct
    documents in run and qrels together. met: (D,) the judged documents that the run
    lists for some query, at any rank.
    """

    run: FileFacts
    qrels: FileFacts
    judgments: Judgments
    lists: Lists
    answered: Bools
    ignored: tuple[str, ...]
    corpus_seen: int
    met: Bools
    oddities: Oddities

    def __len__(self) -> int:
        return len(self.judgments.queries)


def judged_share(benchmark: Benchmark, depth: int | None) -> float:
    """The share of listed documents, down to a depth, that their query has judged."""
    lists, judgments = benchmark.lists, benchmark.judgments
    known, lengths = lists.codes >= 0, lists.lengths
    if depth is not None:
        known, lengths = known & (lists.ranks <= depth), np.minimum(lengths, depth)
    size = len(judgments.vocabulary)
    pairs = lists.queries[known] * size + lists.codes[known]
    # Judgments come by query and document.
    judged = judgments.query * size + judgments.document
    places = np.minimum(np.searchsorted(judged, pairs), len(judged) - 1)
    return float((judged[places] == pairs).sum() / max(lengths.sum(), 1))


def join(run: Run, qrels: Qrels, *, answered_only: bool = False) -> Benchmark:
    """Bring a run and its qrels together.

    answered_only: leave out the judged queries that the run does not answer.
    Raises InputError where they have no query in common.
    """
    corpus, met = _listed_documents(run.document_keys, qrels.vocabulary.ids.keys())
    # Nothing else wants the keys, and they are the most of what was read.
    run = replace(run, document_keys=np.zeros(0, np.uint64))
    if not run.queries:
        raise InputError(
            f"{run.facts.name or 'run'}: expected documents besides the queries' own, "
            f"found none; leave out --drop-self"
        )
    place_of = {query: place for place, query in enumerate(qrels.queries)}
    judged = np.array([place_of.get(q, -1) for q in run.queries], np.int64)
    if not (judged >= 0).any():
        raise InputError(_no_common_query(run, qrels))
    lengths: Ints = np.zeros(len(qrels.queries), np.int64)
    lengths[judged[judged >= 0]] = run.listed[judged >= 0]
    if not lengths.any():
        name = run.facts.name or "run"
        raise InputError(
            f"{name}: expected a document for some judged query, found none"
        )
    judgments = Judgments(
        qrels.queries, qrels.vocabulary, qrels.query, qrels.document, qrels.grade
    )
    if answered_only:
        judgments, number = _restricted(judgments, lengths > 0)
        judged = np.where(judged >= 0, number[judged], -1)
        lengths = lengths[lengths > 0]
    lists, oddities = _ordered(run, judged, judgments, lengths)
    strangers = Ids.of([run.queries[i] for i in np.flatnonzero(judged < 0)])
    ignored = tuple(strangers.take(strangers.order()).to_list())
    return Benchmark(
        run.facts,
        qrels.facts,
        judgments,
        lists,
        lengths > 0,
        ignored,
        corpus,
        met,
        replace(oddities, repeated_judgments=qrels.repeated),
    )


def _listed_documents(listed: PackedKeys, judged: Keys) -> tuple[int, Bools]:
    """How many different documents there are, and (D,) which judged ones are listed.

    listed: keys of all lines, sorted. judged: (D,) keys of the judged documents.
    """
    if not len(listed):
        return len(distinct(judged)), np.zeros(len(judged), np.bool_)
    count, step = 1, defaults.BLOCK_CELLS
    for low in range(1, len(listed), step):
        here, before = listed[low : low + step], listed[low - 1 : low + step - 1]
        count += int(np.count_nonzero(here != before[: len(here)]))
    met = judged <= listed[-1]
    places = np.searchsorted(listed, judged[met].astype(listed.dtype))
    met[met] = listed[places] == judged[met]
    return count + len(distinct(judged[~met])), met


def _restricted(judgments: Judgments, stay: Bools) -> tuple[Judgments, Ints]:
    """Keep some queries; also returns the new number of each old one, or -1."""
    number = np.where(stay, np.cumsum(stay) - 1, -1)
    rows = stay[judgments.query]
    queries = [q for q, s in zip(judgments.queries, stay.tolist(), strict=True) if s]
    kept = Judgments(
        queries,
        judgments.vocabulary,
        number[judgments.query[rows]],
        judgments.document[rows],
        judgments.grade[rows],
    )
    return kept, number


def _ordered(
    run: Run, judged: Ints, judgments: Judgments, lengths: Ints
) -> tuple[Lists, Oddities]:
    """Order every list: score descending, ties by document id descending."""
    query = judged[run.query]
    order = _by_score(query, run.scores)
    query, scores = query[order], run.scores[order]
    documents = run.documents.take(order)
    if run.places is None:
        places = np.arange(len(query)) - _starts(query, judgments)[query]
    else:
        places = run.places[order]
    firsts, lasts = _blocks(query, scores)
    tied = np.flatnonzero(lasts > firsts)
    if len(tied):
        by_id = np.empty(len(tied), np.int64)
        by_id[documents.take(tied).order()] = np.arange(len(tied))
        moved = tied[np.lexsort((-by_id, firsts[tied]))]
        documents = _moved(documents, tied, moved)
        order[tied] = order[moved]
    codes = judgments.vocabulary.codes(documents)
    # Of neighbours, equal scores as 32-bit floats, and those of them that differ.
    single = single_precision(scores)
    close = (query[1:] == query[:-1]) & (single[1:] == single[:-1])
    near_ties = np.append(False, close & (scores[1:] < scores[:-1]))
    matters = (codes >= 0) | (places < defaults.LOOKED_AT)
    matters[1:] |= close
    matters[:-1] |= close
    if run.depth is not None:
        # How much more is there depends on how the file is arranged.
        begins = np.flatnonzero(np.append(True, ~close))
        deep = np.flatnonzero(places >= run.depth)
        first = begins[np.searchsorted(begins, deep, "right") - 1]
        matters[deep] &= places[first] < run.depth
    # Nearly always all of a short list: then nothing is copied.
    matter = slice(None) if matters.all() else np.flatnonzero(matters)
    query, order, scores = query[matter], order[matter], scores[matter]
    lists = Lists(
        _starts(query, judgments),
        documents.take(matter),
        codes[matter],
        places[matter] + 1,
        query,
        places[firsts[matter]] + 1,
        places[lasts[matter]] + 1,
        near_ties[matter],
        lengths,
    )
    odd = _oddities(lists, scores, run.ranks[order], judgments)
    return lists, replace(odd, rows_dropped=run.dropped)


def _starts(query: Ints, judgments: Judgments) -> Ints:
    return np.searchsorted(query, np.arange(len(judgments.queries) + 1))


def _by_score(query: Ints, scores: Floats) -> Ints:
    """The order of the judged lines by query, then score descending.

    A run whose lists are in order already, as most are, is seen to be so and its
    lines are not sorted: 0.1 s against 1.6 for seven million of them.
    """
    rows = np.flatnonzero(query >= 0)
    if not (np.diff(query[rows]) >= 0).all():
        rows = rows[np.argsort(query[rows], kind="stable")]
    query, scores = query[rows], scores[rows]
    falling = (scores[1:] <= scores[:-1]) | (query[1:] != query[:-1])
    return rows if falling.all() else rows[np.lexsort((-scores, query))]


def _blocks(query: Ints, scores: Floats) -> tuple[Ints, Ints]:
    """(m,) the first and the last line of every line's block of equal scores."""
    firsts = stretch_starts(query, scores)
    sizes = np.diff(firsts, append=len(query))
    return np.repeat(firsts, sizes), np.repeat(firsts + sizes - 1, sizes)


def _moved(documents: Ids, places: Ints, sources: Ints) -> Ids:
    starts, lengths = documents.starts.copy(), documents.lengths.copy()
    starts[places] = documents.starts[sources]
    lengths[places] = documents.lengths[sources]
    return Ids(documents.buffer, starts, lengths)


def _oddities(
    lists: Lists, scores: Floats, ranks: Floats, judgments: Judgments
) -> Oddities:
    first = np.flatnonzero(lists.ranks <= defaults.LOOKED_AT)
    queries, ranks = lists.queries[first], ranks[first]
    blocks = stretch_starts(queries, scores[first])
    highest = np.fmin.reduceat(ranks, blocks)
    lowest = np.fmax.reduceat(ranks, blocks)
    of_block = queries[blocks]
    follows = (of_block[1:] == of_block[:-1]) & (highest[1:] < lowest[:-1])
    contradicted = of_block[1:][follows]
    answered = np.flatnonzero(np.diff(lists.starts))
    best = lists.documents.take(lists.starts[answered])
    names = [judgments.queries[q] for q in answered.tolist()]
    itself = np.flatnonzero(best.equal(Ids.of(names)))
    return Oddities(
        len(distinct(contradicted)),
        tuple(names[i] for i in itself.tolist()),
        rows_dropped=0,
        repeated_judgments=0,
    )


def _no_common_query(run: Run, qrels: Qrels) -> str:
    ours, theirs = ", ".join(run.queries[:3]), ", ".join(qrels.queries[:3])
    why = meeting(run.queries[:_TRIED], qrels.queries[:_TRIED])
    return (
        f"{run.facts.name or 'run'}: expected a query of "
        f"{qrels.facts.name or 'qrels'}, found none in common: the run has {ours}; "
        f"the qrels have {theirs}{f'; {why}' if why else ''}"
    )


def spelled_otherwise(benchmark: Benchmark) -> tuple[Meeting | None, Meeting | None]:
    """How queries, and documents, that do not meet would meet, if they would.

    Queries: the run's unjudged ones and the unanswered ones. Documents: those listed
    that no query has judged, and those judged that no list has.
    """
    judgments, lists = benchmark.judgments, benchmark.lists
    unanswered = [
        query
        for query, answered in zip(
            judgments.queries, benchmark.answered.tolist(), strict=True
        )
        if not answered
    ]
    queries = meeting(benchmark.ignored[:_TRIED], unanswered[:_TRIED])
    unjudged = (lists.codes < 0) & (lists.ranks <= defaults.LOOKED_AT)
    strangers = _sample(lists.documents.take(np.flatnonzero(unjudged)))
    met = benchmark.met
    missed = _sample(judgments.vocabulary.ids.take(np.flatnonzero(~met)))
    documents = meeting(strangers, missed, parts=not met.any())
    return queries, documents


def _sample(ids: Ids) -> list[str]:
    """Some thousand ids, evenly spread: Python looks at each of them."""
    step = max(1, -(-len(ids) // _TRIED))
    chosen = ids.take(np.arange(0, len(ids), step)).compact()
    return sorted(set(chosen.to_list()))
