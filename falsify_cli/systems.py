"""Qrels -> systems whose right verdict is known before anybody runs a gate.

A system is N lists of document numbers; `Ground` knows the documents and hands a
system to the gate like any other run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import fspath

import numpy as np

from falsify_cli.benchmark import Judgments, join
from falsify_cli.columns import Bools, Floats, Ints
from falsify_cli.errors import InputError
from falsify_cli.gold import Gold
from falsify_cli.grading import metric_gold, refuse_no_relevant
from falsify_cli.ids import Ids
from falsify_cli.judge import QrelsInput, judge
from falsify_cli.judgement import Judgement, Parameters
from falsify_cli.metrics import Metric, parse_metric
from falsify_cli.nulls.draws import blocks, stream
from falsify_cli.nulls.marginals import label_counts
from falsify_cli.nulls.random_lists import different_numbers
from falsify_cli.read import (
    Qrels,
    qrels_of_mapping,
    read_corpus,
    read_qrels,
    run_of_mapping,
)
from falsify_cli.settings import (
    check_parameters,
    refuse_standard_input_twice,
    threads_or_cores,
)

# The tags of the systems' streams; those of the nulls count up from 1.
TAG_RANDOM, TAG_SAMPLED, TAG_SHUFFLED, TAG_GOOD = range(101, 105)

# Documents a list holds under a metric without a cutoff.
DEPTH = 100

# N lists of document numbers, best first.
DocumentLists = Sequence[Ints]


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """The documents there are to list; the number of a judged one is its code.

    named: ids of the judged documents, then of the others that a file names.
    size: how many there are; those beyond the named ones go by made-up ids, a
    prefix that no named id begins with and their number. given: by the user.
    absent: judged documents that the file does not name.
    """

    named: Ids
    size: int
    prefix: str
    given: bool
    absent: int

    @classmethod
    def of(cls, judged: Ids, corpus: int | str | None) -> Universe:
        """The corpus as the gate takes it; without one, the judged documents.

        Raises InputError where it is smaller than the judged documents.
        """
        named, size, name, absent = judged, len(judged), "corpus", 0
        if isinstance(corpus, str):
            name, listed = corpus, read_corpus(corpus)
            size = len(listed)
            met = listed.codes(judged)
            absent = int((met < 0).sum())
            others = np.setdiff1d(np.arange(size), met[met >= 0])
            more = listed.ids.take(others).compact()
            named = Ids.concatenate([judged.compact(), more])
        elif corpus is not None:
            size = corpus
        if size < len(judged):
            raise InputError(
                f"{name}: expected a corpus of at least the {len(judged):,} documents "
                f"that the qrels name, found {size:,}"
            )
        size, given = max(size, len(named)), corpus is not None
        prefix = _unused_prefix(named) if size > len(named) else ""
        return cls(named, size, prefix, given, absent)

    def names(self, numbers: Ints) -> list[str]:
        """The ids of these documents."""
        last = len(self.named) - 1
        names = self.named.take(np.minimum(numbers, last)).to_list()
        for place in np.flatnonzero(numbers > last).tolist():
            names[place] = f"{self.prefix}{numbers[place]}"
        return names


def _unused_prefix(ids: Ids) -> str:
    prefix, names = "unseen-", ids.to_list()
    while any(name.startswith(prefix) for name in names):
        prefix = f"_{prefix}"
    return prefix


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A benchmark without a run: the qrels, and what a metric makes of them.

    parameters: what was asked for. gold: of the metric. threads: those that share
    large work.
    """

    qrels: Qrels
    metric: Metric
    parameters: Parameters
    gold: Gold
    universe: Universe
    threads: int

    @classmethod
    def of(
        cls,
        qrels: QrelsInput,
        metric: str,
        parameters: Parameters,
        threads: int | None = None,
    ) -> Ground:
        """Read a benchmark.

        threads: processes and threads that share large work, the cores where None.
        Raises what the gate raises, on qrels without a relevant document as well.
        """
        p = parameters
        refuse_standard_input_twice(qrels, p.corpus, p.group)
        parsed = parse_metric(metric, p.rel_level)
        check_parameters(p, [parsed])
        shared_by = threads_or_cores(threads)
        if isinstance(qrels, Mapping):
            read = qrels_of_mapping(qrels)
        else:
            read = read_qrels(fspath(qrels), digest=True, processes=shared_by)
        judgments = Judgments(
            read.queries, read.vocabulary, read.query, read.document, read.grade
        )
        gold = metric_gold(judgments, parsed)
        refuse_no_relevant(gold, parsed, read.facts.name)
        universe = Universe.of(read.vocabulary.ids, p.corpus)
        return cls(read, parsed, p, gold, universe, shared_by)

    def __len__(self) -> int:
        return len(self.qrels.queries)

    @property
    def depth(self) -> int:
        """How many documents a list holds."""
        return min(self.metric.cutoff or DEPTH, self.universe.size)

    @property
    def relevant(self) -> Bools:
        """(m,) whether each judgment says relevant, be it top1's document or not."""
        relevant: Bools = self.qrels.grade >= self.metric.gold_level
        return relevant

    @property
    def notices(self) -> tuple[str, ...]:
        """What is odd but legal about the files, and where C draws from."""
        facts, repeated = self.qrels.facts, self.qrels.repeated
        lines, corpus = [], self.universe
        if facts.notes:
            lines.append(f"{facts.name or 'qrels'}: {', '.join(facts.notes)}.")
        if repeated:
            noun = "judgment" if repeated == 1 else "judgments"
            lines.append(f"{repeated:,} duplicate {noun} counted once.")
        if not corpus.given:
            lines.append(
                f"Without --corpus, random documents come from the {corpus.size:,} "
                f"judged ones; among more they score less."
            )
        if corpus.absent:
            lines.append(
                f"{corpus.absent:,} of the judged documents are not in the corpus file "
                f"and counted with it."
            )
        return tuple(lines)

    def judge(self, lists: DocumentLists, *, tied: bool = False) -> Judgement:
        """Put lists through the gate. tied: one and the same score for all."""
        run, end = {}, 0
        names = self.universe.names(np.concatenate(lists))
        for query, documents in zip(self.qrels.queries, lists, strict=True):
            start, end = end, end + len(documents)
            scores = [1.0] * (end - start) if tied else range(end - start, 0, -1)
            if end > start:
                run[query] = dict(zip(names[start:end], scores, strict=True))
        benchmark = join(run_of_mapping(run), self.qrels)
        # The corpus as it was read, whose documents the lists are made of.
        corpus = self.universe.size if self.universe.given else None
        parameters = replace(self.parameters, corpus=corpus)
        return judge(benchmark, [self.metric], parameters, threads=self.threads)


