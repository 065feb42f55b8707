"""The four null models: (Grading, draws, seed) -> expected scores and draws.

A permuted gold labels, B uniform gold labels, C random retrieval, D marginal-matched
labels. A, B and D keep the system's lists and change the gold; C keeps the gold and
changes the lists. Each purpose has a stream of its own, and draws are taken from it
in the order of draws and queries, so that no block size changes a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from falsify_cli import defaults
from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.helper import elsewhere, may_fork
from falsify_cli.metrics import KERNELS
from falsify_cli.nulls.draws import LETTERS, Null, p_value
from falsify_cli.nulls.marginals import capped_queries, matched
from falsify_cli.nulls.random_lists import retrieved_at_random
from falsify_cli.nulls.relabelled import permuted, uniform

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
_DEAREST_FIRST = "DAB"


def null_models(grading: Grading, n_boot: int, seed: int) -> Nulls:
    """Build all four nulls of one metric; see null_models_together."""
    return null_models_together([grading], n_boot, seed)[0]


def null_models_together(
    gradings: Sequence[Grading],
    n_boot: int,
    seed: int,
    processes: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> list[Nulls]:
    """Build all four nulls of each metric over the same queries.

    n_boot: draws of each. processes: as many draw at once, where that pays off.
    tick: called after each of the four, to show progress.
    Raises InternalError where draws and closed form of a null disagree.
    """
    build = {
        letter: partial(builder, gradings, n_boot, seed)
        for letter, builder in _BUILDERS.items()
    }
    helped = _DEAREST_FIRST[: processes - 1] if _pays_off(gradings, n_boot) else ""
    found: dict[str, list[Null]] = {}
    with ExitStack() as stack:
        helpers = {
            letter: stack.enter_context(elsewhere(build[letter])) for letter in helped
        }
        for letter in LETTERS:
            if letter not in helped:
                found[letter] = build[letter]()
                tick()
        for letter, helper in helpers.items():
            found[letter] = list(helper)
            tick()
    by_metric: list[Nulls] = list(zip(*map(found.__getitem__, LETTERS), strict=True))
    for null in (null for nulls in by_metric for null in nulls):
        _check(null, len(gradings[0]))
    return by_metric


def _pays_off(gradings: Sequence[Grading], n_boot: int) -> bool:
    """Whether helpers may draw, and have enough to do.

    Not where pytrec_eval scores: it tells of its progress, which a helper cannot.
    """
    cells = n_boot * sum(map(len, gradings))
    kernels = all(grading.metric.measure in KERNELS for grading in gradings)
    return kernels and cells >= defaults.SHARED_CELLS and may_fork()


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
