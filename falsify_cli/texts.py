"""The nulls, their states and hints in plain words."""

from __future__ import annotations

from falsify_cli.judgement import Hint
from falsify_cli.verdict import State

NAMES = {
    "A": "permuted labels",
    "B": "uniform labels",
    "C": "random retrieval",
    "D": "matched labels",
}

# What it means that a run does not clear a null.
_RIVALS = {
    "A": "the answers to other queries score about as well, so the score hardly "
    "depends on which query is asked",
    "B": "answer sets picked blindly score about as well, so guessing does well on "
    "this benchmark",
    "C": "documents drawn at random score about as well, so nearly any list hits on "
    "this benchmark",
    "D": "labels drawn by popularity alone score about as well, so the run may know "
    "only which answers are popular",
}


def meaning(letter: str, state: State) -> str:
    """One sentence on what a null's state says of the run."""
    rival = _RIVALS[letter]
    if state is State.PASS:
        return f"The run beats {NAMES[letter]} by at least tau."
    if state is State.FAIL:
        return f"{rival[0].upper()}{rival[1:]}."
    if state is State.SILENT:
        return "It says nothing here: all queries share one gold set."
    return f"Too few queries to rule out that {rival}."


def hint(letter: str, queries: int | None, present: int, unit: str) -> Hint:
    """How many queries, or groups, would settle an open null.

    queries: None where no number would. present: how many there are.
    """
    if queries is None:
        text = f"{letter}: more {unit} of this kind will not settle it."
    elif queries <= present:
        text = f"{letter}: a few more {unit} of this kind would settle it."
    else:
        text = f"{letter}: about {queries:,} {unit} of this kind would settle it."
    return Hint(letter, queries, text)
