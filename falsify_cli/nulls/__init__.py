"""The four null models: (Grading, draws, seed) -> expected scores and draws.

A permuted gold labels, B uniform gold labels, C random retrieval, D marginal-matched
labels. A, B and D keep the system's lists and change the gold; C keeps the gold and
changes the lists. Each purpose has a stream of its own, and draws are taken from it
in the order of draws and queries, so that no block size changes a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.metrics import KERNELS
from falsify_cli.nulls.draws import LETTERS, Null, p_value
from falsify_cli.nulls.marginals import capped_queries, matched
from falsify_cli.nulls.random_lists import retrieved_at_random
from falsify_cli.nulls.relabelled import permuted, uniform
from falsify_cli.threads import at_once

__all__ = [
    "Null",
    "Nulls",
    "capped_queries",
    "null_models",
    "null_models_together",
    "p_value",
]


Nulls = tuple[Null, Null, Null, Null]

_BUILDERS = {
    "A": permuted,
    "B": uniform,
    "C": retrieved_at_random,
    "D": matched,
}
# Where several are drawn at once; C is nearly free.
_DEAREST_FIRST = "DABC"


def null_models(grading: Grading, n_boot: int, seed: int) -> Nulls:
    """Build all four nulls of one metric; see null_models_together."""
    return null_models_together([grading], n_boot, seed)[0]


def null_models_together(
    gradings: Sequence[Grading],
    n_boot: int,
    seed: int,
    threads: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> list[Nulls]:
    """Build all four nulls of each metric over the same queries.

    n_boot: draws of each. threads: as many nulls are drawn at once, unless pytrec_eval
    scores: it keeps the interpreter to itself. tick: called after each of the four, to
    show progress.
    Raises InternalError where draws and closed form of a null disagree.
    """
    tasks = [
        partial(_BUILDERS[letter], gradings, n_boot, seed) for letter in _DEAREST_FIRST
    ]
    kernels = all(grading.metric.measure in KERNELS for grading in gradings)
    drawn = at_once(tasks, threads if kernels else 1, tick)
    found = dict(zip(_DEAREST_FIRST, drawn, strict=True))
    by_metric: list[Nulls] = list(zip(*map(found.__getitem__, LETTERS), strict=True))
    for null in (null for nulls in by_metric for null in nulls):
        _check(null, len(gradings[0]))
    return by_metric


def _check(null: Null, queries: int) -> None:
    """Compare the draws with the closed form, where there is one."""
    if not null.exact:
        return
    draws = len(null.draws)
    error = null.draws.std() / np.sqrt(draws)
    # The middle term: a null that hits once in a blue moon has no spread to see.
    allowed = 6 * error + 25 / (draws * queries) + 1e-9
    if abs(null.draws_mean - null.expected) > allowed:
        raise InternalError(
            f"null {null.letter}: the draws average {null.draws_mean!r}, the closed "
            f"form says {null.expected!r}, and they may differ by {allowed:.3g}"
        )
