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

NOTHING_JUDGED = (
    "None of the documents listed is judged for its query (judged share 0%): do run "
    "and qrels name documents the same way?"
)

# What scores as well as a run that does not clear a null, and what that says of it.
_RIVALS = {
    "A": ("other queries' answers score as well", "the query hardly matters"),
    "B": ("answer sets picked blindly score as well", "guessing does well here"),
    "C": ("documents drawn at random score as well", "nearly any list hits here"),
    "D": ("popular labels score as well", "the run may know only what is popular"),
}


def meaning(letter: str, state: State, *, worthless: bool = False) -> str:
    """One sentence on what a null's state says of the run.

    worthless: even the null scores less than the margin, so that it is the run that
    is weak, and not the benchmark.
    """
    rival, consequence = _RIVALS[letter]
    if worthless:
        consequence = "the run finds next to nothing"
    if state is State.PASS:
        return f"The run beats {NAMES[letter]} by at least tau."
    if state is State.FAIL:
        return f"{rival[0].upper()}{rival[1:]}: {consequence}."
    if state is State.SILENT:
        return "It says nothing here: all queries share one gold set."
    return f"Not ruled out: {rival}."


def hint(letter: str, queries: int | None, present: int, unit: str) -> Hint:
    """How many queries, or groups, would settle an open null.

    queries: None where no number would. present: how many there are.
    """
    if queries is None:
        text = f"More {unit} of this kind will not settle {letter}."
    elif queries <= present:
        text = f"A few more {unit} of this kind would settle {letter}."
    else:
        text = f"About {queries:,} {unit} of this kind would settle {letter}."
    return Hint(letter, queries, text)
