"""The four null models: (Grading, draws, seed) -> expected scores and draws.

A permuted gold labels, B uniform gold labels, C random retrieval, D marginal-matched
labels. A, B and D keep the system's lists and change the gold; C keeps the gold and
changes the lists. Each purpose has a stream of its own, and draws are taken from it
in the order of draws and queries, so that no block size changes a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.nulls.draws import Null, p_value
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


def null_models(grading: Grading, n_boot: int, seed: int) -> Nulls:
    """Build all four nulls of one metric; see null_models_together."""
    return null_models_together([grading], n_boot, seed)[0]


def null_models_together(
    gradings: Sequence[Grading],
    n_boot: int,
    seed: int,
    tick: Callable[[], None] = lambda: None,
) -> list[Nulls]:
    """Build all four nulls of each metric over the same queries.

    n_boot: draws of each. tick: called after each of the four, to show progress.
    Raises InternalError where draws and closed form of a null disagree.
    """
    by_letter = []
    for build in (permuted, uniform, retrieved_at_random, matched):
        by_letter.append(build(gradings, n_boot, seed))
        tick()
    found: list[Nulls] = list(zip(*by_letter, strict=True))
    for null in (null for nulls in found for null in nulls):
        _check(null, len(gradings[0]))
    return found


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
