"""The four null models: (Grading, draws, seed) -> expected scores and draws.

A permuted gold labels, B uniform gold labels, C random retrieval, D marginal-matched
labels. A, B and D keep the system's lists and change the gold; C keeps the gold and
changes the lists. Each purpose has a stream of its own, and draws are taken from it
in the order of draws and queries, so that no block size changes a number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from falsify_cli.errors import InternalError
from falsify_cli.grading import Grading
from falsify_cli.nulls.draws import Null, p_value
from falsify_cli.nulls.marginals import capped_queries, matched
from falsify_cli.nulls.random_lists import retrieved_at_random
from falsify_cli.nulls.relabelled import permuted, uniform

__all__ = ["Null", "capped_queries", "null_models", "p_value"]


def null_models(
    grading: Grading, n_boot: int, seed: int, tick: Callable[[], None] = lambda: None
) -> tuple[Null, Null, Null, Null]:
    """Build all four nulls.

    n_boot: draws of each. tick: called after each null, to show progress.
    Raises InternalError where draws and closed form of a null disagree.
    """
    nulls = []
    for build in (permuted, uniform, retrieved_at_random, matched):
        null = build(grading, n_boot, seed)
        _check(null, len(grading))
        nulls.append(null)
        tick()
    a, b, c, d = nulls
    return a, b, c, d


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