# --- the systems ---


def ideal_lists(ground: Ground) -> DocumentLists:
    """Each query's relevant documents, highest grade first, as deep as the cutoff."""
    gold = ground.gold
    order = np.lexsort((-gold.grades, gold.owners))
    of_set = np.split(gold.documents[order], gold.starts[1:-1])
    nothing = np.zeros(0, np.int64)
    cutoff = ground.metric.cutoff
    return [of_set[u][:cutoff] if u >= 0 else nothing for u in gold.sets.tolist()]


def random_lists(ground: Ground, seed: int) -> DocumentLists:
    """Documents drawn uniformly from the corpus, without replacement."""
    count = len(ground)
    depths, sizes = np.full(count, ground.depth), np.full(count, ground.universe.size)
    drawn = different_numbers(depths, sizes, stream(seed, TAG_RANDOM))
    return list(drawn.reshape(count, ground.depth))


def partly_ideal_lists(
    ground: Ground,
    ideal: Floats,
    drawn: DocumentLists,
    random: Floats,
    share: float,
    seed: int,
) -> DocumentLists:
    """Ideal lists for some queries and random ones for the others.

    The queries that go without are the first of a random order, as many as bring
    the mean nearest to a share of the ideal one, whatever the metric.
    ideal, random: (N,) scores of the ideal lists and of the drawn ones.
    """
    order = stream(seed, TAG_GOOD).permutation(len(ground))
    left = ideal.sum() - np.cumsum(np.append(0.0, (ideal - random)[order]))
    missing = int(np.argmin(np.abs(left - share * ideal.sum())))
    lists = list(ideal_lists(ground))
    for query in order[:missing].tolist():
        lists[query] = drawn[query]
    return lists


def popular_lists(ground: Ground) -> DocumentLists:
    """The documents that are relevant most often, the same for every query."""
    documents, counts = label_counts(ground.gold)
    best = documents[np.lexsort((documents, -counts))][: ground.depth]
    return [best] * len(ground)


def sampled_lists(ground: Ground, seed: int) -> DocumentLists:
    """Relevant documents drawn in proportion to how often they are relevant.

    Without replacement: the smallest of exponentials divided by the weights come
    in the order in which one draw after another would (Efraimidis & Spirakis, 2006).
    """
    documents, counts = label_counts(ground.gold)
    depth, rng = min(ground.depth, len(documents)), stream(seed, TAG_SAMPLED)
    lists: list[Ints] = []
    for block in blocks(len(ground), len(documents)):
        times = rng.standard_exponential((block, len(documents))) / counts
        first = np.argpartition(times, depth - 1, axis=1)[:, :depth]
        order = np.argsort(np.take_along_axis(times, first, axis=1), axis=1)
        lists += list(documents[np.take_along_axis(first, order, axis=1)])
    return lists


def shuffled_lists(ground: Ground, seed: int) -> DocumentLists:
    """Every query gets the ideal list of a query with another gold set.

    Queries stand in a row, those of one gold set together, and each takes the list
    of the one that stands as many places further as the commonest set has queries:
    no query meets its own set unless one set has more than half of all.
    """
    gold, rng = ground.gold, stream(seed, TAG_SHUFFLED)
    queries = rng.permutation(np.flatnonzero(gold.sets >= 0))
    places = rng.permutation(len(gold.sizes))[gold.sets[queries]]
    row = queries[np.argsort(places, kind="stable")]
    others = np.roll(row, -int(gold.multiplicities.max()))
    ideal = ideal_lists(ground)
    lists = list(ideal)
    for query, other in zip(row.tolist(), others.tolist(), strict=True):
        lists[query] = ideal[other]
    return lists


def wrong_lists(ground: Ground, seed: int) -> DocumentLists:
    """Documents that are not relevant to the query.

    The judged ones where there are any; else random ones of the corpus.
    """
    qrels, relevant = ground.qrels, ground.relevant
    pools = _by_query(qrels.query, qrels.document, len(ground))
    golds = _by_query(qrels.query[relevant], qrels.document[relevant], len(ground))
    lists = []
    for drawn, pool, gold in zip(random_lists(ground, seed), pools, golds, strict=True):
        wrong = pool[~np.isin(pool, gold)]
        found = wrong if len(wrong) else drawn[~np.isin(drawn, gold)]
        lists.append(found[: ground.depth])
    return lists


def pool_lists(ground: Ground) -> DocumentLists:
    """Each query's judged documents, the largest id first."""
    qrels = ground.qrels
    pools = _by_query(qrels.query, qrels.document, len(ground))
    return [pool[::-1][: ground.depth] for pool in pools]


def _by_query(queries: Ints, documents: Ints, count: int) -> DocumentLists:
    borders = np.searchsorted(queries, np.arange(1, count))
    return np.split(documents, borders)


def same_lists(ground: Ground) -> DocumentLists:
    """What one score for all judged documents puts on top: the largest ids."""
    size = len(ground.qrels.vocabulary)
    return [np.arange(size)[::-1][: ground.depth]] * len(ground)
